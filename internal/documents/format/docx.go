package format

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// wordStyle is what a paragraph style means.
type wordStyle struct {
	heading int // the level, 0 if none
	code    bool
	quote   bool
	numID   string // the list that paragraphs of the style belong to
}

// wordDocument is a document of Word (ECMA-376, WordprocessingML).
type wordDocument struct {
	*writer
	archive   *archive
	styles    map[string]wordStyle
	ordered   map[string]bool // by list and level, "3/0"
	counters  map[string]int
	relations map[string]relation
	notes     map[string]*element // footnotes and endnotes by their ids
	used      []string            // ids of the notes that the text refers to
	pending   []string            // lines of a code block
	inList    bool
	depth     int
}

// convertDOCX returns a Word document: headings, lists, tables, links, code and notes.
func convertDOCX(ctx context.Context, j *job) (*Result, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, err
	}
	part := a.mainPart("word/document.xml")
	root, err := a.xml(part)
	if err != nil {
		return nil, err
	}
	d := &wordDocument{writer: j.writer(ctx), archive: a, counters: map[string]int{}, notes: map[string]*element{}}
	if err := d.load(part); err != nil {
		return nil, err
	}
	d.blocks(root.child("body"))
	d.flushCode()
	for i := 0; i < len(d.used); i++ { //nolint:intrange // a note may refer to others
		d.note(i)
	}
	result, err := d.result()
	if err != nil {
		return nil, err
	}
	result.Title = a.officeTitle()
	return result, nil
}

// load reads the parts that the text refers to.
func (d *wordDocument) load(part string) error {
	var err error
	if d.relations, err = d.archive.relations(part); err != nil {
		return err
	}
	var styles, numbering *element
	for _, r := range d.relations {
		var root *element
		switch r.kind {
		case "styles", "numbering", "footnotes", "endnotes":
			if root, err = d.archive.xml(r.target); errors.Is(err, errNoPart) {
				continue
			}
			if err != nil {
				return err
			}
		}
		switch r.kind {
		case "styles":
			styles = root
		case "numbering":
			numbering = root
		case "footnotes":
			d.loadNotes(root, "footnote", "")
		case "endnotes":
			d.loadNotes(root, "endnote", "e")
		}
	}
	d.loadStyles(styles)
	d.loadNumbering(numbering)
	return nil
}

func (d *wordDocument) loadNotes(root *element, name, prefix string) {
	for _, note := range root.all(name) {
		if kind := note.attr("type"); kind == "" || kind == "normal" {
			d.notes[prefix+note.attr("id")] = note
		}
	}
}

// loadStyles reads which styles are headings, code and quotations. A style inherits from
// the one that it is based on.
func (d *wordDocument) loadStyles(root *element) {
	d.styles = map[string]wordStyle{}
	based := map[string]string{}
	for _, e := range root.all("style") {
		s := wordStyle{}
		name := strings.ToLower(e.child("name").attr("val"))
		properties := e.child("pPr")
		if level, ok := strings.CutPrefix(name, "heading "); ok {
			s.heading, _ = strconv.Atoi(level)
		} else if level, err := strconv.Atoi(properties.child("outlineLvl").attr("val")); err == nil && level < 9 {
			s.heading = level + 1
		}
		if name == "title" {
			s.heading = 1
		}
		s.code = strings.Contains(name, "code") || strings.Contains(name, "preformatted") || strings.Contains(name, "source")
		s.quote = strings.Contains(name, "quot")
		s.numID = properties.child("numPr", "numId").attr("val")
		d.styles[e.attr("styleId")] = s
		based[e.attr("styleId")] = e.child("basedOn").attr("val")
	}
	for id, s := range d.styles {
		for parent, n := based[id], 0; parent != "" && n < 20; parent, n = based[parent], n+1 {
			if p := d.styles[parent]; s == (wordStyle{}) && p.heading > 0 {
				s = p
			}
		}
		d.styles[id] = s
	}
}

// loadNumbering reads which levels of lists are numbered.
func (d *wordDocument) loadNumbering(root *element) {
	d.ordered = map[string]bool{}
	abstract := map[string]*element{}
	for _, e := range root.all("abstractNum") {
		abstract[e.attr("abstractNumId")] = e
	}
	for _, e := range root.all("num") {
		for _, level := range abstract[e.child("abstractNumId").attr("val")].all("lvl") {
			format := level.child("numFmt").attr("val")
			d.ordered[e.attr("numId")+"/"+level.attr("ilvl")] = format != "bullet" && format != "none" && format != ""
		}
	}
}

// blocks writes the paragraphs and tables below e.
func (d *wordDocument) blocks(e *element) {
	if e == nil {
		return
	}
	for _, c := range e.children {
		if d.stopped() {
			return
		}
		switch c.name {
		case "p":
			d.paragraphOf(c)
		case "tbl":
			d.flushCode()
			d.inList = false
			d.table(d.tableRows(c))
		case "sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "AlternateContent", "Choice":
			d.blocks(c)
		}
	}
}

// paragraphOf writes a paragraph, and the text boxes that are anchored in it.
func (d *wordDocument) paragraphOf(p *element) {
	properties := p.child("pPr")
	style := d.styles[properties.child("pStyle").attr("val")]
	if level, err := strconv.Atoi(properties.child("outlineLvl").attr("val")); err == nil && level < 9 {
		style.heading = level + 1
	}
	in := new(inline)
	d.runs(p, in, "")
	numID := properties.child("numPr", "numId").attr("val")
	if numID == "" {
		numID = style.numID
	}
	switch {
	case style.code:
		d.pending = append(d.pending, strings.ReplaceAll(rawText(in), lineBreak, "\n"))
	case style.heading > 0:
		d.flushCode()
		d.inList = false
		d.heading(style.heading, in)
	case numID != "" && numID != "0" && !in.empty():
		d.flushCode()
		d.listItem(numID, properties.child("numPr", "ilvl").attr("val"), in)
	case style.quote && !in.empty():
		d.flushCode()
		d.push(container{first: "> ", rest: "> ", gap: true})
		d.paragraph(in)
		d.pop()
	case !in.empty():
		d.flushCode()
		d.inList = false
		d.paragraph(in)
	}
	if d.depth < maxNesting {
		d.depth++
		for _, box := range p.all("txbxContent") {
			d.blocks(box)
		}
		d.depth--
	}
}

// rawText returns the text of runs with its white space.
func rawText(in *inline) string {
	var b strings.Builder
	for _, r := range in.runs {
		b.WriteString(r.text)
	}
	return b.String()
}

// flushCode writes the code block whose lines were collected.
func (d *wordDocument) flushCode() {
	if len(d.pending) > 0 {
		d.code("", strings.Join(d.pending, "\n"))
		d.pending, d.inList = nil, false
	}
}

// listItem writes an item of a list.
func (d *wordDocument) listItem(numID, level string, in *inline) {
	depth, _ := strconv.Atoi(level)
	depth = min(max(depth, 0), maxNesting)
	key := numID + "/" + strconv.Itoa(depth)
	marker := "- "
	if d.ordered[key] {
		d.counters[key]++
		marker = strconv.Itoa(d.counters[key]) + ". "
		for deeper := depth + 1; deeper < 10; deeper++ {
			delete(d.counters, numID+"/"+strconv.Itoa(deeper))
		}
	}
	indent := strings.Repeat("   ", depth)
	d.push(container{first: indent + marker, rest: indent + strings.Repeat(" ", len(marker)), gap: !d.inList})
	d.paragraph(in)
	d.pop()
	d.inList = true
}

// tableRows returns the cells of a table. A cell that continues one above is empty.
func (d *wordDocument) tableRows(table *element) [][]string {
	var rows [][]string
	for _, tr := range table.all("tr") {
		var row []string
		for _, tc := range tr.all("tc") {
			properties := tc.child("tcPr")
			text := ""
			if merge := properties.child("vMerge"); merge == nil || merge.attr("val") == "restart" {
				text = d.cell(tc)
			}
			row = append(row, text)
			span, _ := strconv.Atoi(properties.child("gridSpan").attr("val"))
			for range min(span, maxSpan) - 1 {
				row = append(row, "")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// cell returns the text of a table cell. Tables in it are part of its text.
func (d *wordDocument) cell(tc *element) string {
	in := new(inline)
	for _, p := range tc.all("p") {
		d.runs(p, in, "")
		in.add(" ", 0, "")
	}
	return in.markdown()
}

// note writes a footnote or an endnote.
func (d *wordDocument) note(index int) {
	in := new(inline)
	for _, p := range d.notes[d.used[index]].all("p") {
		d.runs(p, in, "")
		in.add(" ", 0, "")
	}
	d.separate()
	d.line("[^" + strconv.Itoa(index+1) + "]: " + in.markdown())
}

// runs adds the text below e to a paragraph.
func (d *wordDocument) runs(e *element, in *inline, link string) {
	for _, c := range e.children {
		switch c.name {
		case "r":
			d.run(c, in, link)
		case "hyperlink":
			target := link
			if r, ok := d.relations[c.attr("id")]; ok && r.external {
				target = r.target
			}
			d.runs(c, in, target)
		case "ins", "moveTo", "smartTag", "sdt", "sdtContent", "customXml", "fldSimple", "dir", "bdo":
			d.runs(c, in, link)
		case "oMath", "oMathPara":
			in.add(c.content(), 0, link)
		}
	}
}

// run adds a run of text.
func (d *wordDocument) run(r *element, in *inline, link string) {
	properties := r.child("rPr")
	var s style
	for name, bit := range map[string]style{"b": bold, "i": italic, "strike": struck} {
		if p := properties.child(name); p != nil && p.attr("val") != "0" && p.attr("val") != "false" {
			s |= bit
		}
	}
	if p := properties.child("vanish"); p != nil && p.attr("val") != "0" && p.attr("val") != "false" {
		return // hidden text
	}
	for _, c := range r.children {
		switch c.name {
		case "t":
			in.add(strings.ReplaceAll(c.content(), lineBreak, " "), s, link)
		case "tab", "ptab":
			in.add("\t", s, link)
		case "br", "cr":
			if c.attr("type") == "" || c.attr("type") == "textWrapping" {
				in.add(lineBreak, 0, "")
			}
		case "noBreakHyphen":
			in.add("-", s, link)
		case "footnoteReference":
			d.reference(c.attr("id"), in)
		case "endnoteReference":
			d.reference("e"+c.attr("id"), in)
		}
	}
}

// reference adds the mark of a note: its number in the order of the text.
func (d *wordDocument) reference(id string, in *inline) {
	if d.notes[id] == nil {
		return
	}
	at := slices.Index(d.used, id)
	if at < 0 {
		if at = len(d.used); at >= maxNotes {
			return
		}
		d.used = append(d.used, id)
	}
	in.add("[^"+strconv.Itoa(at+1)+"]", 0, "")
}

// maxNotes is the maximum number of notes that are written.
const maxNotes = 5_000
