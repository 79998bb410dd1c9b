package ranking

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

const (
	wholeBytes   = 800   // a text up to this size is one passage
	passageBytes = 320   // that sentences, items of a list and rows are joined to
	blockBytes   = 1_600 // of a block of code that is not divided
	underBytes   = 160   // of what a passage stands under

	// MaxPassages is the most passages of a message; the text after them is not found.
	MaxPassages = 1 << 10
)

// Passage is a part of a text that is found by itself.
type Passage struct {
	Under string // the heading, header of the table or first line of the code that it continues; empty for none
	Text  string // without white space at its ends
}

// String returns the passage with what it stands under.
func (p Passage) String() string {
	if p.Under == "" {
		return p.Text
	}
	return p.Under + "\n" + p.Text
}

// Passages divides a text into sentences, items of lists, rows of tables and blocks of code,
// neighbours of one kind joined up to some hundred bytes. A short text is one passage; a
// blank one has none. The same text gives the same passages.
func Passages(text string) []Passage {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil
	case len(text) <= wholeBytes:
		return []Passage{{Text: text}}
	}
	var d divider
	for line := range strings.Lines(cut(text, maxTextBytes)) {
		d.line(line)
	}
	d.end()
	return d.out[:min(len(d.out), MaxPassages)]
}

// divider divides a text.
type divider struct {
	out     []Passage
	open    strings.Builder // the passage that grows
	kind    lineKind        // of its lines
	heading string          // the newest
	header  string          // of the table or the code
}

// lineKind is what a line belongs to.
type lineKind int

const (
	prose lineKind = iota
	item
	row
	code
)

// end ends the passage that grows.
func (d *divider) end() {
	text := strings.TrimSpace(d.open.String())
	d.open.Reset()
	if text == "" {
		return
	}
	under := d.heading
	if (d.kind == row || d.kind == code) && d.header != "" && !strings.HasPrefix(text, d.header) {
		under = d.header
	}
	if strings.HasPrefix(strings.TrimLeft(text, "# "), under) {
		under = ""
	}
	d.out = append(d.out, Passage{Under: under, Text: text})
}

// add adds a unit, which begins a passage if there is no room for it in the one before.
func (d *divider) add(unit string, kind lineKind, room int) {
	if kind != d.kind || d.open.Len()+len(unit) > room {
		d.end()
	}
	d.kind = kind
	for len(unit) > 2*room {
		end := room
		if blank := strings.LastIndexAny(unit[:end], " \n\t"); blank > room/2 {
			end = blank
		}
		end = textfmt.Boundary(unit, end)
		d.open.WriteString(unit[:end])
		d.end()
		unit = unit[end:]
	}
	d.open.WriteString(unit)
}

// line adds a line with its end.
func (d *divider) line(line string) {
	text := strings.TrimSpace(line)
	fence := strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")
	inCode := d.kind == code && d.header != ""
	switch {
	case fence && inCode:
		d.add(line, code, blockBytes)
		d.end()
		d.header, d.kind = "", prose
	case fence:
		d.end()
		d.kind, d.header = code, text
		d.add(line, code, blockBytes)
	case inCode:
		if strings.HasPrefix(d.header, "```") || strings.HasPrefix(d.header, "~~~") {
			d.header = cut(text, underBytes)
		}
		d.add(line, code, blockBytes)
	case text == "":
		if d.kind == row || d.open.Len() > passageBytes/2 {
			d.end()
		}
		d.header = ""
		d.open.WriteString(line)
	case strings.HasPrefix(text, "#"):
		d.end()
		d.heading = cut(strings.TrimSpace(strings.TrimLeft(text, "#")), underBytes)
		d.add(line, prose, passageBytes)
	case strings.HasPrefix(text, "|"):
		if d.kind != row || d.header == "" {
			d.end()
			d.kind, d.header = row, cut(text, underBytes)
		}
		d.add(line, row, passageBytes)
	case isItem(text):
		d.add(line, item, passageBytes)
	default:
		for _, sentence := range sentences(line) {
			d.add(sentence, prose, passageBytes)
		}
	}
}

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "• ") {
		return true
	}
	rest := strings.TrimLeft(line, "0123456789")
	return len(rest) < len(line) && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "))
}

// sentences divides a line, without a loss of characters.
func sentences(line string) (all []string) {
	from := 0
	for i, r := range line {
		next := i + utf8.RuneLen(r)
		if r == utf8.RuneError || next >= len(line) {
			continue
		}
		switch r {
		case '。', '！', '？':
		case '.', '!', '?':
			after, _ := utf8.DecodeRuneInString(strings.TrimLeft(line[next:], " "))
			if line[next] != ' ' || unicode.IsLower(after) {
				continue
			}
		default:
			continue
		}
		all, from = append(all, line[from:next]), next
	}
	return append(all, line[from:])
}
