package steps

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/prompttemplate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// promptTemplate fills a template with the row's values (steps.md 2).
type promptTemplate struct {
	pieces  []piece
	out     slot
	buffers sync.Pool // of *[]byte, in which rows are filled: a text is then made in its exact size
}

func buildPromptTemplate(s *spec.PromptTemplate, env *Env) (Runner, error) {
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
	text, err := p.fill(row)
	if err != nil {
		return err
	}
	p.out.write(row, text)
	return emit(row)
}

// keptBuffer is the size in bytes up to which a buffer is kept for the next row.
const keptBuffer = 64 << 10

// fill is the template's text for a row.
func (p *promptTemplate) fill(row *Row) (string, error) {
	kept, _ := p.buffers.Get().(*[]byte)
	if kept == nil {
		kept = new([]byte)
	}
	b := (*kept)[:0]
	for i := range p.pieces {
		var err error
		if b, err = p.pieces[i].fill(b, row); err != nil {
			return "", err
		}
	}
	text := string(b)
	if cap(b) <= keptBuffer {
		*kept = b
		p.buffers.Put(kept)
	}
	return text, nil
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

// fill appends the piece with a row's value.
func (p *piece) fill(b []byte, row *Row) ([]byte, error) {
	if p.format == nil {
		return append(b, p.text...), nil
	}
	v, err := p.slot.read(row)
	if err != nil {
		return nil, err
	}
	if p.format.plain() {
		if _, special := v.(float64); !special {
			return value.AppendText(b, v), nil
		}
	}
	s, err := p.format.apply(v)
	if err != nil {
		return nil, fmt.Errorf("placeholder %s: %w", brief(p.text), err)
	}
	return append(b, s...), nil
}

// templateReader makes pieces of what package template read.
type templateReader struct {
	text   string
	inputs map[string]slot
	names  []string // of the inputs, in their order
}

// compileTemplate reads a template once, so that its faults show before the first row.
func compileTemplate(text string, inputs []slot) ([]piece, error) {
	r := &templateReader{text: text, inputs: map[string]slot{}}
	for _, in := range inputs {
		r.inputs[in.of.ID] = in
		r.names = append(r.names, in.of.ID)
	}
	var pieces []piece
	for _, p := range prompttemplate.Parse(text) {
		made, err := r.piece(p)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, made)
	}
	return pieces, nil
}

// piece prepares one piece for the rows.
func (r *templateReader) piece(p prompttemplate.Piece) (piece, error) {
	switch p.Kind {
	case prompttemplate.Literal:
		return piece{text: p.Text}, nil
	case prompttemplate.Stray:
		return piece{}, r.fail(p.At, "a single } stands for nothing: write }} for a brace")
	case prompttemplate.Unclosed:
		return piece{}, r.fail(p.At, "this { is never closed: write {{ for a brace")
	case prompttemplate.Nested:
		return piece{}, r.fail(p.At, "a { inside a placeholder: placeholders do not nest; write {{ for a brace")
	}
	in, ok := r.inputs[p.Name]
	if !ok {
		return piece{}, r.fail(p.At, "%s", r.noInput(p.Name))
	}
	f, err := parseFormat(p.Conversion, p.Spec)
	if err == nil {
		err = f.checkType(in.of.Type)
	}
	if err != nil {
		return piece{}, r.fail(p.At, "placeholder {%s}: %s", brief(p.Text[1:len(p.Text)-1]), err)
	}
	return piece{text: p.Text, slot: in, format: f}, nil
}

// errNoInput says why a placeholder's name is no input.
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
