package steps

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/prompttemplate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// promptTemplate fills a template with the values of a row.
type promptTemplate struct {
	pieces  []piece
	out     slot
	buffers sync.Pool // of *[]byte in which rows are filled, so that the text is allocated in its exact size
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

// maxPooledBuffer is the capacity in bytes up to which a buffer is reused.
const maxPooledBuffer = 64 << 10

// fill returns the template's text for a row.
func (p *promptTemplate) fill(row *Row) (string, error) {
	pooled, _ := p.buffers.Get().(*[]byte)
	if pooled == nil {
		pooled = new([]byte)
	}
	b := (*pooled)[:0]
	for i := range p.pieces {
		var err error
		if b, err = p.pieces[i].fill(b, row); err != nil {
			return "", err
		}
	}
	text := string(b)
	if cap(b) <= maxPooledBuffer {
		*pooled = b
		p.buffers.Put(pooled)
	}
	return text, nil
}

// TemplateError reports a syntax error of a template.
type TemplateError struct {
	Line   int    // the line of the template, counted from 1
	Column int    // in characters, counted from 1
	Reason string // what is wrong
}

// Error names the position and the reason.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("template line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// piece is literal text, or a placeholder if format is set.
type piece struct {
	text   string  // the literal, or the placeholder as written
	slot   slot    // variable of the placeholder
	format *format // format of the value
}

// fill appends the piece for a row.
func (p *piece) fill(b []byte, row *Row) ([]byte, error) {
	if p.format == nil {
		return append(b, p.text...), nil
	}
	v, err := p.slot.read(row)
	if err != nil {
		return nil, err
	}
	if p.format.IsPlain() {
		if _, special := v.(float64); !special {
			return value.AppendText(b, v), nil
		}
	}
	s, err := p.format.apply(v)
	if err != nil {
		return nil, fmt.Errorf("placeholder %s: %w", prompttemplate.Brief(p.text), err)
	}
	return append(b, s...), nil
}

// templateReader compiles the pieces of a parsed template.
type templateReader struct {
	text   string
	inputs map[string]slot
	names  []string // of the inputs, in order
}

// compileTemplate parses a template once, so that errors are reported before the
// first row.
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
		return piece{}, r.fail(p.At, "unmatched }; write }} for a brace")
	case prompttemplate.Unclosed:
		return piece{}, r.fail(p.At, "unclosed {; write {{ for a brace")
	case prompttemplate.Nested:
		return piece{}, r.fail(p.At, "{ inside a placeholder; placeholders do not nest, write {{ for a brace")
	}
	in, ok := r.inputs[p.Name]
	if !ok {
		return piece{}, r.fail(p.At, "%s", r.noInput(p.Name))
	}
	f, err := prompttemplate.ParseFormat(p.Conversion, p.Spec)
	if err == nil {
		err = f.CheckType(in.of.Type)
	}
	if err != nil {
		return piece{}, r.fail(p.At, "placeholder {%s}: %s", prompttemplate.Brief(p.Text[1:len(p.Text)-1]), err)
	}
	return piece{text: p.Text, slot: in, format: &format{*f}}, nil
}

// noInput explains why the name of a placeholder is not an input.
func (r *templateReader) noInput(name string) string {
	bare := strings.TrimSpace(name)
	base, _, _ := strings.Cut(bare, ".")
	base, _, _ = strings.Cut(base, "[")
	switch {
	case bare == "" || strings.Trim(bare, "0123456789") == "":
		return fmt.Sprintf("the placeholder {%s} has no name; write the name of an input, or {{ }} for braces", prompttemplate.Brief(name))
	case bare != name && r.has(bare):
		return fmt.Sprintf("the placeholder {%s} has spaces around its name; write {%s}", prompttemplate.Brief(name), prompttemplate.Brief(bare))
	case base != bare && r.has(base):
		return fmt.Sprintf("the placeholder {%s} accesses a part of %s, which templates do not support", prompttemplate.Brief(name), base)
	case len(r.names) == 0:
		return fmt.Sprintf("no input has the name %s: the step has none", value.Describe(name))
	}
	return fmt.Sprintf("no input has the name %s; inputs are %s", value.Describe(name), strings.Join(r.names, ", "))
}

func (r *templateReader) has(name string) bool {
	_, ok := r.inputs[name]
	return ok
}

// fail returns an error at a byte offset of the template.
func (r *templateReader) fail(at int, reason string, args ...any) error {
	before := r.text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return &TemplateError{
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[start:]),
		Reason: fmt.Sprintf(reason, args...),
	}
}

// convert returns the text of a value under a conversion: !r quotes a text.
func convert(v any, conversion string) string {
	s := value.Text(v)
	if _, isText := v.(string); !isText || conversion == "" || conversion == "!s" {
		return s
	}
	return pythonQuote(s, conversion == "!a")
}
