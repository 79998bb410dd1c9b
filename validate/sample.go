package validate

import (
	"fmt"
	"strings"
)

// sample is a rule's example. The differences between the wrong and the right
// document are written ⟦wrong│right⟧, in any of the fields.
type sample struct {
	text  string // the complete document; the other fields are not used
	head  string // YAML before the flows
	in    string // the flow's inputs: "question: text, n: int"
	vars  string // other variables, in the same form
	out   string // the flow's outputs; declares the ones that in and vars lack
	flow  string // other keys of the flow
	steps string // YAML of the steps
}

// The marks around a difference.
const (
	markOpen, markMiddle, markClose = "⟦", "│", "⟧"
)

func (s sample) wrong() string { return s.side(false).render() }
func (s sample) right() string { return s.side(true).render() }

// side returns the sample with one side of every difference.
func (s sample) side(right bool) sample {
	for _, field := range []*string{&s.text, &s.head, &s.in, &s.vars, &s.out, &s.flow, &s.steps} {
		*field = choose(*field, right)
	}
	return s
}

// choose returns a text with one side of every difference.
func choose(text string, right bool) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, markOpen)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		both, after, _ := strings.Cut(rest, markClose)
		chosen, other, _ := strings.Cut(both, markMiddle)
		if right {
			chosen = other
		}
		b.WriteString(chosen)
		text = after
	}
}

// render returns the document.
func (s sample) render() string {
	if s.text != "" {
		return strings.TrimPrefix(s.text, "\n")
	}
	var b strings.Builder
	b.WriteString("id: example\n")
	writeLines(&b, 0, s.head)
	b.WriteString("flows:\n  - id: main\n")
	declared := map[string]bool{}
	for _, list := range []string{s.in, s.vars, s.out} {
		for _, v := range strings.Split(list, ", ") {
			name, kind, ok := strings.Cut(v, ": ")
			if !ok || declared[name] {
				continue
			}
			if len(declared) == 0 {
				b.WriteString("    variables:\n")
			}
			declared[name] = true
			fmt.Fprintf(&b, "      - {id: %s, type: %q}\n", name, kind)
		}
	}
	writeRefs(&b, "inputs", s.in)
	writeRefs(&b, "outputs", s.out)
	writeLines(&b, 4, s.flow)
	if s.steps != "" {
		b.WriteString("    steps:\n")
		writeLines(&b, 6, s.steps)
	}
	return b.String()
}

// writeRefs writes the names of a list of variables under key.
func writeRefs(b *strings.Builder, key, list string) {
	if names := namesOf(list); names != "" {
		fmt.Fprintf(b, "    %s: [%s]\n", key, names)
	}
}

// namesOf returns "a, b" for "a: text, b: int".
func namesOf(list string) string {
	var names []string
	for _, v := range strings.Split(list, ", ") {
		if name, _, _ := strings.Cut(v, ": "); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// writeLines writes the lines of text with an indent.
func writeLines(b *strings.Builder, indent int, text string) {
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		b.WriteString(strings.Repeat(" ", indent) + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// Declarations that several samples use.
const (
	sampleModel   = "models:\n  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna}"
	sampleVectors = "models:\n  - {type: EmbeddingModel, id: vectors, provider: openai, model_id: text-embedding-3-small, dimensions: 1536}"
	sampleTool    = `tools:
  - type: APITool
    id: weather
    name: weather
    description: The weather of a place
    endpoint: https://weather.example/v1
    inputs: [{id: city, type: text}, {id: days, type: "int?"}]
    outputs: [{id: report, type: text}]`
)
