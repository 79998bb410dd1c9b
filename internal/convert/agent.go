package convert

import (
	"fmt"
	"strings"
)

// agent writes an aiagent state: its message is put together, the model is asked,
// and what it returned becomes data.
func (w *workflow) agent(s *state, f *flow) {
	w.known(s.n, "state "+s.name, common("agentName", "aiModel", "dataFilter", "systemMessage", "userMessage", "output", "maxToolExecutions", "memory", "tools", "agentOutcomes", "llmConfig", "multiLlmConfig")...)
	if n := s.n.get("dataFilter"); n != nil {
		w.unsupported(n, "state %s: a data filter has no counterpart", s.name)
	}
	prompt := w.prompt(s, f)
	answer, types := w.answer(s)
	tools := w.toolsOf(s)
	kind := "Agent"
	if len(tools) == 0 && answer.of.sort == isText {
		kind = "LLMInference"
	}
	b := w.head(kind, s.name+"_agent")
	if name := w.textOf(s.n, "agentName"); name != "" && name != s.name {
		b.note("The agent %s.", name)
	}
	b.set("model", w.model(s))
	if id := w.memory(s); id != "" {
		b.set("memory", id)
	}
	if text := w.systemText(s); text != "" {
		b.set("system_message", text)
		if s.n.get("systemMessage") == nil {
			b.note("What xFlow says where a state has no systemMessage.")
		}
	}
	if len(tools) > 0 {
		b.set("tools", inline(tools))
	}
	w.toolLimit(s, b, len(tools) > 0)
	b.set("inputs", inline{prompt}).set("outputs", inline{answer.text})
	w.push(f, &step{block: b, reads: []string{prompt}, writes: []string{answer.text}})
	if types {
		w.spread(s, f, answer)
	}
	if w.parts.answers == nil {
		w.parts.answers = map[*state]*translatedExpr{}
	}
	w.parts.answers[s] = answer
}

// answer is the variable of what the agent returns: a record by its output schema,
// or the text response. spread tells whether the record's fields are data.
func (w *workflow) answer(s *state) (answer *translatedExpr, spread bool) {
	n := s.n.get("output")
	if file := unwrappedFile(n); file != nil {
		w.unsupported(file, "the output of state %s names a file, which is not read; what the agent answers becomes the text response", s.name)
		n = nil
	}
	if n != nil && w.isMap(n, "output") != nil {
		sc := &schema{report: w.report, what: "the output of state " + s.name}
		of := sc.shape(unwrapped(n), "")
		if had := w.schemas[s]; had != nil {
			had.inline()
			of = had // with what conditions told of its fields
		}
		w.schemas[s] = of
		if of.sort == isRecord && len(of.fields) > 0 {
			of.about = sc.about()
			of.optional = false
			return &translatedExpr{text: w.local(s.name+"_answer", of), prec: precAtom, of: of}, true
		}
		w.assumed(n, "the output of state %s is no object with properties; what the agent answers becomes the text response", s.name)
	}
	of := &inferredType{sort: isText, declared: true}
	id, fits := w.write("response", of, s.n)
	if !fits {
		id = w.local(s.name+"_answer", of)
	}
	return &translatedExpr{text: id, prec: precAtom, of: of}, false
}

// spread makes data of the fields that an agent returned.
func (w *workflow) spread(s *state, f *flow, answer *translatedExpr) {
	sets := new(block)
	var ids []string
	for _, one := range answer.of.fields {
		d := w.datum(one.name)
		d.asked = true
		one.of.optional = one.of.optional || d.nulls
		id, fits := w.write(one.name, one.of, s.n.get("output"))
		if !fits {
			continue
		}
		c, _ := (&jq{}).field(answer, one.name) // a field that is there
		sets.set(id, formula(c.text))
		ids = append(ids, id)
	}
	w.push(f, &step{block: w.head("Transform", s.name+"_data").set("set", sets), reads: []string{answer.text}, writes: ids})
}

// outcomeVars lets conditions of an agent see what it returned.
func (w *workflow) outcomeVars(s *state, t *jq) {
	answer := w.parts.answers[s]
	if answer == nil {
		return
	}
	returned := &translatedExpr{object: true, text: answer.text, prec: precAtom, of: answer.of, loose: true}
	if answer.of.sort == isText {
		returned.member = func(name string) (*translatedExpr, error) {
			if name != "response" {
				return nil, unsupportedJQ("."+name, "the state has no output schema, so it returns %q alone", "response")
			}
			w.reads = append(w.reads, answer.text)
			return &translatedExpr{text: answer.text, prec: precAtom, of: answer.of}, nil
		}
	}
	t.vars["agentOutcome"] = &translatedExpr{object: true, member: func(name string) (*translatedExpr, error) {
		if name != "returnValues" {
			return nil, unsupportedJQ("."+name, "$agentOutcome has no counterpart but for returnValues")
		}
		if returned.member == nil {
			w.reads = append(w.reads, answer.text)
		}
		return returned, nil
	}}
}

// xFlow's own values for what a state does not say.
const (
	defaultSystem = "You are a helpful AI Assistant."
	usualModel    = "gpt-4o"
	usualTools    = 10
)

// toolLimit sets how many calls of tools a state makes at most.
func (w *workflow) toolLimit(s *state, b *block, tools bool) {
	limit := w.positive(s.n, "maxToolExecutions")
	switch {
	case tools && limit == 0:
		b.set("max_tool_executions", usualTools).note("xFlow's limit where a state has none.")
	case tools:
		b.set("max_tool_executions", limit)
	case limit > 0:
		w.ignored(s.n.keyAt("maxToolExecutions"), "state %s has no tools; maxToolExecutions is left out", s.name)
	}
}

// systemText is a system message that is always the same.
func (w *workflow) systemText(s *state) string {
	n := s.n.get("systemMessage")
	if n == nil {
		return defaultSystem
	}
	if readTemplate(n.text).dynamic() {
		return ""
	}
	return w.textOf(s.n, "systemMessage")
}

// memoryUse is a memory and how it was declared first.
type memoryUse struct {
	id      string
	n       *node
	setting string
}

// memory is the id of a state's memory; empty where it has none.
func (w *workflow) memory(s *state) string {
	n := w.mapOf(s.n, "memory")
	if n == nil {
		if s.n.get("memory") == nil && w.loops[s] > 0 {
			w.assumed(s.n, "state %s has no memory: xFlow remembers what was said within one run, here each round begins anew", s.name)
		}
		return ""
	}
	return w.remember(n, s.name)
}

// remember declares a memory, or finds the one that was declared by the same id.
func (w *workflow) remember(n *node, owner string) string {
	w.known(n, "memory", "memoryId", "memoryType", "maxMessages", "maxTokens")
	name := w.textOf(n, "memoryId")
	if n.get("memoryId") == nil {
		w.assumed(n, "memory has no \"memoryId\"; it is named after %s", owner)
	}
	key, note := w.sessionOf(n, name)
	b := new(block).set("id", "")
	if note != "" {
		b.note("%s", note)
	}
	setting := w.window(n, b)
	if w.parts.memories == nil {
		w.parts.memories = map[string]*memoryUse{}
	}
	if key == "" {
		key = owner
	}
	if had := w.parts.memories[key]; had != nil {
		if had.setting != setting {
			w.add(ruleForm.At(n.mark(), "the memory %s is declared with %s here and with %s elsewhere; the first counts", key, setting, had.setting).WithRelated(had.n.mark(), "the first one"))
		}
		return had.id
	}
	id := w.ids.id(key, "memory")
	b.entries[0].value = id
	w.parts.memories[key] = &memoryUse{id, n, setting}
	w.app.memories = append(w.app.memories, b)
	return id
}

// sessionOf is the name of a memory by its memoryId. xFlow's id names the
// conversation; here the caller does, by the session.
func (w *workflow) sessionOf(n *node, name string) (key, note string) {
	tpl := readTemplate(name)
	if name == "" {
		return "", ""
	}
	if !tpl.dynamic() {
		return name, "One conversation for each session: qtype run --session " + oneLine(name)
	}
	for _, p := range tpl.parts {
		if p.jq {
			word := p.text[strings.LastIndexAny(p.text, ".$ ")+1:]
			w.assumed(n.get("memoryId"), "the conversation is named by an expression; here the caller names it: qtype run --session with the value of %s", oneLine(p.text))
			return either(slug(word), "memory"), "One conversation for each session: qtype run --session with the value of " + oneLine(p.text)
		}
	}
	return name, ""
}

// window writes the policy and its limit; setting says both in words.
func (w *workflow) window(n *node, b *block) (setting string) {
	kind := w.textOf(n, "memoryType")
	if kind == "" {
		kind = "message_window"
	}
	policies := []string{"message_window", "token_window"}
	for _, policy := range policies {
		if kind != policy && foldCase(kind) == foldCase(policy) {
			w.assumed(n.get("memoryType"), "memoryType %q is taken for %s", kind, policy)
			kind = policy
		}
	}
	if !contains(policies, kind) {
		w.add(ruleForm.At(n.get("memoryType").mark(), "memoryType is message_window or token_window, not %q; message_window is taken", kind).WithNearest(kind, policies))
		kind = "message_window"
	}
	key, other, name, usual := "maxMessages", "maxTokens", "max_messages", 10
	if kind == "token_window" {
		key, other, name, usual = "maxTokens", "maxMessages", "max_tokens", 1000
	}
	limit := w.positive(n, key)
	if limit == 0 {
		limit = usual
		if n.get(key) == nil {
			w.assumed(n, "memory has no %q; %d was chosen", key, usual)
		}
	}
	if n.get(other) != nil {
		w.positive(n, other)
		w.ignored(n.keyAt(other), "%s has no effect on a %s and is left out", other, kind)
	}
	b.set("policy", kind).set(name, limit)
	return fmt.Sprintf("%s %d", kind, limit)
}

// bareMemory converts memory blocks without a workflow: an application with the
// memories and a flow that talks with each.
func (w *workflow) bareMemory(roots ...*node) *application {
	w.app, w.ids = &application{id: "memory_app"}, reservedIDs("memory_app")
	var ids []string
	for _, root := range roots {
		w.known(root, "the file", "memory")
		if n := w.mapOf(root, "memory"); n != nil {
			if id := w.remember(n, "memory"); !contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	talkTo(w.app, w.ids, ids)
	return w.app
}

// talkTo adds a conversational flow for each memory, with a model of which the
// file says nothing.
func talkTo(app *application, ids *names, memories []string) {
	practice := ids.id("practice", "practice")
	model := ids.id("assistant", "assistant")
	app.models = append(app.models, new(block).set("type", "Model").set("id", model).set("provider", "openai").
		note("The file names no model: put yours here. Needs OPENAI_API_KEY.").set("model_id", "gpt-4o-mini").set("offline", practice), declareMock(practice))
	message := &inferredType{sort: isMessage, declared: true}
	for _, memory := range memories {
		name := "chat"
		if len(memories) > 1 {
			name = "chat_" + memory
		}
		f := &flow{id: ids.id(name, "chat"), types: func(string) *inferredType { return message }, talks: true,
			inputs: []string{"question"}, outputs: []string{"answer"}}
		b := new(block).set("type", "LLMInference").set("id", ids.id(f.id+"_answer", "answer")).set("model", model).set("memory", memory).
			set("inputs", inline{"question"}).set("outputs", inline{"answer"})
		f.steps = []*step{{block: b, reads: f.inputs, writes: f.outputs}}
		app.flows = append(app.flows, f)
	}
}
