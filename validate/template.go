package validate

import "github.com/qtype-dev/qtype/internal/prompttemplate"

// placeholder is a {…} of a prompt template, or an unmatched brace.
type placeholder struct {
	text    string // as written, with braces
	name    string // the text before ! and :
	problem string // why the placeholder is invalid; empty if it is valid
	// The parts of a valid one after the name, as of prompttemplate.Piece.
	conversion, spec string
	at               int  // its first byte
	dollar           bool // a $ is before it
	place            excerpt
}

// placeholders returns the placeholders of a template, including invalid ones.
func placeholders(text string) []placeholder {
	var found []placeholder
	for _, p := range prompttemplate.Parse(text) {
		if p.Kind == prompttemplate.Literal {
			continue
		}
		one := placeholder{text: p.Text, name: p.Name, conversion: p.Conversion, spec: p.Spec, at: p.At, place: excerptAt(text, p.At, len(p.Text))}
		switch p.Kind {
		case prompttemplate.Stray:
			one.problem = "unmatched }; write }} for a brace"
		case prompttemplate.Unclosed:
			one.problem = "unclosed {; write {{ for a brace"
		case prompttemplate.Nested:
			one.problem = "nested placeholder; write {{ for a brace"
		}
		found = append(found, one)
	}
	return found
}
