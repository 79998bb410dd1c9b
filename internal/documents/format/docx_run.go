package format

import (
	"slices"
	"strconv"
	"strings"
)

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
