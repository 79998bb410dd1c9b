package xflow

import (
	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
)

// agent writes an aiagent state: its message, the model call, and the data that it
// returns.
func (w *workflow) agent(s *state, f *document.Flow) {
	w.CheckKeys(s.n, "state "+s.name, common("agentName", "aiModel", "dataFilter", "systemMessage", "userMessage", "output", "maxToolExecutions", "memory", "tools", "agentOutcomes", "llmConfig", "multiLlmConfig")...)
	if n := s.n.Get("dataFilter"); n != nil {
		w.Unsupported(n, "state %s: a data filter has no counterpart", s.name)
	}
	prompt := w.prompt(s, f)
	answer, types := w.answer(s)
	tools := w.toolsOf(s)
	kind := "Agent"
	if len(tools) == 0 && answer.Type.Kind == document.Text {
		kind = "LLMInference"
	}
	b := w.newBlock(kind, s.name+"_agent")
	if name := w.Text(s.n, "agentName"); name != "" && name != s.name {
		b.Note("The agent %s.", name)
	}
	b.Set("model", w.model(s))
	if id := w.memory(s); id != "" {
		b.Set("memory", id)
	}
	if text := w.systemText(s); text != "" {
		b.Set("system_message", text)
		if s.n.Get("systemMessage") == nil {
			b.Note("xFlow's default if a state has no systemMessage.")
		}
	}
	if len(tools) > 0 {
		b.Set("tools", document.NameList(tools))
	}
	w.toolLimit(s, b, len(tools) > 0)
	b.Set("inputs", document.NameList{prompt}).Set("outputs", document.NameList{answer.Source})
	w.push(f, &document.Step{Block: b, Reads: []string{prompt}, Writes: []string{answer.Source}})
	if types {
		w.spread(s, f, answer)
	}
	if w.parts.answers == nil {
		w.parts.answers = map[*state]*jq.Expr{}
	}
	w.parts.answers[s] = answer
}

// answer returns the variable of an agent's result: a record by its output schema,
// or the text response. spread reports whether the fields of the record are data.
func (w *workflow) answer(s *state) (answer *jq.Expr, spread bool) {
	n := s.n.Get("output")
	if file := unwrappedFile(n); file != nil {
		w.Unsupported(file, "the output of state %s refers to a file, which is not read; the agent's answer becomes the string response", s.name)
		n = nil
	}
	if n != nil && w.AsMap(n, "output") != nil {
		sc := &schema{Report: w.Report, what: "the output of state " + s.name}
		of := sc.shape(unwrapped(n), "")
		if had := w.schemas[s]; had != nil {
			had.Inline()
			of = had // with what conditions revealed about its fields
		}
		w.schemas[s] = of
		if of.Kind == document.Record && len(of.Fields) > 0 {
			of.Description = sc.about()
			of.Optional = false
			return &jq.Expr{Source: w.local(s.name+"_answer", of), Prec: jq.PrecAtom, Type: of}, true
		}
		w.Assumed(n, "the output of state %s is not an object with properties; the agent's answer becomes the string response", s.name)
	}
	of := &document.Type{Kind: document.Text, Declared: true}
	id, fits := w.write("response", of, s.n)
	if !fits {
		id = w.local(s.name+"_answer", of)
	}
	return &jq.Expr{Source: id, Prec: jq.PrecAtom, Type: of}, false
}

// spread assigns the fields that an agent returns to data.
func (w *workflow) spread(s *state, f *document.Flow, answer *jq.Expr) {
	sets := new(document.Block)
	var ids []string
	for _, one := range answer.Type.Fields {
		d := w.datum(one.Name)
		d.fromAgent = true
		one.Type.Optional = one.Type.Optional || d.nullCompared
		id, fits := w.write(one.Name, one.Type, s.n.Get("output"))
		if !fits {
			continue
		}
		c, _ := (&jq.Translator{}).Field(answer, one.Name) // the field exists
		sets.Set(id, document.Expression(c.Source))
		ids = append(ids, id)
	}
	w.push(f, &document.Step{Block: w.newBlock("Transform", s.name+"_data").Set("set", sets), Reads: []string{answer.Source}, Writes: ids})
}

// outcomeVars defines $agentOutcome for the conditions of an agent.
func (w *workflow) outcomeVars(s *state, t *jq.Translator) {
	answer := w.parts.answers[s]
	if answer == nil {
		return
	}
	returned := &jq.Expr{IsObject: true, Source: answer.Source, Prec: jq.PrecAtom, Type: answer.Type, Unverified: true}
	if answer.Type.Kind == document.Text {
		returned.Member = func(name string) (*jq.Expr, error) {
			if name != "response" {
				return nil, jq.Unsupported("."+name, "the state has no output schema, so it returns only %q", "response")
			}
			w.reads = append(w.reads, answer.Source)
			return &jq.Expr{Source: answer.Source, Prec: jq.PrecAtom, Type: answer.Type}, nil
		}
	}
	t.Vars["agentOutcome"] = &jq.Expr{IsObject: true, Member: func(name string) (*jq.Expr, error) {
		if name != "returnValues" {
			return nil, jq.Unsupported("."+name, "only returnValues of $agentOutcome has a counterpart")
		}
		if returned.Member == nil {
			w.reads = append(w.reads, answer.Source)
		}
		return returned, nil
	}}
}

// xFlow's defaults of a state.
const (
	defaultSystem    = "You are a helpful AI Assistant."
	defaultModel     = "gpt-4o"
	defaultToolCalls = 10
)

// toolLimit sets the maximum number of tool calls of a state.
func (w *workflow) toolLimit(s *state, b *document.Block, tools bool) {
	limit := w.PositiveInt(s.n, "maxToolExecutions")
	switch {
	case tools && limit == 0:
		b.Set("max_tool_executions", defaultToolCalls).Note("xFlow's default if a state has no limit.")
	case tools:
		b.Set("max_tool_executions", limit)
	case limit > 0:
		w.Ignored(s.n.KeySpan("maxToolExecutions"), "maxToolExecutions ignored: state %s has no tools", s.name)
	}
}

// systemText returns the system message if it is constant.
func (w *workflow) systemText(s *state) string {
	n := s.n.Get("systemMessage")
	if n == nil {
		return defaultSystem
	}
	if jq.ParseTemplate(n.Text).HasExpressions() {
		return ""
	}
	return w.Text(s.n, "systemMessage")
}
