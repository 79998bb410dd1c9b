package convert

import (
	"slices"
	"strings"
)

// say writes the steps of an agent: its prompt as a system message, or as a
// template where it holds the request.
func (p *project) say(f *flow, answer *block, prompt string, config *node) {
	parts := splitPrompt(prompt)
	words := set{}
	for _, part := range parts {
		if part.word {
			words.add(part.text)
		}
	}
	asks := slices.ContainsFunc(words.sorted(), func(word string) bool { return strings.EqualFold(word, "query") })
	if !asks {
		for _, word := range words.sorted() {
			p.unsupported(config.get("magic_prompt"), "{%s} is filled by AI Refinery, which has no counterpart; it is said as it is written", word)
		}
		message := &inferredType{sort: isMessage, declared: true}
		f.talks, f.inputs, f.outputs = true, []string{"question"}, []string{"answer"}
		f.types = func(string) *inferredType { return message }
		answer.set("system_message", promptText(parts)).set("inputs", inline{"question"}).set("outputs", inline{"answer"})
		f.steps = []*step{{block: answer, reads: f.inputs, writes: f.outputs}}
		return
	}
	var text strings.Builder
	inputs := set{}
	for _, part := range parts {
		id := p.filled(part, config, inputs)
		if id == "" {
			text.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(part.said()))
			continue
		}
		text.WriteString("{" + id + "}")
	}
	plain := &inferredType{sort: isText, declared: true}
	f.types = func(string) *inferredType { return plain }
	f.inputs, f.outputs = inputs.sorted(), []string{"answer"}
	fill := new(block).set("type", "PromptTemplate").set("id", p.ids.id(f.id+"_say", "say")).set("template", text.String()).
		set("inputs", inline(f.inputs)).set("outputs", inline{"prompt"})
	answer.set("inputs", inline{"prompt"}).set("outputs", inline{"answer"})
	f.steps = []*step{{block: fill, reads: f.inputs, writes: []string{"prompt"}}, {block: answer, reads: []string{"prompt"}, writes: f.outputs}}
}

// filled is the variable that stands for a word of a prompt; empty for plain text and
// for the conversation, which the memory sends.
func (p *project) filled(part promptPart, config *node, inputs set) string {
	at := config.get("magic_prompt")
	switch {
	case !part.word:
		return ""
	case strings.EqualFold(part.text, "query"):
		inputs.add("query")
		return "query"
	case part.text == "chat_history" && config.get("contexts") != nil:
		p.assumed(at, "{chat_history} is left empty in the prompt: the memory sends the conversation as messages")
		return ""
	}
	p.unsupported(at, "{%s} is filled by AI Refinery; here it is an input of the flow", part.text)
	id := part.text
	for p.ids.taken[id] && !p.words[id] {
		id += "_"
	}
	p.ids.taken[id], p.words[id] = true, true
	inputs.add(id)
	return id
}

// promptText is a prompt in which nothing is filled.
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

// promptPart is a piece of a prompt: a text, or a word that AI Refinery fills.
type promptPart struct {
	text string
	word bool
}

// said is what stands in a prompt for a part that nothing fills.
func (m promptPart) said() string {
	if m.word {
		return ""
	}
	return m.text
}

// splitPrompt takes a prompt apart. Doubled braces are braces; what is no word in braces
// is text.
func splitPrompt(s string) []promptPart {
	var all []promptPart
	text := ""
	for s != "" {
		word, rest, closed := strings.Cut(strings.TrimPrefix(s, "{"), "}")
		switch {
		case strings.HasPrefix(s, "{{"), strings.HasPrefix(s, "}}"):
			text += s[:1]
			s = s[2:]
		case s[0] == '{' && closed && isName(word):
			all = append(all, promptPart{text: text}, promptPart{text: word, word: true})
			text, s = "", rest
		default:
			text += s[:1]
			s = s[1:]
		}
	}
	return append(all, promptPart{text: text})
}

// reservedIDs are the ids of an application's own and those of the variables of a
// flow that talks.
func reservedIDs(app string) *names {
	taken := map[string]bool{}
	for _, id := range []string{app, "question", "answer", "prompt", "query"} {
		taken[id] = true
	}
	return &names{taken: taken}
}
