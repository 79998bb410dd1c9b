package format

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// openDocument converts a file of OpenDocument 1.3 (OASIS): a text, a spreadsheet or a
// presentation.
type openDocument struct {
	*writer
	styles  map[string]odfStyle
	ordered map[string]bool // list styles with numbers, as NAME/LEVEL
	notes   []*element      // footnotes of the current block, written after it
	cells   int             // cells of tables so far
	inList  bool            // the block before was a list
}

// odfStyle is what a style sets for text.
type odfStyle struct {
	style  style
	hidden bool   // a sheet that is not shown
	parent string // the style that it extends
}

// maxODFCells is the maximum number of cells of a spreadsheet.
const maxODFCells = 2_000_000

// openODF reads the styles of a file and its content.
func openODF(ctx context.Context, j *job) (*openDocument, *archive, *element, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, nil, nil, err
	}
	if manifest, err := a.xml("META-INF/manifest.xml"); err == nil && len(manifest.all("encryption-data")) > 0 {
		return nil, nil, nil, errorf(Encrypted, "is encrypted: remove the password first")
	}
	root, err := a.xml("content.xml")
	if err != nil {
		return nil, nil, nil, err
	}
	d := &openDocument{writer: j.writer(ctx), styles: map[string]odfStyle{}, ordered: map[string]bool{}}
	if common, err := a.xml("styles.xml"); err == nil {
		d.readStyles(common)
	}
	d.readStyles(root)
	return d, a, root.child("body"), nil
}

// odfResult returns the text with the title of the file.
func (d *openDocument) odfResult(a *archive) (*Result, error) {
	result, err := d.result()
	if err != nil {
		return nil, err
	}
	if meta, err := a.xml("meta.xml"); err == nil {
		result.Title = collapseSpace(meta.child("meta", "title").content())
	}
	return result, nil
}

func convertODT(ctx context.Context, j *job) (*Result, error) {
	d, a, body, err := openODF(ctx, j)
	if err != nil {
		return nil, err
	}
	d.blocks(body.child("text"), 0)
	return d.odfResult(a)
}

func convertODS(ctx context.Context, j *job) (*Result, error) {
	d, a, body, err := openODF(ctx, j)
	if err != nil {
		return nil, err
	}
	for _, sheet := range body.child("spreadsheet").all("table") {
		if d.styles[sheet.attr("style-name")].hidden {
			continue
		}
		rows := d.rows(sheet)
		if len(withoutEmpty(rows)) == 0 {
			continue
		}
		name := new(inline)
		name.add(sheet.attr("name"), 0, "")
		d.heading(2, name)
		d.table(rows)
	}
	return d.odfResult(a)
}

func convertODP(ctx context.Context, j *job) (*Result, error) {
	d, a, body, err := openODF(ctx, j)
	if err != nil {
		return nil, err
	}
	for i, slide := range body.child("presentation").all("page") {
		d.page(strconv.Itoa(i + 1))
		for _, titles := range []bool{true, false} {
			for _, shape := range slide.children {
				if (shape.attr("class") == "title") == titles {
					d.shape(shape, titles)
				}
				if d.stopped() {
					return nil, d.err
				}
			}
		}
	}
	return d.odfResult(a)
}

// shape writes a shape of a slide; the notes of the presenter are one.
func (d *openDocument) shape(shape *element, title bool) {
	if shape.name == "notes" {
		for _, frame := range shape.children {
			if frame.attr("class") == "notes" && collapseSpace(frame.content()) != "" {
				d.plainParagraph("Notes:")
				d.blocks(frame, 0)
			}
		}
		return
	}
	if !title {
		d.blocks(&element{children: []*element{shape}}, 0)
		return
	}
	for _, p := range shape.all("p") {
		in := new(inline)
		d.inline(p, in, 0, "")
		d.heading(1, in)
	}
}

// readStyles reads the styles of a part.
func (d *openDocument) readStyles(root *element) {
	for _, s := range root.all("style") {
		var of odfStyle
		text := s.child("text-properties")
		if text.attr("font-weight") == "bold" {
			of.style |= bold
		}
		if text.attr("font-style") == "italic" {
			of.style |= italic
		}
		if line := text.attr("text-line-through-style"); line != "" && line != "none" {
			of.style |= struck
		}
		of.parent = s.attr("parent-style-name")
		of.hidden = s.child("table-properties").attr("display") == "false"
		d.styles[s.attr("name")] = of
	}
	for _, list := range root.all("list-style") {
		for _, level := range list.children {
			if level.name == "list-level-style-number" && level.attr("num-format") != "" {
				d.ordered[list.attr("name")+"/"+level.attr("level")] = true
			}
		}
	}
}

// blocks writes the paragraphs, headings, lists and tables of an element.
func (d *openDocument) blocks(e *element, depth int) {
	if e == nil {
		return
	}
	for _, c := range e.children {
		if d.stopped() {
			return
		}
		switch c.name {
		case "h":
			in := new(inline)
			d.inline(c, in, 0, "")
			level, _ := strconv.Atoi(c.attr("outline-level"))
			d.heading(level, in)
		case "p":
			d.paragraphOf(c)
		case "list":
			d.list(c, c.attr("style-name"), depth)
			d.inList = true
			continue
		case "table":
			d.table(d.rows(c))
		case "tracked-changes", "annotation", "forms", "sequence-decls", "settings", "index-title-template", "desc", "title":
			// not part of the text
		default:
			d.blocks(c, depth)
		}
		d.inList = d.inList && c.name == ""
		if depth == 0 {
			d.footnotes()
		}
	}
}

// paragraphOf writes a paragraph as its style wants it.
func (d *openDocument) paragraphOf(p *element) {
	in := new(inline)
	d.inline(p, in, 0, "")
	name := p.attr("style-name")
	for range 8 { // a chain of styles
		switch name {
		case "Title":
			d.heading(1, in)
			return
		case "Quotations", "Quote":
			d.push(container{first: "> ", rest: "> ", gap: true})
			d.paragraph(in)
			d.pop()
			return
		}
		name = d.styles[name].parent
	}
	d.paragraph(in)
}

// footnotes writes the notes of the block before.
func (d *openDocument) footnotes() {
	notes := d.notes
	d.notes = nil
	for _, note := range notes {
		in := new(inline)
		in.add("["+collapseSpace(note.child("note-citation").content())+"] ", 0, "")
		for _, p := range note.child("note-body").all("p") {
			d.inline(p, in, 0, "")
			in.add(" ", 0, "")
		}
		d.paragraph(in)
	}
}

// list writes the items of a list. A list in it has the style of the outer one.
func (d *openDocument) list(list *element, name string, depth int) {
	if own := list.attr("style-name"); own != "" {
		name = own
	}
	number, first := 0, true
	for _, item := range list.children {
		if item.name != "list-item" && item.name != "list-header" {
			continue
		}
		marker := "- "
		if inner := withoutSpace(item.children); len(inner) > 0 && inner[0].name == "list" {
			marker = "  " // an inner item without an outer one
		} else if d.ordered[name+"/"+strconv.Itoa(depth+1)] {
			number++
			marker = strconv.Itoa(number) + ". "
		}
		d.push(container{first: marker, rest: strings.Repeat(" ", len(marker)), gap: first && depth == 0 && !d.inList})
		first = false
		for _, c := range item.children {
			if c.name == "list" {
				d.list(c, name, depth+1)
			} else {
				d.blocks(&element{children: []*element{c}}, depth+1)
			}
		}
		d.pop()
	}
}

// withoutSpace returns the elements without texts of white space.
func withoutSpace(elements []*element) []*element {
	return slices.DeleteFunc(slices.Clone(elements), func(e *element) bool { return e.name == "" && strings.TrimSpace(e.text) == "" })
}

// rows returns the texts of the cells of a table.
func (d *openDocument) rows(table *element) [][]string {
	var rows [][]string
	for _, tr := range table.all("table-row") {
		var row []string
		for _, cell := range tr.children {
			if cell.name != "table-cell" && cell.name != "covered-table-cell" || d.stopped() {
				continue
			}
			for range repeated(cell, "number-columns-repeated", 1024) {
				row = append(row, "")
			}
			if text := d.cell(cell); text != "" {
				for i := range repeated(cell, "number-columns-repeated", 1024) {
					row[len(row)-1-i] = text
				}
			}
		}
		if len(withoutEmpty([][]string{row})) == 0 {
			continue // sheets end with a million of empty rows
		}
		for range repeated(tr, "number-rows-repeated", 1<<20) {
			if d.cells += len(row); d.cells > maxODFCells {
				d.err = errorf(TooLarge, "has more than %d cells", maxODFCells)
				return nil
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// repeated returns how often a cell or a row is repeated.
func repeated(e *element, key string, most int) int {
	n, err := strconv.Atoi(e.attr(key))
	if err != nil {
		return 1
	}
	return min(max(n, 1), most)
}

// cell returns the text of a cell.
func (d *openDocument) cell(cell *element) string {
	var parts []string
	for _, p := range cell.all("p") {
		in := new(inline)
		d.inline(p, in, 0, "")
		parts = append(parts, in.markdown())
	}
	return strings.Join(parts, " ")
}

// inline adds the text of a paragraph.
func (d *openDocument) inline(e *element, in *inline, s style, link string) {
	for _, c := range e.children {
		switch c.name {
		case "":
			in.add(c.text, s, link)
		case "span":
			d.inline(c, in, s|d.styles[c.attr("style-name")].style, link)
		case "a":
			d.inline(c, in, s, webLink(c.attr("href")))
		case "s", "tab":
			in.add(" ", s, link)
		case "line-break":
			in.add(lineBreak, s, link)
		case "note":
			in.add("["+collapseSpace(c.child("note-citation").content())+"]", s, "")
			d.notes = append(d.notes, c)
		case "annotation", "annotation-end", "page-number", "bookmark", "change", "ruby-text", "tracked-changes":
			// not part of the text
		case "p":
			in.add(" ", s, "")
			d.inline(c, in, s, link)
		default:
			d.inline(c, in, s, link)
		}
	}
}

// webLink returns an address that a reader of the text can open; empty for others.
func webLink(address string) string {
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if strings.HasPrefix(strings.ToLower(address), scheme) {
			return address
		}
	}
	return ""
}
