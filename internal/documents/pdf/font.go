package pdf

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	xencoding "golang.org/x/text/encoding"
)

// font maps the strings of a content stream to text and widths.
type font struct {
	composite bool
	vertical  bool
	bold      bool
	utf16     bool               // codes are UTF-16
	charset   xencoding.Encoding // codes are of a legacy charset; nil if not
	unicode   *cmap              // the ToUnicode map; nil if there is none
	codeMap   *cmap              // the CMap of a composite font that the file has; nil for another one
	glyphs    map[int]string     // the characters of glyphs by the font program, if there is no ToUnicode map
	glyphOf   []byte             // CIDToGIDMap; nil if glyphs have the numbers of their characters
	encoding  encoding           // of a simple font
	widths    map[uint32]float64 // in thousandths of the size
	other     float64            // the width of codes without one
	scale     float64            // of widths: 0.001, or that of a Type 3 font
	height    float64            // of the letters for size 1: 1, or that of a Type 3 font
}

// code is one code of a string with its text and width.
type code struct {
	text  string // empty if unknown
	width float64
	space bool // the one-byte code 32, to which word spacing applies
	blank bool // a space or a control code that the font does not have: shows nothing unless its text is known
}

// loadFont reads a font.
func (f *file) loadFont(o object) *font {
	d := f.dict(o)
	t := &font{scale: 0.001, height: 1, other: 500, widths: map[uint32]float64{}}
	if s, ok := f.resolve(d["ToUnicode"]).(*stream); ok {
		if data, err := f.decode(s); err == nil {
			t.unicode = parseCMap(data)
		}
	}
	base := string(nameOf(f.resolve(d["BaseFont"])))
	t.bold = strings.Contains(base, "Bold") || strings.Contains(base, "Black") || strings.Contains(base, "Heavy") || strings.HasPrefix(afterTag(base), "CMBX")
	if d["Subtype"] == name("Type0") {
		f.loadComposite(t, d)
		return t
	}
	f.loadSimple(t, d, afterTag(base))
	return t
}

// afterTag returns the name of a font without the tag of a subset.
func afterTag(base string) string {
	if _, after, ok := strings.Cut(base, "+"); ok {
		return after
	}
	return base
}

// loadSimple reads a font with codes of one byte.
func (f *file) loadSimple(t *font, d dict, base string) {
	f.readEncoding(t, d, base)
	if d["Subtype"] == name("Type3") {
		f.readScale(t, d)
	}
	first := f.integer(d["FirstChar"], 0)
	widths, _ := f.resolve(d["Widths"]).(array)
	for i, w := range widths {
		if n, ok := f.resolve(w).(float64); ok && i < 256 {
			t.widths[uint32(first+i)] = n
		}
	}
	if len(widths) == 0 {
		standardWidths(t, base)
	} else if missing, ok := f.resolve(f.dict(d["FontDescriptor"])["MissingWidth"]).(float64); ok {
		t.other = missing
	}
}

// readEncoding reads what the codes of a font mean.
func (f *file) readEncoding(t *font, d dict, base string) {
	encodingObject := f.resolve(d["Encoding"])
	baseName := nameOf(encodingObject)
	differences := array(nil)
	if e, ok := encodingObject.(dict); ok {
		baseName = nameOf(f.resolve(e["BaseEncoding"]))
		differences, _ = f.resolve(e["Differences"]).(array)
	}
	t.encoding = baseEncoding(baseName)
	if baseName == "" {
		switch {
		case d["Subtype"] == name("TrueType"):
			t.encoding = baseEncoding("WinAnsiEncoding")
		case strings.HasPrefix(base, "Symbol"):
			t.encoding = symbolEncoding()
		default:
			f.builtinEncoding(t, f.dict(d["FontDescriptor"])["FontFile"])
			f.compactEncoding(t, f.dict(d["FontDescriptor"])["FontFile3"])
		}
	}
	at := 0
	for _, o := range differences {
		switch o := f.resolve(o).(type) {
		case float64:
			at = int(o)
		case name:
			if at >= 0 && at < 256 {
				t.encoding[at] = glyphText(string(o))
			}
			at++
		}
	}
}

// readScale reads the size of the glyphs of a Type 3 font.
func (f *file) readScale(t *font, d dict) {
	t.other = 0
	matrix, _ := f.resolve(d["FontMatrix"]).(array)
	if len(matrix) != 6 {
		return
	}
	a, _ := f.resolve(matrix[0]).(float64)
	if a == 0 {
		return
	}
	t.scale = a
	if box, _ := f.resolve(d["FontBBox"]).(array); len(box) == 4 {
		if height := numbers(box, 4)[3] - numbers(box, 4)[1]; height > 0 {
			t.height = math.Abs(height * a)
		}
	}
}

// The widths of the codes 32 to 126 of two of the standard fonts.
const (
	helveticaWidths = "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 " +
		"1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 " +
		"333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
	timesWidths = "250 333 408 500 500 833 778 180 333 333 500 564 250 333 250 278 500 500 500 500 500 500 500 500 500 500 278 278 564 564 564 444 " +
		"921 722 667 667 722 611 556 722 722 333 389 722 611 889 722 722 556 722 667 556 611 722 722 944 722 722 611 333 278 333 469 500 " +
		"333 444 500 444 500 444 333 500 500 278 278 500 278 778 500 500 500 500 333 389 278 500 500 722 500 500 444 480 200 480 541"
)

// standardWidths sets the widths of one of the 14 standard fonts, which a file need not
// contain. Bold and italic letters have those of the regular font, nearly.
func standardWidths(t *font, base string) {
	list := helveticaWidths
	switch {
	case strings.HasPrefix(base, "Courier"):
		t.other = 600
		return
	case strings.HasPrefix(base, "Times"):
		list = timesWidths
	}
	for i, field := range strings.Fields(list) {
		if width, err := strconv.Atoi(field); err == nil {
			t.widths[uint32(' '+i)] = float64(width)
		}
	}
}

// symbolEncoding is the encoding of the font Symbol, of which only Greek letters are known.
func symbolEncoding() encoding {
	e := baseEncoding("")
	for i, r := range []rune("ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ") {
		e['A'+i] = string(r) //nolint:gosec // the list has 26 letters
	}
	for i, r := range []rune("αβχδεφγηιϕκλμνοπθρστυϖωξψζ") {
		e['a'+i] = string(r) //nolint:gosec // the list has 26 letters
	}
	e[0xb7] = "•"
	return e
}

// builtinEncoding reads the encoding in the clear text of a Type 1 font program:
// "dup 28 /fi put".
func (f *file) builtinEncoding(t *font, o object) {
	s, ok := f.resolve(o).(*stream)
	if !ok {
		return
	}
	data, err := f.decode(s)
	if err != nil {
		return
	}
	if end := bytes.Index(data, []byte("eexec")); end >= 0 {
		data = data[:end]
	}
	start := bytes.Index(data, []byte("/Encoding"))
	if start < 0 || bytes.HasPrefix(bytes.TrimSpace(data[start+len("/Encoding"):]), []byte("StandardEncoding")) {
		return
	}
	words := bytes.Fields(data[start:])
	for i := 0; i+3 < len(words) && i < 2000; i++ {
		if string(words[i]) != "dup" || string(words[i+3]) != "put" {
			continue
		}
		n, err := strconv.Atoi(string(words[i+1]))
		if glyph, ok := bytes.CutPrefix(words[i+2], []byte("/")); ok && err == nil && n >= 0 && n < 256 {
			t.encoding[n] = glyphText(string(glyph))
		}
	}
}

// compactEncoding reads the encoding of a CFF font program.
func (f *file) compactEncoding(t *font, o object) {
	for code, glyph := range readCompact(f.bytesOf(o)).codes {
		t.encoding[code] = glyphText(glyph)
	}
}

// bytesOf returns the data of a stream; nil for another object.
func (f *file) bytesOf(o object) []byte {
	s, ok := f.resolve(o).(*stream)
	if !ok {
		return nil
	}
	data, err := f.decode(s)
	if err != nil {
		return nil
	}
	return data
}

// readProgram reads what the font program of a composite font says of its glyphs.
func (f *file) readProgram(t *font, cid dict) {
	t.glyphOf = f.bytesOf(cid["CIDToGIDMap"])
	descriptor := f.dict(cid["FontDescriptor"])
	if data := f.bytesOf(descriptor["FontFile2"]); data != nil {
		t.glyphs = program(data).characters()
		return
	}
	data := f.bytesOf(descriptor["FontFile3"])
	if t.glyphs = program(data).characters(); t.glyphs != nil {
		return
	}
	t.glyphs = map[int]string{}
	for i, glyph := range readCompact(data).names {
		t.glyphs[i] = glyphText(glyph)
	}
}

// glyphText returns the character of a glyph by the font program; empty if it is not known.
func (t *font) glyphText(cid uint32) string {
	glyph := int(cid)
	if t.glyphOf != nil {
		glyph = program(t.glyphOf).u16(2 * glyph)
	}
	return t.glyphs[glyph]
}

func (f *file) loadComposite(t *font, d dict) {
	t.composite, t.other = true, 1000
	if data := f.bytesOf(d["Encoding"]); data != nil {
		t.codeMap = parseCMap(data)
	}
	cmapName := string(nameOf(f.resolve(d["Encoding"])))
	t.vertical = strings.HasSuffix(cmapName, "-V")
	t.charset, t.utf16 = charsetOf(cmapName)
	descendants, _ := f.resolve(d["DescendantFonts"]).(array)
	if len(descendants) == 0 {
		return
	}
	cid := f.dict(descendants[0])
	if n, ok := f.resolve(cid["DW"]).(float64); ok {
		t.other = n
	}
	if t.unicode == nil && t.charset == nil && !t.utf16 {
		f.readProgram(t, cid)
	}
	if t.charset != nil || t.utf16 { // widths are by glyph, which only the CMap knows
		return
	}
	widths, _ := f.resolve(cid["W"]).(array)
	for i := 0; i+1 < len(widths); {
		first := f.integer(widths[i], 0)
		if list, ok := f.resolve(widths[i+1]).(array); ok {
			for j, w := range list {
				t.setWidth(first+j, f.resolve(w))
			}
			i += 2
			continue
		}
		if i+2 >= len(widths) {
			return
		}
		last := min(f.integer(widths[i+1], 0), first+65535)
		for n := first; n <= last; n++ {
			t.setWidth(n, f.resolve(widths[i+2]))
		}
		i += 3
	}
}

func (t *font) setWidth(glyph int, o object) {
	if w, ok := o.(float64); ok && glyph >= 0 && len(t.widths) < 1<<16 {
		t.widths[uint32(glyph)] = w
	}
}

// codes divides a string into its codes.
func (t *font) codes(s text) []code {
	if !t.composite {
		return t.simpleCodes(s)
	}
	var out []code
	for len(s) > 0 {
		n := min(t.length(s), len(s))
		value := codeOf(s[:n])
		cid := value
		if t.codeMap != nil {
			cid = t.codeMap.glyph(value, n)
		}
		c := code{width: t.width(cid), space: n == 1 && value == ' '}
		known := false
		if t.unicode != nil {
			c.text, known = t.unicode.lookup(value, n)
		}
		switch {
		case known:
		case t.utf16:
			if n == 2 && value >= 0xd800 && value < 0xdc00 && len(s) >= 4 {
				n = 4
			}
			c.text = decodeUTF16(string(s[:n]))
		case t.charset != nil:
			if b, err := t.charset.NewDecoder().Bytes([]byte(s[:n])); err == nil {
				c.text = string(b)
			}
		default:
			c.text = t.glyphText(cid)
		}
		if t.charset != nil && n == 1 {
			c.width = 0.5
		}
		out = append(out, c)
		s = s[n:]
	}
	return out
}

func (t *font) simpleCodes(s text) []code {
	out := make([]code, len(s))
	for i := range len(s) {
		c := code{width: t.width(uint32(s[i])), space: s[i] == ' '}
		_, wide := t.widths[uint32(s[i])]
		c.blank = c.space || s[i] < ' ' && !wide
		known := false
		if t.unicode != nil {
			c.text, known = t.unicode.lookup(uint32(s[i]), 1)
		}
		if !known || c.text == "" {
			c.text = t.encoding[s[i]]
		}
		out[i] = c
	}
	return out
}

func (t *font) width(code uint32) float64 {
	if w, ok := t.widths[code]; ok {
		return w * t.scale
	}
	return t.other * t.scale
}

// length returns the length of the first code of a string.
func (t *font) length(s text) int {
	if t.charset != nil {
		if s[0] < 0x80 || s[0] >= 0xa1 && s[0] <= 0xdf && t.shiftJIS() {
			return 1
		}
		return 2
	}
	if t.codeMap != nil {
		for _, space := range t.codeMap.spaces {
			if c := codeOf(s[:min(space.length, len(s))]); c >= space.low && c <= space.high && space.length > 0 {
				return space.length
			}
		}
	}
	if t.unicode != nil && !t.utf16 {
		for _, space := range t.unicode.spaces {
			if c := codeOf(s[:min(space.length, len(s))]); space.length == 1 && len(t.unicode.spaces) > 1 && c >= space.low && c <= space.high {
				return 1
			}
		}
	}
	return 2
}

// shiftJIS reports whether the charset has one-byte katakana.
func (t *font) shiftJIS() bool {
	b, err := t.charset.NewDecoder().Bytes([]byte{0xb1})
	return err == nil && string(b) == "ｱ"
}
