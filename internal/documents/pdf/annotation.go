package pdf

import (
	"math"
	"strings"
)

// The flags of annotations and fields that matter for their text.
const (
	flagHidden     = 1 << 1
	flagNoView     = 1 << 5
	flagPassword   = 1 << 13 // of a text field
	flagPushButton = 1 << 16 // of a button
)

const (
	maxAnnotations = 10_000 // of a page
	maxParents     = 32     // of a field
)

// annotations shows the values of form fields and the free texts of a page.
func (in *interpreter) annotations(node pageNode) error {
	list := in.list(node.annotations)
	for _, o := range list[:min(len(list), maxAnnotations)] {
		d := in.dict(o)
		if in.integer(d["F"], 0)&(flagHidden|flagNoView) != 0 {
			continue
		}
		var err error
		switch nameOf(in.resolve(d["Subtype"])) {
		case "Widget":
			err = in.field(d)
		case "FreeText":
			err = in.showAnnotation(d, decodeText(in.resolve(d["Contents"])))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// field shows a form field.
func (in *interpreter) field(d dict) error {
	flags := in.integer(in.inherited(d, "Ff"), 0)
	switch nameOf(in.inherited(d, "FT")) {
	case "Btn":
		if flags&flagPushButton != 0 {
			return in.showAnnotation(d, "")
		}
		mark := "☐"
		if state := nameOf(in.resolve(d["AS"])); state != "" && state != "Off" {
			mark = "☑"
		}
		in.write(in.rectangle(d), mark)
	case "Tx", "Ch":
		if flags&flagPassword == 0 {
			return in.showAnnotation(d, in.fieldValue(d))
		}
	case "Sig":
		return in.showAnnotation(d, "")
	}
	return nil
}

// inherited returns an entry of a field or of its next parent that has it.
func (in *interpreter) inherited(d dict, key name) object {
	for range maxParents {
		if o := in.resolve(d[key]); o != nil || d["Parent"] == nil {
			return o
		}
		d = in.dict(d["Parent"])
	}
	return nil
}

// fieldValue returns the text of a field: of a choice, what readers show of the chosen options.
func (in *interpreter) fieldValue(d dict) string {
	shown := map[string]string{}
	options, _ := in.inherited(d, "Opt").(array)
	for _, o := range options {
		if pair, ok := in.resolve(o).(array); ok && len(pair) == 2 {
			shown[decodeText(in.resolve(pair[0]))] = decodeText(in.resolve(pair[1]))
		}
	}
	value := in.inherited(d, "V")
	values, isList := value.(array)
	if !isList {
		values = array{value}
	}
	var lines []string
	for _, o := range values {
		line := decodeText(in.resolve(o))
		if name, ok := shown[line]; ok {
			line = name
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// rectangle returns the place of an annotation: left, bottom, right, top.
func (in *interpreter) rectangle(d dict) [4]float64 {
	list, _ := in.resolve(d["Rect"]).(array)
	values := make([]object, len(list))
	for i, o := range list {
		values[i] = in.resolve(o)
	}
	n := numbers(values, 4)
	return [4]float64{min(n[0], n[2]), min(n[1], n[3]), max(n[0], n[2]), max(n[1], n[3])}
}

// showAnnotation shows the appearance of an annotation, or its text if the appearance has none.
func (in *interpreter) showAnnotation(d dict, text string) error {
	before, box := len(in.glyphs), in.rectangle(d)
	if s, ok := in.resolve(in.dict(d["AP"])["N"]).(*stream); ok {
		base := in.state
		in.state = graphics{ctm: in.placed(s, box).times(base.ctm), horizontal: 1}
		err := in.form(s, nil, 0)
		in.state = base
		if err != nil {
			return err
		}
	}
	if len(in.glyphs) == before {
		in.write(box, text)
		return nil
	}
	in.clearLeaders(box, before)
	return nil
}

// placed returns the transformation of an appearance into the rectangle of its annotation (ISO 32000-2, 12.5.5).
func (in *interpreter) placed(s *stream, box [4]float64) matrix {
	bounds, _ := in.resolve(s.dict["BBox"]).(array)
	n := numbers(bounds, 4)
	m := matrix{1, 0, 0, 1, 0, 0}
	if own, ok := in.resolve(s.dict["Matrix"]).(array); ok {
		m = matrixOf(own)
	}
	left, bottom, right, top := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, corner := range [][2]float64{{n[0], n[1]}, {n[2], n[1]}, {n[0], n[3]}, {n[2], n[3]}} {
		x, y := corner[0]*m[0]+corner[1]*m[2]+m[4], corner[0]*m[1]+corner[1]*m[3]+m[5]
		left, bottom, right, top = min(left, x), min(bottom, y), max(right, x), max(top, y)
	}
	if right <= left || top <= bottom {
		return matrix{1, 0, 0, 1, box[0], box[1]}
	}
	x, y := (box[2]-box[0])/(right-left), (box[3]-box[1])/(top-bottom)
	return matrix{x, 0, 0, y, box[0] - left*x, box[1] - bottom*y}
}

// write adds a text at a place, line by line, as a reader draws it.
func (in *interpreter) write(box [4]float64, text string) {
	const size, letter, inset = 10, 0.5, 2
	before, state := len(in.glyphs), in.state
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	top := box[3] - size
	if len(lines) == 1 {
		top = (box[1]+box[3]-size)/2 + inset
	}
	in.state.size, in.state.horizontal, in.state.rise = size, 1, 0
	for i, line := range lines {
		in.text = matrix{1, 0, 0, 1, box[0] + inset, top - float64(i)*1.2*size}
		for _, r := range line {
			if len(in.glyphs) >= maxGlyphs {
				break
			}
			in.emit(code{text: string(r), width: letter}, &font{height: 1})
			in.text = matrix{1, 0, 0, 1, letter * size, 0}.times(in.text)
		}
	}
	in.state = state
	in.clearLeaders(box, before)
}

// clearLeaders removes the lines of underscores or points at which a text was written into a rectangle after
// the first glyphs.
func (in *interpreter) clearLeaders(box [4]float64, first int) {
	page := in.state.ctm
	if len(in.glyphs) == first || page[0] != 1 || page[3] != 1 { // nothing was written, or the page is rotated
		return
	}
	var kept []glyph
	for i := 0; i < first; {
		end, crossed := i, false
		for end < first && isLeader(in.glyphs[end]) && in.glyphs[end].y == in.glyphs[i].y {
			g := in.glyphs[end]
			crossed = crossed || g.x > box[0]-g.width && g.x < box[2] && g.y > box[1]-g.size/2 && g.y < box[3]
			end++
		}
		if !crossed {
			end = max(end, i+1)
			kept = append(kept, in.glyphs[i:end]...)
		}
		i = end
	}
	in.glyphs = append(kept, in.glyphs[first:]...)
}

// isLeader reports whether a glyph is part of a line to write on.
func isLeader(g glyph) bool { return g.angle == 0 && strings.Trim(g.text, "_.…") == "" }
