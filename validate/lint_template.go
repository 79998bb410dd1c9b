package validate

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/prompttemplate"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// templateLint returns the warnings about the text of templates.
func templateLint() []rule {
	return []rule{doubledBraces(), unusedTemplateInput(), verbatimPlaceholder(), mediaInTemplate()}
}

func doubledBraces() rule {
	return rule{code: "QT921", warning: true, check: on(func(p *ruleContext, s *spec.PromptTemplate) {
		for _, one := range doubledInputs(s) {
			name, whole := strings.TrimSpace(strings.Trim(one.text, "{}")), placeOf(s, "template", "id")
			at := within(whole, one.place)
			_, isRaw := whole.Text()
			switch {
			case one.dollar && !isRaw && isAfterDollar(at): // QT005: a variable of the environment
				continue
			case one.dollar && !isRaw:
				p.list.Add(p.reportAt(at, "the template of step %q prints $%s as ${ %s }", s.ID, one.text, name).
					WithHint("write ${DOLLAR:-$}{%s} for a $ and the value of %q; ${%s} is an environment variable", name, name, name))
				continue
			}
			p.list.Add(p.reportAt(at, "the template of step %q prints %s as { %s }", s.ID, one.text, name).
				WithHint("did you mean \"{%s}\"? templates have single braces", name).
				WithSuggestion("{" + name + "}").WithInside(one.text))
		}
	})}
}

// isAfterDollar reports whether a span begins after a $.
func isAfterDollar(at source.Span) bool {
	line := at.File.Line(at.Start.Line)
	return strings.HasSuffix(line[:byteAt(line, at.Start.Column)], "$")
}

func mediaInTemplate() rule {
	return rule{code: "QT924", warning: true, check: on(func(p *ruleContext, s *spec.PromptTemplate) {
		for _, in := range s.Common().AllInputs() {
			if in.To != nil && mediaType(in.To.Type) != "" {
				p.list.Add(p.reportAt(in.Span, "the template of step %q writes %q, which has the type %s, as a text", s.ID, in.ID, in.To.Type).
					WithHint("make %q an input of the step that calls the model", in.ID))
			}
		}
	})}
}

// doubled matches a name in doubled braces, with a character on both sides that may be a
// third brace.
var doubled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{+[ \t]*[A-Za-z_][A-Za-z0-9_]*[ \t]*\}+`) })

// doubledInputs returns the inputs of a step that its template has in doubled braces.
func doubledInputs(s *spec.PromptTemplate) []placeholder {
	var found []placeholder
	ins := s.Common().AllInputs()
	for _, at := range doubled().FindAllStringIndex(s.Template, -1) {
		text := s.Template[at[0]:at[1]]
		name := strings.Trim(text, "{}")
		if len(text)-len(name) == 4 && strings.HasPrefix(text, "{{") && strings.HasSuffix(text, "}}") && containsPort(ins, strings.TrimSpace(name)) {
			found = append(found, placeholder{text: text, name: strings.TrimSpace(name), place: excerptAt(s.Template, at[0], len(text)), dollar: strings.HasSuffix(s.Template[:at[0]], "$")})
		}
	}
	return found
}

func unusedTemplateInput() rule {
	return rule{code: "QT922", warning: true, check: on(func(p *ruleContext, s *spec.PromptTemplate) {
		if !isDecided(s.Template) || s.Template == "" || !s.Position().Complete("template", "inputs") {
			return
		}
		ins, used := s.Common().AllInputs(), doubledInputs(s)
		for _, one := range placeholders(s.Template) {
			if one.problem != "" || !containsPort(ins, one.name) {
				return // QT905 reports it, and it may be the missing one
			}
			used = append(used, one)
		}
		for _, in := range ins {
			if !slices.ContainsFunc(used, func(one placeholder) bool { return one.name == in.ID }) {
				p.list.Add(p.reportAt(in.Span, "the template of step %q never uses its input %q", s.ID, in.ID).
					WithHint("write {%s} in the template, or remove the input", in.ID))
			}
		}
	})}
}

// bracedName matches a name in the braces or marks of other languages of templates.
var bracedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\{\{?|\$\{|<%=?|\$)\s*([A-Za-z_][A-Za-z0-9_]*)(?:\s*(?:\}\}?|%>))?`)
})

// withoutBraces adds to the error of an expression that it has a name in braces, as
// templates have them: expressions do not.
func withoutBraces(found diag.Diagnostic, x *spec.Expression) diag.Diagnostic {
	at := strings.IndexAny(x.Text, "{$<")
	for at >= 0 {
		if match := bracedName().FindStringSubmatch(x.Text[at:]); match != nil && (x.Text[at] != '<' || strings.HasPrefix(match[0], "<%")) {
			found.Span = partOf(x, at, len(match[0]))
			found.Message = "the expression has " + textfmt.OneLine(match[0]) + ": expressions name variables without braces"
			found.Suggestion, found.Hint = "", ""
			return found.WithSuggestion(match[1])
		}
		next := strings.IndexAny(x.Text[at+1:], "{$<")
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return found
}

func verbatimPlaceholder() rule {
	return rule{code: "QT923", warning: true, check: on(func(p *ruleContext, n spec.Node) {
		for _, text := range spec.VerbatimTexts(n) {
			reported := map[string]bool{}
			for _, one := range text.Placeholders(func(name string) bool { return p.isVariable(p.here.flow, name) }) {
				if reported[one.Text] {
					continue
				}
				reported[one.Text] = true
				at := within(placeOf(n, text.Key), excerptAt(text.Text, one.At, len(one.Text)))
				p.list.Add(p.reportAt(at, "%s is no template: the model reads %s as it is written", text.Key, one.Text).
					WithHint("%s", insteadOfPlaceholder(n)))
			}
		}
	})}
}

// isVariable reports whether a flow has a variable, or some flow if it is nil.
func (p *ruleContext) isVariable(f *spec.Flow, name string) bool {
	if f == nil {
		return len(p.shared[name]) > 0
	}
	return p.locals[f][name] != nil
}

// insteadOfPlaceholder returns how the model of a node gets the value of a variable.
func insteadOfPlaceholder(n spec.Node) string {
	if _, isStep := n.(spec.Step); isStep {
		return "pass the value in an input of the step: a PromptTemplate before it fills {name}"
	}
	return "values that steps store for the session are sent by a context block of type variables"
}

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
