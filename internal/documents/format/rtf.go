package format

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"golang.org/x/text/encoding"
)

// maxRTFGroups is the maximum depth of groups.
const maxRTFGroups = 1000

// rtfState is what a group of rich text inherits and restores.
type rtfState struct {
	skip   bool // the text of the group is not part of the document
	style  style
	link   string
	hidden bool              // hidden or deleted text
	after  int               // characters after \u that repeat it for old programs
	font   encoding.Encoding // the charset of the font; nil for that of the document
	into   *strings.Builder  // collects the text of a group that is read as data
}

// rtfReader converts rich text (RTF 1.9.1).
type rtfReader struct {
	*writer
	data  []byte
	at    int
	state rtfState
	stack []rtfState

	charset  encoding.Encoding         // of the document
	fonts    map[int]encoding.Encoding // charsets of fonts by number
	font     int                       // the font whose declaration is read
	headings map[int]int               // levels of headings by the number of the style
	declared int                       // the style whose declaration is read
	bytes    []byte                    // characters of the charset that are not decoded yet
	units    []uint16                  // halves of characters of \u
	skipping int                       // characters to skip after \u

	text    inline
	level   int      // the level of the paragraph; 0 for text
	marker  string   // the marker of the list item, to the end of its paragraph; empty for none
	inTable bool     // the paragraph is part of a cell
	row     []string // cells of the row
	rows    [][]string
	title   strings.Builder
	inList  bool
}

// rtfSkipped are the groups whose text is not part of the document.
var rtfSkipped = map[string]bool{
	"colortbl": true, "pict": true, "object": true, "header": true, "headerl": true, "headerr": true, "headerf": true,
	"footer": true, "footerl": true, "footerr": true, "footerf": true, "listtable": true, "listoverridetable": true,
	"revtbl": true, "rsidtbl": true, "themedata": true, "datastore": true, "xmlnstbl": true, "filetbl": true, "author": true, "operator": true,
	"keywords": true, "subject": true, "doccomm": true, "company": true, "manager": true, "category": true, "creatim": true, "revtim": true,
	"printim": true, "annotation": true, "atnid": true, "atnauthor": true, "ftnsep": true, "ftnsepc": true, "aftnsep": true, "tc": true, "xe": true, "generator": true,
}

// rtfKept are groups that older programs may ignore and that have text of the document.
var rtfKept = map[string]bool{"fldinst": true, "shptxt": true, "shpinst": true, "ud": true, "listtext": true, "pntext": true}

// rtfCharacters are the control words for characters.
var rtfCharacters = map[string]string{
	"tab": " ", "emdash": "\u2014", "endash": "\u2013", "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d",
	"bullet": "\u2022", "emspace": " ", "enspace": " ", "qmspace": " ", "line": lineBreak,
}

// rtfCharsets are the charsets of fonts (\fcharset) and of documents (\mac, \pc).
var rtfCharsets = map[int]string{
	77: "macintosh", 128: "shift_jis", 129: "euc-kr", 134: "gbk", 136: "big5", 161: "windows-1253", 162: "windows-1254", 163: "windows-1258",
	177: "windows-1255", 178: "windows-1256", 186: "windows-1257", 204: "windows-1251", 222: "windows-874", 238: "windows-1250",
}

func convertRTF(ctx context.Context, j *job) (*Result, error) {
	latin, err := charsetNamed("windows-1252")
	if err != nil {
		return nil, err
	}
	r := &rtfReader{writer: j.writer(ctx), data: j.file.Data, charset: latin, fonts: map[int]encoding.Encoding{}, headings: map[int]int{}, state: rtfState{after: 1}}
	if err := r.read(); err != nil {
		return nil, err
	}
	result, err := r.result()
	if err != nil {
		return nil, err
	}
	result.Title = collapseSpace(r.title.String())
	return result, nil
}

// read reads the file to the end of its outermost group.
func (r *rtfReader) read() error {
	for r.at < len(r.data) && !r.stopped() {
		c := r.data[r.at]
		r.at++
		switch c {
		case '{':
			r.flush()
			if len(r.stack) >= maxRTFGroups {
				return errorf(TooLarge, "has too deeply nested groups")
			}
			r.stack = append(r.stack, r.state)
			r.skipping = 0
		case '}':
			r.flush()
			if len(r.stack) == 0 {
				return errorf(Damaged, "is damaged: a group ends that did not begin")
			}
			r.endGroup()
			if len(r.stack) == 0 {
				if r.inTable && !r.text.empty() {
					r.endCell()
				}
				r.inTable = false
				r.endParagraph()
				return nil
			}
		case '\\':
			r.control()
		case '\r', '\n':
		default:
			r.character(c)
		}
	}
	if r.stopped() {
		return r.err
	}
	return errorf(Damaged, "is not a complete RTF file")
}

// endGroup restores the state of the group around.
func (r *rtfReader) endGroup() {
	ended := r.state
	r.state = r.stack[len(r.stack)-1]
	r.stack = r.stack[:len(r.stack)-1]
	r.skipping = 0
	if ended.into == nil || ended.into == r.state.into {
		return
	}
	r.metadata(ended.into.String())
}

// metadata takes the text of a group that is not part of the document: the declaration of
// a style, the target of a link, the marker of a list item.
func (r *rtfReader) metadata(text string) {
	if found := rtfHeading().FindStringSubmatch(text); found != nil {
		level, err := strconv.Atoi(found[1])
		if err != nil {
			level = 1 // the title
		}
		r.headings[r.declared] = level
	}
	if _, target, found := strings.Cut(text, "HYPERLINK "); found {
		r.state.link = webLink(strings.Trim(strings.TrimSpace(target), `"`))
	}
	if marker, found := strings.CutPrefix(text, rtfMarker); found {
		r.marker = "- "
		if marker = strings.TrimSpace(marker); rtfNumber().MatchString(marker) {
			r.marker = strings.TrimRight(marker, ".)") + ". "
		}
	}
}

var (
	rtfHeading = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^\s*(?:heading ([1-6])|title);`) })
	rtfNumber  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,9}[.)]$`) })
)

// rtfMarker begins the text of a group with the marker of a list item.
const rtfMarker = "\x00marker "

// control reads a control word or symbol after its backslash.
func (r *rtfReader) control() {
	if r.at >= len(r.data) {
		return
	}
	c := r.data[r.at]
	if !isLetter(c) {
		r.at++
		r.symbol(c)
		return
	}
	start := r.at
	for r.at < len(r.data) && isLetter(r.data[r.at]) {
		r.at++
	}
	word, digits := string(r.data[start:r.at]), r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' {
		r.at++
	}
	number, err := strconv.Atoi(string(r.data[digits:r.at]))
	if r.at < len(r.data) && r.data[r.at] == ' ' {
		r.at++
	}
	r.word(word, number, err == nil)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// symbol reads a control symbol.
func (r *rtfReader) symbol(c byte) {
	switch c {
	case '\'':
		if r.at+2 <= len(r.data) {
			if code, err := strconv.ParseUint(string(r.data[r.at:r.at+2]), 16, 8); err == nil {
				r.at += 2
				r.character(byte(code))
			}
		}
	case '*': // a group that only newer programs know
		if word := r.peek(); !rtfKept[word] {
			r.state.skip = true
		}
	case '~':
		r.add("\u00a0")
	case '_':
		r.add("-")
	case '\\', '{', '}':
		r.character(c)
	case '\r', '\n':
		r.endParagraph()
	}
}

// peek returns the control word that follows.
func (r *rtfReader) peek() string {
	rest := strings.TrimLeft(string(r.data[r.at:min(len(r.data), r.at+40)]), "\r\n ")
	word, _ := strings.CutPrefix(rest, `\`)
	end := strings.IndexFunc(word, func(c rune) bool { return c > 127 || !isLetter(byte(c)) })
	if end >= 0 {
		word = word[:end]
	}
	return word
}

// character adds a character of the charset, or one that ASCII has.
func (r *rtfReader) character(c byte) {
	if r.skipping > 0 {
		r.skipping--
		return
	}
	r.flushUnits()
	r.bytes = append(r.bytes, c)
}

// flush decodes the characters that were read.
func (r *rtfReader) flush() {
	r.flushUnits()
	if len(r.bytes) == 0 {
		return
	}
	enc := r.charset
	if r.state.font != nil {
		enc = r.state.font
	}
	text, err := enc.NewDecoder().Bytes(r.bytes)
	if err != nil {
		text = r.bytes
	}
	r.bytes = r.bytes[:0]
	r.write(string(text))
}

func (r *rtfReader) flushUnits() {
	if len(r.units) > 0 {
		text := string(utf16.Decode(r.units))
		r.units = r.units[:0]
		r.write(text)
	}
}

// add adds text.
func (r *rtfReader) add(text string) {
	r.flush()
	r.write(text)
}

func (r *rtfReader) write(text string) {
	switch {
	case r.state.into != nil:
		r.state.into.WriteString(text)
	case !r.state.skip && !r.state.hidden:
		r.text.add(text, r.state.style, r.state.link)
	}
}

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
		r.level, r.inTable = 0, false
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
		r.endCell()
	case "row", "nestrow":
		r.endRow()
		r.inTable = false
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
	text, marker := r.text, r.marker
	r.text, r.marker = inline{}, ""
	if text.empty() {
		return
	}
	inList := marker != ""
	switch {
	case r.level > 0:
		r.heading(r.level, &text)
	case inList:
		r.push(container{first: marker, rest: strings.Repeat(" ", len(marker)), gap: !r.inList})
		r.paragraph(&text)
		r.pop()
	default:
		r.paragraph(&text)
	}
	r.inList = inList
}

// endCell ends a cell of a table.
func (r *rtfReader) endCell() {
	r.row = append(r.row, r.text.markdown())
	r.text, r.marker = inline{}, ""
}

// endRow ends a row of a table.
func (r *rtfReader) endRow() {
	if len(r.row) > 0 {
		r.rows = append(r.rows, r.row)
		r.row = nil
	}
}

// endTable writes the rows of a table. The last one may have no end.
func (r *rtfReader) endTable() {
	r.endRow()
	if len(r.rows) > 0 {
		r.table(r.rows)
		r.rows = nil
	}
}
