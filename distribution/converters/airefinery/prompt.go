package airefinery

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// promptAgent writes the flow of an agent that consists of a prompt.
func (p *project) promptAgent(a *agent) {
	p.common(a, "magic_prompt", "system_prompt")
	system, prompt := p.Text(a.config, "system_prompt"), p.Text(a.config, "magic_prompt")
	if prompt == "" || hasQuery(system) {
		system, prompt = "", strings.TrimPrefix(system+strings.TrimSuffix("\n\n"+prompt, "\n\n"), "\n\n")
	}
	p.writeSteps(a, system, prompt)
}

// prompts are the texts of an agent.
type prompts struct {
	system   string       // the system message
	template []promptPart // the message of the user; nil for the request itself
}

// writeSteps writes the steps of an agent: its prompt becomes the system message, or
// a template if it contains the request.
func (p *project) writeSteps(a *agent, system, prompt string) {
	f := a.flow
	kind := "LLMInference"
	if len(a.tools) > 0 {
		kind = "Agent"
	}
	answer := new(document.Block).Set("type", kind).Set("id", p.ids.New(f.ID+"_answer", "answer")).Set("model", p.model(a.config, a.n))
	if len(a.tools) > 0 {
		answer.Set("tools", document.NameList(a.tools))
	}
	if a.calls > 0 {
		answer.Set("max_tool_executions", a.calls)
	}
	reads := p.contextsOf(a.config)
	if reads.memory != "" {
		answer.Set("memory", reads.memory)
		if a.pooled {
			p.Assumed(a.config.Get("contexts"), "agent %s reads its own earlier calls in the session instead of the whole conversation", a.name)
		}
	}
	style := p.style(a.config)
	texts := prompts{system: p.verbatim(a, system, reads)}
	if hasQuery(prompt) {
		texts.template = splitPrompt(prompt + style)
	} else {
		texts.system = strings.TrimPrefix(texts.system+"\n\n"+p.verbatim(a, prompt, reads), "\n\n")
		texts.system = strings.TrimSuffix(texts.system, "\n\n") + style
	}
	if texts.system != "" {
		answer.Set("system_message", texts.system)
	}
	switch {
	case reads.values != nil && len(reads.names) > 0:
		p.valueSteps(a, answer, texts, reads)
	case texts.template != nil:
		p.templateSteps(a, answer, texts.template)
	case a.pooled:
		textFlow(f)
		answer.Set("inputs", document.NameList{"query"}).Set("outputs", document.NameList{"answer"})
		f.Steps = []*document.Step{{Block: answer, Reads: f.Inputs, Writes: f.Outputs}}
	default:
		chatFlow(f)
		answer.Set("inputs", document.NameList{"question"}).Set("outputs", document.NameList{"answer"})
		f.Steps = []*document.Step{{Block: answer, Reads: f.Inputs, Writes: f.Outputs}}
	}
}

// verbatim returns a prompt that is not a template, and reports its placeholders.
func (p *project) verbatim(a *agent, prompt string, reads contexts) string {
	words := document.Set{}
	parts := splitPrompt(prompt)
	for i, part := range parts {
		switch {
		case !part.word:
		case part.text == "chat_history" && a.config.Get("contexts") != nil:
			p.Assumed(p.promptAt(a), "{chat_history} is left empty: the memory sends the conversation as messages")
			parts[i] = promptPart{}
		case reads.id(part.text) != "":
			p.Assumed(p.promptAt(a), "{%s} is sent verbatim: the value precedes the request", part.text)
		default:
			words.Add(part.text)
		}
	}
	for _, word := range words.Sorted() {
		p.Unsupported(p.promptAt(a), "{%s} is filled in by AI Refinery, which has no counterpart; it is sent verbatim", word)
	}
	return promptText(parts)
}

// promptAt returns the prompt of an agent, for messages.
func (p *project) promptAt(a *agent) *input.Node {
	for _, key := range []string{"magic_prompt", "system_prompt"} {
		if n := a.config.Get(key); n != nil {
			return n
		}
	}
	return a.n
}

// templateSteps writes a PromptTemplate and the call of the model.
func (p *project) templateSteps(a *agent, answer *document.Block, parts []promptPart) {
	f := a.flow
	var text strings.Builder
	inputs := document.Set{}
	for _, part := range parts {
		id := p.placeholder(a, part, inputs)
		if id == "" {
			literal := part.literal()
			if part.word && part.text != "chat_history" {
				literal = "{" + part.text + "}"
			}
			text.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(literal))
			continue
		}
		text.WriteString("{" + id + "}")
	}
	textFlow(f)
	f.Inputs = inputs.Sorted()
	fill := new(document.Block).Set("type", "PromptTemplate").Set("id", p.ids.New(f.ID+"_say", "say")).Set("template", text.String()).
		Set("inputs", document.NameList(f.Inputs)).Set("outputs", document.NameList{"prompt"})
	answer.Set("inputs", document.NameList{"prompt"}).Set("outputs", document.NameList{"answer"})
	f.Steps = []*document.Step{{Block: fill, Reads: f.Inputs, Writes: []string{"prompt"}}, {Block: answer, Reads: []string{"prompt"}, Writes: f.Outputs}}
}

// valueSteps writes the steps of an agent that reads named values: they are read
// from their memory, with the values of the file as defaults, and are part of the message.
func (p *project) valueSteps(a *agent, answer *document.Block, texts prompts, reads contexts) {
	f := a.flow
	textFlow(f)
	plain, optional := f.Types("query"), &document.Type{Kind: document.Text, Optional: true, Declared: true}
	f.Types = func(id string) *document.Type {
		if slices.Contains(reads.ids(), id) {
			return optional
		}
		return plain
	}
	var parts []string
	for _, part := range texts.template {
		switch id := reads.id(part.text); {
		case !part.word:
			parts = append(parts, jq.Quote(part.text))
		case id != "":
			parts = append(parts, reads.value(part.text))
		case strings.EqualFold(part.text, "query"):
			parts = append(parts, "query")
		case part.text == "chat_history" || part.text == "env_variable":
			p.Assumed(p.promptAt(a), "{%s} is left empty: the request has it", part.text)
		default:
			p.Unsupported(p.promptAt(a), "{%s} is filled in by AI Refinery, which has no counterpart; it is sent verbatim", part.text)
			parts = append(parts, jq.Quote("{"+part.text+"}"))
		}
	}
	if texts.template == nil {
		parts = []string{"query"}
	}
	var lines []string
	for _, name := range reads.names {
		lines = append(lines, jq.Quote(name+": ")+" + "+reads.value(name)+` + "\n"`)
	}
	say := strings.Join(lines, " + ") + ` + "\n" + ` + strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == `""` }), " + ")
	set := new(document.Block).Set("prompt", document.Expression(say))
	fill := new(document.Block).Set("type", "Transform").Set("id", p.ids.New(f.ID+"_say", "say")).Set("set", set)
	answer.Set("inputs", document.NameList{"prompt"}).Set("outputs", document.NameList{"answer"})
	f.Steps = []*document.Step{p.readValues(f, reads), {Block: fill, Reads: append(reads.ids(), "query"), Writes: []string{"prompt"}}, {Block: answer, Reads: []string{"prompt"}, Writes: f.Outputs}}
}

// hasQuery reports whether a prompt contains the request.
func hasQuery(prompt string) bool {
	return slices.ContainsFunc(splitPrompt(prompt), func(part promptPart) bool { return part.word && strings.EqualFold(part.text, "query") })
}

// placeholder returns the input variable of a placeholder; "" for text, and for the
// conversation, which the memory sends.
func (p *project) placeholder(a *agent, part promptPart, inputs document.Set) string {
	at := p.promptAt(a)
	switch {
	case !part.word:
		return ""
	case strings.EqualFold(part.text, "query"):
		inputs.Add("query")
		return "query"
	case part.text == "chat_history" && a.config.Get("contexts") != nil:
		p.Assumed(at, "{chat_history} is left empty: the memory sends the conversation as messages")
		return ""
	case a.pooled:
		p.Unsupported(at, "{%s} is filled in by AI Refinery, which has no counterpart; it is sent verbatim", part.text)
		return ""
	}
	p.Unsupported(at, "{%s} is filled in by AI Refinery; it is an input of the flow here", part.text)
	id := part.text
	for p.ids.Taken[id] && !p.placeholders[id] {
		id += "_"
	}
	p.ids.Taken[id], p.placeholders[id] = true, true
	inputs.Add(id)
	return id
}

// promptText returns a prompt with its placeholders unfilled.
func promptText(parts []promptPart) string {
	var b strings.Builder
	for _, part := range parts {
		if part.word {
			b.WriteString("{" + part.text + "}")
			continue
		}
		b.WriteString(part.text)
	}
	return b.String()
}

// promptPart is a text of a prompt, or a placeholder that AI Refinery fills.
type promptPart struct {
	text string
	word bool
}

// literal returns the text of a part without a variable.
func (m promptPart) literal() string {
	if m.word {
		return ""
	}
	return m.text
}

// splitPrompt splits a prompt into text and placeholders. Double braces are literal
// braces; other text in braces that is not an identifier is text.
func splitPrompt(s string) []promptPart {
	var all []promptPart
	text := ""
	for s != "" {
		word, rest, closed := strings.Cut(strings.TrimPrefix(s, "{"), "}")
		switch {
		case strings.HasPrefix(s, "{{"), strings.HasPrefix(s, "}}"):
			text += s[:1]
			s = s[2:]
		case s[0] == '{' && closed && document.IsIdentifier(word):
			all = append(all, promptPart{text: text}, promptPart{text: word, word: true})
			text, s = "", rest
		default:
			text += s[:1]
			s = s[1:]
		}
	}
	return append(all, promptPart{text: text})
}
