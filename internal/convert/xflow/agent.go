package xflow

import (
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/jq"
)

// agent writes an aiagent state: its message is put together, the model is asked,
// and what it returned becomes data.
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
	b := w.head(kind, s.name+"_agent")
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
			b.Note("What xFlow says where a state has no systemMessage.")
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

// answer is the variable of what the agent returns: a record by its output schema,
// or the text response. spread tells whether the record's fields are data.
func (w *workflow) answer(s *state) (answer *jq.Expr, spread bool) {
	n := s.n.Get("output")
	if file := unwrappedFile(n); file != nil {
		w.Unsupported(file, "the output of state %s names a file, which is not read; what the agent answers becomes the text response", s.name)
		n = nil
	}
	if n != nil && w.AsMap(n, "output") != nil {
		sc := &schema{Report: w.Report, what: "the output of state " + s.name}
		of := sc.shape(unwrapped(n), "")
		if had := w.schemas[s]; had != nil {
			had.Inline()
			of = had // with what conditions told of its fields
		}
		w.schemas[s] = of
		if of.Kind == document.Record && len(of.Fields) > 0 {
			of.Description = sc.about()
			of.Optional = false
			return &jq.Expr{Source: w.local(s.name+"_answer", of), Prec: jq.PrecAtom, Type: of}, true
		}
		w.Assumed(n, "the output of state %s is no object with properties; what the agent answers becomes the text response", s.name)
	}
	of := &document.Type{Kind: document.Text, Declared: true}
	id, fits := w.write("response", of, s.n)
	if !fits {
		id = w.local(s.name+"_answer", of)
	}
	return &jq.Expr{Source: id, Prec: jq.PrecAtom, Type: of}, false
}

// spread makes data of the fields that an agent returned.
func (w *workflow) spread(s *state, f *document.Flow, answer *jq.Expr) {
	sets := new(document.Block)
	var ids []string
	for _, one := range answer.Type.Fields {
		d := w.datum(one.Name)
		d.asked = true
		one.Type.Optional = one.Type.Optional || d.nulls
		id, fits := w.write(one.Name, one.Type, s.n.Get("output"))
		if !fits {
			continue
		}
		c, _ := (&jq.Translator{}).Field(answer, one.Name) // a field that is there
		sets.Set(id, document.Expression(c.Source))
		ids = append(ids, id)
	}
	w.push(f, &document.Step{Block: w.head("Transform", s.name+"_data").Set("set", sets), Reads: []string{answer.Source}, Writes: ids})
}

// outcomeVars lets conditions of an agent see what it returned.
func (w *workflow) outcomeVars(s *state, t *jq.Translator) {
	answer := w.parts.answers[s]
	if answer == nil {
		return
	}
	returned := &jq.Expr{IsObject: true, Source: answer.Source, Prec: jq.PrecAtom, Type: answer.Type, Unverified: true}
	if answer.Type.Kind == document.Text {
		returned.Member = func(name string) (*jq.Expr, error) {
			if name != "response" {
				return nil, jq.Unsupported("."+name, "the state has no output schema, so it returns %q alone", "response")
			}
			w.reads = append(w.reads, answer.Source)
			return &jq.Expr{Source: answer.Source, Prec: jq.PrecAtom, Type: answer.Type}, nil
		}
	}
	t.Vars["agentOutcome"] = &jq.Expr{IsObject: true, Member: func(name string) (*jq.Expr, error) {
		if name != "returnValues" {
			return nil, jq.Unsupported("."+name, "$agentOutcome has no counterpart but for returnValues")
		}
		if returned.Member == nil {
			w.reads = append(w.reads, answer.Source)
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
func (w *workflow) toolLimit(s *state, b *document.Block, tools bool) {
	limit := w.PositiveInt(s.n, "maxToolExecutions")
	switch {
	case tools && limit == 0:
		b.Set("max_tool_executions", usualTools).Note("xFlow's limit where a state has none.")
	case tools:
		b.Set("max_tool_executions", limit)
	case limit > 0:
		w.Ignored(s.n.KeySpan("maxToolExecutions"), "state %s has no tools; maxToolExecutions is left out", s.name)
	}
}

// systemText is a system message that is always the same.
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
