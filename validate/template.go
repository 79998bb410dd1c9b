package validate

import "github.com/qtype-dev/qtype/internal/prompttemplate"

// placeholder is one {…} of a prompt template, or a brace that is none.
type placeholder struct {
	text  string // as it is written, braces included
	name  string // what stands before ! and :
	fault string // why the braces cannot be read; empty for a placeholder
	place excerpt
}

// placeholders reads a template. Reading goes on behind a fault.
func placeholders(text string) []placeholder {
	var found []placeholder
	for _, p := range prompttemplate.Parse(text) {
		if p.Kind == prompttemplate.Literal {
			continue
		}
		one := placeholder{text: p.Text, name: p.Name, place: excerptAt(text, p.At, len(p.Text))}
		switch p.Kind {
		case prompttemplate.Stray:
			one.fault = "a single } closes nothing; write }} for a brace"
		case prompttemplate.Unclosed:
			one.fault = "this { is never closed; write {{ for a brace"
		case prompttemplate.Nested:
			one.fault = "a { inside a placeholder; placeholders do not nest, write {{ for a brace"
		}
		found = append(found, one)
	}
	return found
}
