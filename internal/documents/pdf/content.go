package pdf

import (
	"bytes"
	"context"
	"math"
	"strings"
	"unicode/utf8"
)

// matrix is a transformation of coordinates.
type matrix [6]float64

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// glyph is a character on a page, in a coordinate system in which its text runs to the
// right.
type glyph struct {
	x, y  float64 // the start on the baseline
	width float64
	size  float64 // of the font, in points
	angle int     // of the text on the page, in degrees
	run   int     // the operation that shows it
	text  string
	bold  bool
}

// graphics is the state that q and Q save.
type graphics struct {
	ctm                              matrix
	font                             *font
	size, charSpace, wordSpace, rise float64
	leading, horizontal              float64
}

// interpreter executes the content of a page for its text.
type interpreter struct {
	*file
	fonts      map[ref]*font
	state      graphics
	saved      []graphics
	text       matrix // the text matrix
	line       matrix // the text line matrix
	glyphs     []glyph
	images     bool
	runs       int // operations that show text
	operations int
	forms      int
	actual     []*string // the replacement texts of marked content, nil entries without one
}

const (
	maxGlyphs     = 1_000_000 // on a page
	maxOperations = 5_000_000 // on a page
	maxFormDepth  = 16        // of forms in forms
	maxForms      = 10_000    // that a page shows
	maxOperands   = 1024
)

// page reads the text of a page.
func (f *file) page(node pageNode, fonts map[ref]*font) (*Page, error) {
	in := &interpreter{file: f, fonts: fonts, state: graphics{ctm: rotation(node.rotation), horizontal: 1}}
	var content []byte
	parts := f.list(node.contents)
	for _, part := range parts {
		if s, ok := f.resolve(part).(*stream); ok {
			data, err := f.decode(s)
			if err == errTooLarge { //nolint:errorlint // never wrapped
				return nil, ErrTooLarge
			}
			content = append(append(content, data...), '\n')
		}
	}
	if err := in.run(content, node.resources, 0); err != nil {
		return nil, err
	}
	in.state = graphics{ctm: rotation(node.rotation), horizontal: 1} // the content may not restore it
	in.saved, in.actual = nil, nil
	if err := in.annotations(node); err != nil {
		return nil, err
	}
	page := &Page{Images: in.images}
	for _, g := range in.glyphs {
		if g.text == unknown {
			page.Unknown++
		} else {
			page.Known += utf8.RuneCountInString(strings.TrimSpace(g.text))
		}
	}
	page.Blocks = layout(in.glyphs)
	return page, nil
}

// rotation returns the transformation of a page that is shown rotated clockwise.
func rotation(degrees int) matrix {
	switch ((degrees%360 + 360) % 360) / 90 {
	case 1:
		return matrix{0, -1, 1, 0, 0, 0}
	case 2:
		return matrix{-1, 0, 0, -1, 0, 0}
	case 3:
		return matrix{0, 1, -1, 0, 0, 0}
	}
	return matrix{1, 0, 0, 1, 0, 0}
}

// run executes a content stream.
func (in *interpreter) run(content []byte, resources dict, depth int) error {
	l := &lexer{data: content}
	var operands []object
	for !l.end() {
		o := l.next()
		op, isOperator := o.(keyword)
		if !isOperator {
			if len(operands) < maxOperands {
				operands = append(operands, o)
			}
			continue
		}
		if in.operations++; in.operations > maxOperations {
			return nil // what follows is not text of a real page
		}
		if in.operations%1024 == 0 && in.ctx.Err() != nil {
			return context.Cause(in.ctx)
		}
		if op == "BI" {
			skipImage(l)
			in.images = true
		} else if err := in.execute(op, operands, resources, depth); err != nil {
			return err
		}
		operands = operands[:0]
	}
	return nil
}

// skipImage moves past an image in the content.
func skipImage(l *lexer) {
	for at := l.pos; ; {
		next := bytes.Index(l.data[at:], []byte("EI"))
		if next < 0 {
			l.pos = len(l.data)
			return
		}
		at += next + 2
		if isWhite(l.data[at-3]) && (at == len(l.data) || isWhite(l.data[at])) {
			l.pos = at
			return
		}
	}
}

// numbers returns the operands as n numbers; those that are missing are 0.
func numbers(operands []object, n int) []float64 {
	out := make([]float64, n)
	for i := range min(n, len(operands)) {
		out[i], _ = operands[i].(float64)
	}
	return out
}

func matrixOf(operands []object) matrix { return matrix(numbers(operands, 6)) }

// execute executes an operator of the graphics state or of marked content.
func (in *interpreter) execute(op keyword, operands []object, resources dict, depth int) error {
	switch op {
	case "q":
		if len(in.saved) < 1000 {
			in.saved = append(in.saved, in.state)
		}
	case "Q":
		if n := len(in.saved); n > 0 {
			in.state, in.saved = in.saved[n-1], in.saved[:n-1]
		}
	case "cm":
		in.state.ctm = matrixOf(operands).times(in.state.ctm)
	case "Do":
		return in.external(operands, resources, depth)
	case "BDC", "BMC":
		in.beginMarked(operands, resources)
	case "EMC":
		if n := len(in.actual); n > 0 {
			in.actual = in.actual[:n-1]
		}
	default:
		in.textOperator(op, operands, resources)
	}
	return nil
}

// beginMarked begins marked content, which may have a replacement text.
func (in *interpreter) beginMarked(operands []object, resources dict) {
	var replacement *string
	if len(operands) == 2 {
		properties := operands[1]
		if n, ok := properties.(name); ok {
			properties = in.dict(resources["Properties"])[n]
		}
		if s, ok := in.resolve(in.dict(properties)["ActualText"]).(text); ok {
			decoded := decodeText(s)
			replacement = &decoded
		}
	}
	if len(in.actual) < 1000 {
		in.actual = append(in.actual, replacement)
	}
}

// external shows a form or an image.
func (in *interpreter) external(operands []object, resources dict, depth int) error {
	if len(operands) == 0 {
		return nil
	}
	s, ok := in.resolve(in.dict(resources["XObject"])[nameOf(operands[0])]).(*stream)
	if !ok {
		return nil
	}
	if in.resolve(s.dict["Subtype"]) == name("Image") {
		in.images = true
		return nil
	}
	return in.form(s, resources, depth)
}

// form shows a form, which has its own resources or those of its page.
func (in *interpreter) form(s *stream, resources dict, depth int) error {
	if in.forms++; depth >= maxFormDepth || in.forms > maxForms {
		return nil
	}
	data, err := in.decode(s)
	if err != nil {
		if err == errTooLarge { //nolint:errorlint // never wrapped
			return ErrTooLarge
		}
		return nil // a damaged form has no text
	}
	state, saved := in.state, in.saved
	in.saved = nil
	if m, ok := in.resolve(s.dict["Matrix"]).(array); ok {
		in.state.ctm = matrixOf(m).times(in.state.ctm)
	}
	own := in.dict(s.dict["Resources"])
	if own == nil {
		own = resources
	}
	err = in.run(data, own, depth+1)
	in.state, in.saved = state, saved
	return err
}

// textOperator executes an operator of text; it ignores others.
func (in *interpreter) textOperator(op keyword, operands []object, resources dict) {
	n := numbers(operands, 3)
	switch op {
	case "BT":
		in.text, in.line = matrix{1, 0, 0, 1, 0, 0}, matrix{1, 0, 0, 1, 0, 0}
	case "Tc":
		in.state.charSpace = n[0]
	case "Tw":
		in.state.wordSpace = n[0]
	case "Tz":
		in.state.horizontal = n[0] / 100
	case "TL":
		in.state.leading = n[0]
	case "Ts":
		in.state.rise = n[0]
	case "Tf":
		if len(operands) == 2 {
			in.state.font, in.state.size = in.findFont(operands[0], resources), n[1]
		}
	case "Td":
		in.move(n[0], n[1])
	case "TD":
		in.state.leading = -n[1]
		in.move(n[0], n[1])
	case "Tm":
		in.line = matrixOf(operands)
		in.text = in.line
	case "T*":
		in.move(0, -in.state.leading)
	case "Tj", "'", "\"":
		if op != "Tj" {
			in.move(0, -in.state.leading)
		}
		if op == "\"" {
			in.state.wordSpace, in.state.charSpace = n[0], n[1]
		}
		if len(operands) > 0 {
			s, _ := operands[len(operands)-1].(text)
			in.runs++
			in.show(s)
		}
	case "TJ":
		if len(operands) > 0 {
			in.runs++
			in.showArray(operands[0])
		}
	}
}

// move begins a line relative to the current one.
func (in *interpreter) move(x, y float64) {
	in.line = matrix{1, 0, 0, 1, x, y}.times(in.line)
	in.text = in.line
}

func (in *interpreter) findFont(o object, resources dict) *font {
	entry := in.dict(resources["Font"])[nameOf(o)]
	r, isRef := entry.(ref)
	if known, ok := in.fonts[r]; ok && isRef {
		return known
	}
	loaded := in.loadFont(entry)
	if isRef && len(in.fonts) < 5000 {
		in.fonts[r] = loaded
	}
	return loaded
}

// showArray shows strings with adjustments between them.
func (in *interpreter) showArray(o object) {
	parts, _ := o.(array)
	for _, part := range parts {
		switch part := part.(type) {
		case text:
			in.show(part)
		case float64:
			in.advance(-part / 1000 * in.state.size)
		}
	}
}

// advance moves the text position along the line.
func (in *interpreter) advance(by float64) {
	if in.state.font != nil && in.state.font.vertical {
		in.text = matrix{1, 0, 0, 1, 0, by}.times(in.text)
		return
	}
	in.text = matrix{1, 0, 0, 1, by * in.state.horizontal, 0}.times(in.text)
}

// show shows a string.
func (in *interpreter) show(s text) {
	t := in.state.font
	if t == nil || len(in.glyphs) >= maxGlyphs {
		return
	}
	for _, c := range t.codes(s) {
		spacing := in.state.charSpace
		if c.space {
			spacing += in.state.wordSpace
		}
		in.emit(c, t)
		if t.vertical {
			in.advance(-in.state.size + spacing)
		} else {
			in.advance(c.width*in.state.size + spacing)
		}
	}
}

// unknown is the text of a glyph of which the file does not state the character.
const unknown = "\uFFFD"

// emit adds the glyph of a code at the text position.
func (in *interpreter) emit(c code, t *font) {
	value := c.text
	if strings.Trim(value, "\x00\uFFFD") == "" {
		value = unknown
		if c.blank {
			value = ""
		}
	}
	for i, replacement := range in.actual {
		if replacement != nil {
			value = *replacement
			empty := ""
			in.actual[i] = &empty // shown once
			break
		}
	}
	if value == "" {
		return
	}
	m := matrix{in.state.size * in.state.horizontal, 0, 0, in.state.size, 0, in.state.rise}.times(in.text).times(in.state.ctm)
	angle := math.Atan2(m[1], m[0])
	size := math.Hypot(m[2], m[3]) * t.height
	width := c.width * math.Hypot(m[0], m[1])
	if t.vertical {
		angle -= math.Pi / 2
		width = size
	}
	if size == 0 || math.IsNaN(size+width+m[4]+m[5]) || math.IsInf(size+width+m[4]+m[5], 0) {
		return
	}
	degrees := int(math.Round(angle*180/math.Pi)+360) % 360
	sin, cos := math.Sincos(float64(degrees) * math.Pi / 180)
	in.glyphs = append(in.glyphs, glyph{
		x: m[4]*cos + m[5]*sin, y: -m[4]*sin + m[5]*cos,
		width: width, size: size, angle: degrees, run: in.runs, text: value, bold: t.bold,
	})
}
