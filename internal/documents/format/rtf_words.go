package format

import (
	"strconv"
	"strings"
)

// word handles a control word; given is whether it has a number.
func (r *rtfReader) word(word string, number int, given bool) {
	if word == "u" {
		r.unicode(number)
		return
	}
	if word == "bin" {
		r.at = min(len(r.data), r.at+max(number, 0))
		return
	}
	r.flush()
	r.skipping = 0
	if text, found := rtfCharacters[word]; found {
		r.write(text)
		return
	}
	if rtfSkipped[word] {
		r.state.skip = true
		return
	}
	switch {
	case r.group(word), r.paragraphWord(word, number):
	case r.charsets(word, number):
	default:
		r.characterWord(word, number, given)
	}
}

// unicode adds half of a character or a whole one.
func (r *rtfReader) unicode(number int) {
	if len(r.bytes) > 0 {
		r.flush()
	}
	r.units = append(r.units, uint16(number)) // those above 32767 are written as negative numbers
	r.skipping = r.state.after
}

// group begins a group whose text is data.
func (r *rtfReader) group(word string) bool {
	switch word {
	case "fonttbl", "stylesheet", "fldinst":
		r.state.into = new(strings.Builder)
	case "title":
		r.state.into = &r.title
	case "info":
	case "listtext", "pntext":
		r.state.into = new(strings.Builder)
		r.state.into.WriteString(rtfMarker)
	case "upr": // the text twice; the second one, in ud, is in Unicode
		r.state.skip = true
	case "ud":
		r.state.skip = false
	default:
		return false
	}
	return true
}

// charsets handles the declarations of charsets.
func (r *rtfReader) charsets(word string, number int) bool {
	var name string
	switch word {
	case "ansicpg":
		if name = "windows-" + strconv.Itoa(number); number == 932 || number == 936 || number == 949 || number == 950 {
			name = "cp" + strconv.Itoa(number)
		}
	case "mac":
		name = "macintosh"
	case "fcharset":
		if enc, err := charsetNamed(rtfCharsets[number]); err == nil {
			r.fonts[r.font] = enc
		}
		return true
	case "f", "af":
		r.font = number
		r.state.font = r.fonts[number]
		return true
	case "uc":
		r.state.after = min(max(number, 0), 16)
		return true
	default:
		return false
	}
	if enc, err := charsetNamed(name); err == nil {
		r.charset = enc
	}
	return true
}

// characterWord handles the emphasis of characters.
func (r *rtfReader) characterWord(word string, number int, given bool) {
	set := func(s style) {
		r.state.style &^= s
		if !given || number != 0 {
			r.state.style |= s
		}
	}
	switch word {
	case "b":
		set(bold)
	case "i":
		set(italic)
	case "strike", "striked":
		set(struck)
	case "v", "deleted":
		r.state.hidden = !given || number != 0
	case "plain":
		r.state.style, r.state.hidden, r.state.font = 0, false, nil
	}
}

// paragraphWord handles the ends and the kinds of paragraphs, and tables.
func (r *rtfReader) paragraphWord(word string, number int) bool {
	if r.state.into != nil { // the declaration of a style
		if word == "s" {
			r.declared = number
			r.state.into = new(strings.Builder)
		}
		return word == "s"
	}
	switch word {
	case "par", "sect", "page":
		r.endParagraph()
	case "pard":
		r.level, r.inTable, r.marker = 0, false, ""
	case "s":
		r.level = r.headings[number]
	case "outlinelevel":
		if r.level = number + 1; number < 0 || number > 5 {
			r.level = 0
		}
	case "intbl":
		r.inTable = true
	case "trowd":
		r.inTable = true
	case "cell", "nestcell":
		r.row = append(r.row, r.text.markdown())
		r.text = inline{}
	case "row", "nestrow":
		r.rows = append(r.rows, r.row)
		r.row, r.inTable = nil, false
	default:
		return false
	}
	return true
}

// endParagraph writes the paragraph.
func (r *rtfReader) endParagraph() {
	r.flush()
	if r.inTable {
		r.text.add(" ", 0, "")
		return
	}
	r.endTable()
	text := r.text
	r.text = inline{}
	if text.empty() {
		return
	}
	inList := r.marker != ""
	switch {
	case r.level > 0:
		r.heading(r.level, &text)
	case inList:
		r.push(container{first: r.marker, rest: strings.Repeat(" ", len(r.marker)), gap: !r.inList})
		r.paragraph(&text)
		r.pop()
	default:
		r.paragraph(&text)
	}
	r.inList, r.marker = inList, ""
}

// endTable writes the rows of a table.
func (r *rtfReader) endTable() {
	if len(r.rows) > 0 {
		r.table(r.rows)
		r.rows = nil
	}
}
