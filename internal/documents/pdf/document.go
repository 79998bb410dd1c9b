// Package pdf reads the text of PDF files in reading order: columns one after the other,
// lines joined to paragraphs, with the size of the text, by which a caller recognizes
// headings, and rows of tables.
//
// It reads text only. Files may be damaged: tables of objects are rebuilt, and what
// cannot be decoded is left out. What a file can cost is limited by Limits and by the
// context, and the functions do not keep state.
package pdf

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Limits bound the reading of a file.
type Limits struct {
	Pages    int   // pages
	Unpacked int64 // bytes after decompression, of all streams together
}

// Document is the text of a file.
type Document struct {
	Title string // the title in the file's properties; empty if it has none
	Pages []Page // in order
}

// Page is the text of a page.
type Page struct {
	Label   string  // the number that readers show: "iv", "12"
	Blocks  []Block // in reading order
	Images  bool    // whether the page shows images
	Unknown int     // characters that no font of the page maps to Unicode; U+FFFD in the text
	Known   int     // the other characters
}

// Block is a paragraph, or a table.
type Block struct {
	Text string     // the text of a paragraph
	Size float64    // the size of most of its letters, in points
	Rows [][]string // the cells of a table; otherwise nil
}

// Read reads the text of a file. password opens a file that needs one. The error is one of this package, or the cause of the
// context.
func Read(ctx context.Context, data []byte, password string, limits Limits) (*Document, error) {
	f, err := open(ctx, data, password, limits)
	if err != nil {
		return nil, err
	}
	nodes, err := f.pages(limits.Pages)
	if err != nil {
		return nil, err
	}
	doc := &Document{Title: decodeText(f.resolve(f.dict(f.trailer["Info"])["Title"]))}
	if doc.Title == "untitled" || doc.Title == "(anonymous)" { // what ReportLab writes without a title
		doc.Title = ""
	}
	labels := f.labels(len(nodes))
	fonts := map[ref]*font{}
	for i, node := range nodes {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		page, err := f.page(node, fonts)
		if err != nil {
			return nil, err
		}
		page.Label = labels[i]
		doc.Pages = append(doc.Pages, *page)
		if i%64 == 63 {
			f.cache = map[int]object{} // objects of earlier pages
		}
	}
	if f.rebuilt && doc.empty() {
		return nil, ErrDamaged // the part with the text is missing
	}
	return doc, nil
}

// empty reports whether no page has text or images.
func (d *Document) empty() bool {
	return !slices.ContainsFunc(d.Pages, func(p Page) bool { return p.Known+p.Unknown > 0 || p.Images })
}

// pageNode is a page with the attributes that it inherits.
type pageNode struct {
	contents    object
	resources   dict
	rotation    int
	annotations object
}

// pages returns the pages of the tree, in order.
func (f *file) pages(most int) ([]pageNode, error) {
	type entry struct {
		o         object
		resources object
		rotation  int
		depth     int
	}
	var found []pageNode
	seen := map[ref]bool{}
	stack := []entry{{o: f.catalog()["Pages"]}}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if r, ok := e.o.(ref); ok {
			if seen[r] {
				continue
			}
			seen[r] = true
		}
		d, ok := f.resolve(e.o).(dict)
		if !ok || e.depth > maxDepth {
			continue
		}
		if d["Resources"] != nil {
			e.resources = d["Resources"]
		}
		e.rotation = f.integer(d["Rotate"], e.rotation)
		kids, isTree := f.resolve(d["Kids"]).(array)
		if isTree && d["Type"] != name("Page") {
			for i := len(kids) - 1; i >= 0; i-- {
				stack = append(stack, entry{kids[i], e.resources, e.rotation, e.depth + 1})
			}
			continue
		}
		if len(found) >= most {
			return nil, ErrPages
		}
		found = append(found, pageNode{contents: d["Contents"], resources: f.dict(e.resources), rotation: e.rotation, annotations: d["Annots"]})
	}
	if len(found) == 0 {
		return nil, ErrDamaged
	}
	return found, nil
}

// decodeText decodes a string of the document's properties: UTF-16, UTF-8 or PDFDocEncoding.
func decodeText(o object) string {
	s, _ := o.(text)
	b := string(s)
	switch {
	case strings.HasPrefix(b, "\xfe\xff"):
		return decodeUTF16(b[2:])
	case strings.HasPrefix(b, "\xef\xbb\xbf"):
		return strings.ToValidUTF8(b[3:], "\uFFFD")
	}
	var out strings.Builder
	for _, c := range []byte(b) {
		out.WriteString(winAnsi(c))
	}
	return strings.TrimSpace(out.String())
}

// decodeUTF16 decodes big-endian UTF-16.
func decodeUTF16(b string) string {
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return string(utf16.Decode(units))
}

// labelRange is how pages from one on are numbered.
type labelRange struct {
	first  int // the index of the first page
	style  name
	prefix string
	start  int
}

// labels returns the labels of the pages: their numbers, unless the file has others.
func (f *file) labels(pages int) []string {
	var ranges []labelRange
	f.collectLabels(f.catalog()["PageLabels"], &ranges, 0)
	slices.SortStableFunc(ranges, func(a, b labelRange) int { return a.first - b.first })
	labels := make([]string, pages)
	for i := range labels {
		labels[i] = strconv.Itoa(i + 1)
		for _, r := range slices.Backward(ranges) {
			if r.first <= i {
				labels[i] = r.label(i)
				break
			}
		}
	}
	return labels
}

// collectLabels reads a number tree.
func (f *file) collectLabels(o object, ranges *[]labelRange, depth int) {
	d := f.dict(o)
	if d == nil || depth > 8 || len(*ranges) > 1000 {
		return
	}
	numbers, _ := f.resolve(d["Nums"]).(array)
	for i := 0; i+1 < len(numbers); i += 2 {
		rule := f.dict(numbers[i+1])
		*ranges = append(*ranges, labelRange{
			first: f.integer(numbers[i], 0), style: nameOf(f.resolve(rule["S"])),
			prefix: decodeText(f.resolve(rule["P"])), start: f.integer(rule["St"], 1),
		})
	}
	kids, _ := f.resolve(d["Kids"]).(array)
	for _, kid := range kids {
		f.collectLabels(kid, ranges, depth+1)
	}
}

// label returns the label of a page.
func (r labelRange) label(index int) string {
	n := min(max(index-r.first+r.start, 1), 1_000_000)
	switch r.style {
	case "D":
		return r.prefix + strconv.Itoa(n)
	case "R":
		return r.prefix + roman(n)
	case "r":
		return r.prefix + strings.ToLower(roman(n))
	case "A", "a":
		letter := string(rune('A' + (n-1)%26))
		if r.style == "a" {
			letter = strings.ToLower(letter)
		}
		return r.prefix + strings.Repeat(letter, min((n-1)/26+1, 50))
	}
	return r.prefix
}

// roman returns a number up to 3999 in Roman digits.
func roman(n int) string {
	if n > 3999 {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, d := range []struct {
		value int
		text  string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; n >= d.value; n -= d.value {
			b.WriteString(d.text)
		}
	}
	return b.String()
}

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
	if !slices.ContainsFunc(in.glyphs[before:], func(g glyph) bool { return g.text != unknown }) {
		if text != "" {
			in.glyphs = in.glyphs[:before]
		}
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
		in.runs++
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
