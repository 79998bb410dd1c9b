package steps

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/value"
)

// promptTemplate fills a template with the row's values (steps.md 2).
type promptTemplate struct {
	pieces []piece
	out    slot
}

func buildTemplate(s *spec.PromptTemplate, env *Env) (Runner, error) {
	out, err := env.single("output", s.Outputs)
	if err != nil {
		return nil, err
	}
	inputs, err := env.slots(s.Inputs)
	if err != nil {
		return nil, err
	}
	pieces, err := compileTemplate(s.Template, inputs)
	if err != nil {
		return nil, err
	}
	return &promptTemplate{pieces: pieces, out: out}, nil
}

// Process sets the output to the filled template.
func (p *promptTemplate) Process(_ context.Context, row *Row, emit Emit) error {
	var b strings.Builder
	for _, part := range p.pieces {
		if err := part.fill(&b, row); err != nil {
			return err
		}
	}
	p.out.write(row, b.String())
	return emit(row)
}

// TemplateError says where a template cannot be read.
type TemplateError struct {
	Line   int    // the line of the template, counted from 1
	Column int    // in characters, counted from 1
	Reason string // what is wrong there
}

// Error names the place and the reason.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("template line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// piece is literal text, or a placeholder where format is set.
type piece struct {
	text   string  // the literal, or the placeholder as it is written
	slot   slot    // the placeholder's variable
	format *format // how it is shown
}

// fill writes the piece with a row's value.
func (p piece) fill(b *strings.Builder, row *Row) error {
	if p.format == nil {
		b.WriteString(p.text)
		return nil
	}
	v, err := p.slot.read(row)
	if err != nil {
		return err
	}
	s, err := p.format.apply(v)
	if err != nil {
		return fmt.Errorf("placeholder %s: %w", brief(p.text), err)
	}
	b.WriteString(s)
	return nil
}

// templateReader cuts a template into pieces. The syntax is that of Python's
// str.format with named arguments: {name}, {name!r}, {name:>8.2f}, {{ and }}.
type templateReader struct {
	text   string
	at     int // the next byte
	inputs map[string]slot
	names  []string // of the inputs, in their order
	pieces []piece
	lit    strings.Builder // literal text that is not yet a piece
}

// compileTemplate reads a template once, so that its faults show before the first row.
func compileTemplate(text string, inputs []slot) ([]piece, error) {
	r := &templateReader{text: text, inputs: map[string]slot{}}
	for _, in := range inputs {
		r.inputs[in.of.ID] = in
		r.names = append(r.names, in.of.ID)
	}
	for r.at < len(text) {
		if err := r.next(); err != nil {
			return nil, err
		}
	}
	r.literal()
	return r.pieces, nil
}

// next reads literal text up to a brace, and the brace with what belongs to it.
func (r *templateReader) next() error {
	rest := r.text[r.at:]
	n := strings.IndexAny(rest, "{}")
	if n < 0 {
		n = len(rest)
	}
	r.lit.WriteString(rest[:n])
	r.at += n
	rest = rest[n:]
	switch {
	case rest == "":
		return nil
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
		r.lit.WriteByte(rest[0])
		r.at += 2
		return nil
	case rest[0] == '}':
		return r.fail(r.at, "a single } stands for nothing: write }} for a brace")
	}
	return r.placeholder()
}

// literal ends the literal text so far.
func (r *templateReader) literal() {
	if r.lit.Len() > 0 {
		r.pieces = append(r.pieces, piece{text: r.lit.String()})
		r.lit.Reset()
	}
}

// placeholder reads {name}, from its brace on.
func (r *templateReader) placeholder() error {
	start := r.at
	end := strings.IndexAny(r.text[start+1:], "{}")
	if end < 0 {
		return r.fail(start, "this { is never closed: write {{ for a brace")
	}
	end += start + 1
	if r.text[end] == '{' {
		return r.fail(end, "a { inside a placeholder: placeholders do not nest; write {{ for a brace")
	}
	name, conversion, spec := cutPlaceholder(r.text[start+1 : end])
	in, ok := r.inputs[name]
	if !ok {
		return r.fail(start, "%s", r.noInput(name))
	}
	f, err := parseFormat(conversion, spec)
	if err == nil {
		err = f.suits(in.of.Type)
	}
	if err != nil {
		return r.fail(start, "placeholder {%s}: %s", brief(r.text[start+1:end]), err)
	}
	r.literal()
	r.pieces = append(r.pieces, piece{text: r.text[start : end+1], slot: in, format: f})
	r.at = end + 1
	return nil
}

// cutPlaceholder parts name!conversion:spec.
func cutPlaceholder(s string) (name, conversion, spec string) {
	i := strings.IndexAny(s, "!:")
	if i < 0 {
		return s, "", ""
	}
	name = s[:i]
	if s[i] == '!' {
		conversion, spec, _ = strings.Cut(s[i:], ":")
		return name, conversion, spec
	}
	return name, "", s[i+1:]
}

// noInput says why a placeholder's name is no input.
func (r *templateReader) noInput(name string) string {
	bare := strings.TrimSpace(name)
	base, _, _ := strings.Cut(bare, ".")
	base, _, _ = strings.Cut(base, "[")
	switch {
	case bare == "" || strings.Trim(bare, "0123456789") == "":
		return fmt.Sprintf("the placeholder {%s} has no name: write the name of an input, or {{ }} for braces", brief(name))
	case bare != name && r.has(bare):
		return fmt.Sprintf("the placeholder {%s} has blanks around its name: write {%s}", brief(name), brief(bare))
	case base != bare && r.has(base):
		return fmt.Sprintf("the placeholder {%s} looks into %s, which templates cannot do", brief(name), base)
	case len(r.names) == 0:
		return fmt.Sprintf("no input has the name %s: the step has none", value.Describe(name))
	}
	return fmt.Sprintf("no input has the name %s; inputs are %s", value.Describe(name), strings.Join(r.names, ", "))
}

// brief is a piece of a template for an error message: short, on one line.
func brief(s string) string {
	const longest = 40 // characters
	s = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, s)
	if runes := []rune(s); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return s
}

func (r *templateReader) has(name string) bool {
	_, ok := r.inputs[name]
	return ok
}

// fail is an error at a byte of the template.
func (r *templateReader) fail(at int, reason string, args ...any) error {
	before := r.text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return &TemplateError{
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[start:]),
		Reason: fmt.Sprintf(reason, args...),
	}
}

// shown is a value's text under a conversion: !r quotes a text.
func shown(v any, conversion string) string {
	s := value.Text(v)
	if _, isText := v.(string); !isText || conversion == "" || conversion == "!s" {
		return s
	}
	return pythonQuote(s, conversion == "!a")
}
