package airefinery

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// writeSteps writes the steps of an agent: its prompt becomes a system message, or
// a template if it contains the request.
func (p *project) writeSteps(f *document.Flow, answer *document.Block, prompt string, config *input.Node) {
	parts := splitPrompt(prompt)
	words := document.Set{}
	for _, part := range parts {
		if part.word {
			words.Add(part.text)
		}
	}
	hasQuery := slices.ContainsFunc(words.Sorted(), func(word string) bool { return strings.EqualFold(word, "query") })
	if !hasQuery {
		for _, word := range words.Sorted() {
			p.Unsupported(config.Get("magic_prompt"), "{%s} is filled in by AI Refinery, which has no counterpart; it is sent verbatim", word)
		}
		message := &document.Type{Kind: document.Message, Declared: true}
		f.Conversational, f.Inputs, f.Outputs = true, []string{"question"}, []string{"answer"}
		f.Types = func(string) *document.Type { return message }
		answer.Set("system_message", promptText(parts)).Set("inputs", document.NameList{"question"}).Set("outputs", document.NameList{"answer"})
		f.Steps = []*document.Step{{Block: answer, Reads: f.Inputs, Writes: f.Outputs}}
		return
	}
	var text strings.Builder
	inputs := document.Set{}
	for _, part := range parts {
		id := p.placeholder(part, config, inputs)
		if id == "" {
			text.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(part.literal()))
			continue
		}
		text.WriteString("{" + id + "}")
	}
	plain := &document.Type{Kind: document.Text, Declared: true}
	f.Types = func(string) *document.Type { return plain }
	f.Inputs, f.Outputs = inputs.Sorted(), []string{"answer"}
	fill := new(document.Block).Set("type", "PromptTemplate").Set("id", p.ids.New(f.ID+"_say", "say")).Set("template", text.String()).
		Set("inputs", document.NameList(f.Inputs)).Set("outputs", document.NameList{"prompt"})
	answer.Set("inputs", document.NameList{"prompt"}).Set("outputs", document.NameList{"answer"})
	f.Steps = []*document.Step{{Block: fill, Reads: f.Inputs, Writes: []string{"prompt"}}, {Block: answer, Reads: []string{"prompt"}, Writes: f.Outputs}}
}

// placeholder returns the input variable of a placeholder; "" for text, and for the
// conversation, which the memory sends.
func (p *project) placeholder(part promptPart, config *input.Node, inputs document.Set) string {
	at := config.Get("magic_prompt")
	switch {
	case !part.word:
		return ""
	case strings.EqualFold(part.text, "query"):
		inputs.Add("query")
		return "query"
	case part.text == "chat_history" && config.Get("contexts") != nil:
		p.Assumed(at, "{chat_history} is left empty: the memory sends the conversation as messages")
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
