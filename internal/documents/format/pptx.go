package format

import (
	"context"
	"errors"
	"strconv"
)

// convertPPTX returns the slides of a presentation (ECMA-376, PresentationML), each as a
// page: title, text, lists, tables and the notes of the presenter.
func convertPPTX(ctx context.Context, j *job) (*Result, error) {
	a, err := openArchive(j)
	if err != nil {
		return nil, err
	}
	part := a.mainPart("ppt/presentation.xml")
	root, err := a.xml(part)
	if err != nil {
		return nil, err
	}
	relations, err := a.relations(part)
	if err != nil {
		return nil, err
	}
	p := &presentation{writer: j.writer(ctx), archive: a}
	for i, id := range root.child("sldIdLst").all("sldId") {
		target := relations[relationID(id)].target
		p.page(strconv.Itoa(i + 1))
		if err := p.slide(target); err != nil {
			return nil, err
		}
		if p.stopped() {
			return nil, p.err
		}
	}
	result, err := p.result()
	if err != nil {
		return nil, err
	}
	result.Title = a.officeTitle()
	return result, nil
}

// relationID returns the attribute r:id, which has the local name of the attribute id.
func relationID(e *element) string {
	for _, a := range e.attrs {
		if a.Name.Local == "id" && a.Name.Space != "" {
			return a.Value
		}
	}
	return ""
}

type presentation struct {
	*writer
	archive   *archive
	relations map[string]relation // of the slide
	inList    bool
}

// slide writes a slide. A slide whose part is missing is empty.
func (p *presentation) slide(part string) error {
	root, err := p.archive.xml(part)
	if errors.Is(err, errNoPart) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.relations, err = p.archive.relations(part); err != nil {
		return err
	}
	p.shapes(root.child("cSld", "spTree"), false)
	for _, r := range p.relations {
		if r.kind != "notesSlide" {
			continue
		}
		notes, err := p.archive.xml(r.target)
		if errors.Is(err, errNoPart) {
			continue
		}
		if err != nil {
			return err
		}
		p.shapes(notes.child("cSld", "spTree"), true)
	}
	return nil
}

// shapes writes the shapes of a slide, the title first, or of its notes.
func (p *presentation) shapes(tree *element, notes bool) {
	if tree == nil {
		return
	}
	for _, titles := range []bool{true, false} {
		for _, c := range tree.children {
			if p.stopped() {
				return
			}
			kind := c.child("nvSpPr", "nvPr", "ph").attr("type")
			isTitle := kind == "title" || kind == "ctrTitle"
			if isTitle != titles || kind == "sldNum" || kind == "dt" || kind == "ftr" || kind == "sldImg" || notes && kind != "body" {
				continue
			}
			p.shape(c, isTitle, notes)
		}
	}
}

// shape writes a shape.
func (p *presentation) shape(c *element, isTitle, notes bool) {
	p.inList = false
	switch c.name {
	case "sp":
		isBody := c.child("nvSpPr", "nvPr", "ph") != nil && c.child("nvSpPr", "nvPr", "ph").attr("type") != "subTitle"
		for i, paragraph := range c.child("txBody").all("p") {
			in := p.text(paragraph)
			switch {
			case isTitle:
				p.heading(1, in)
			case notes && i == 0 && !in.empty():
				in.runs = append([]run{{text: "Notes: "}}, in.runs...)
				p.paragraph(in)
			case isBody && !notes:
				p.item(paragraph, in)
			default:
				p.paragraph(in)
			}
		}
	case "grpSp":
		p.shapes(c, notes)
	case "graphicFrame":
		for _, table := range c.all("tbl") {
			var rows [][]string
			for _, tr := range table.all("tr") {
				var row []string
				for _, tc := range tr.all("tc") {
					row = append(row, p.cell(tc))
				}
				rows = append(rows, row)
			}
			p.table(rows)
		}
	case "AlternateContent":
		if choice := c.child("Choice"); choice != nil {
			p.shapes(choice, notes)
		}
	}
}

// cell returns the text of a table cell.
func (p *presentation) cell(tc *element) string {
	in := new(inline)
	for _, paragraph := range tc.all("p") {
		in.runs = append(in.runs, p.text(paragraph).runs...)
		in.add(" ", 0, "")
	}
	return in.markdown()
}

// item writes a paragraph of a placeholder, which slides show as an item of a list.
func (p *presentation) item(paragraph *element, in *inline) {
	if in.empty() {
		return
	}
	properties := paragraph.child("pPr")
	if properties.child("buNone") != nil {
		p.paragraph(in)
		p.inList = false
		return
	}
	level, _ := strconv.Atoi(properties.attr("lvl"))
	p.listItem(min(max(level, 0), 8), in, !p.inList)
	p.inList = true
}

// text returns the text of a paragraph.
func (p *presentation) text(paragraph *element) *inline {
	in := new(inline)
	for _, c := range paragraph.children {
		switch c.name {
		case "r", "fld":
			properties := c.child("rPr")
			var s style
			if properties.attr("b") == "1" {
				s |= bold
			}
			if properties.attr("i") == "1" {
				s |= italic
			}
			link := ""
			if r := p.relations[properties.child("hlinkClick").attr("id")]; r.external {
				link = r.target
			}
			in.add(c.child("t").content(), s, link)
		case "br":
			in.add(lineBreak, 0, "")
		}
	}
	return in
}
