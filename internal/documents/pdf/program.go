package pdf

import (
	"encoding/binary"
	"strings"
	"sync"

	"golang.org/x/text/encoding/charmap"
)

// What embedded font programs say of their characters: the cmap table of TrueType and OpenType fonts, and the names of
// the glyphs of CFF fonts. They serve fonts whose file does not state what its codes mean.

// program reads numbers of a font program. What is beyond its end is 0.
type program []byte

func (p program) from(at int) program {
	if at < 0 || at > len(p) {
		return nil
	}
	return p[at:]
}

func (p program) u8(at int) int {
	if at < 0 || at >= len(p) {
		return 0
	}
	return int(p[at])
}

func (p program) u16(at int) int {
	if b := p.from(at); len(b) >= 2 {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (p program) u32(at int) int { return p.u16(at)<<16 | p.u16(at+2) }

// maxCharacters is the number of glyphs of a font program, and more than its tables may map.
const maxCharacters = 1 << 16

// characters returns the characters of the glyphs of a TrueType or OpenType font: of several, the lowest.
func (p program) characters() map[int]string {
	for i := range min(p.u16(4), 100) {
		if entry := p.from(12 + 16*i); len(entry) >= 16 && string(entry[:4]) == "cmap" {
			return p.from(entry.u32(8)).cmapTable()
		}
	}
	return nil
}

// cmapTable reads the table of the best kind: all of Unicode, its first plane, or Mac Roman.
func (p program) cmapTable() map[int]string {
	best, offset := 0, 0
	for i := range min(p.u16(2), 100) {
		rank := 0
		switch platform, kind := p.u16(4+8*i), p.u16(6+8*i); {
		case platform == 3 && kind == 10, platform == 0 && kind >= 4 && kind != 5:
			rank = 3
		case platform == 3 && kind == 1, platform == 0 && kind < 4:
			rank = 2
		case platform == 1 && kind == 0:
			rank = 1
		}
		if rank > best {
			best, offset = rank, p.u32(8+8*i)
		}
	}
	if best == 0 {
		return nil
	}
	glyphs := map[int]string{}
	p.from(offset).mappings(func(code, glyph int) {
		r := rune(code)
		if best == 1 {
			r = charmap.Macintosh.DecodeByte(byte(code))
		}
		if _, known := glyphs[glyph]; !known && glyph > 0 && len(glyphs) < maxCharacters {
			glyphs[glyph] = charText(r)
		}
	})
	return glyphs
}

// mappings calls found with the codes of a table of one of the usual formats, ascending, and their glyphs.
func (p program) mappings(found func(code, glyph int)) {
	switch p.u16(0) {
	case 0:
		for code := range 256 {
			found(code, p.u8(6+code))
		}
	case 4:
		p.segments(found)
	case 6:
		for i := range p.u16(8) {
			found(p.u16(6)+i, p.u16(10+2*i))
		}
	case 12:
		left := maxCharacters
		for i := range min(p.u32(12), maxCharacters) {
			group := p.from(16 + 12*i)
			for code := group.u32(0); code <= group.u32(4) && left > 0; code++ {
				found(code, group.u32(8)+code-group.u32(0))
				left--
			}
		}
	}
}

// segments reads the format 4.
func (p program) segments(found func(code, glyph int)) {
	n := p.u16(6) / 2
	ends, starts, deltas, offsets := p.from(14), p.from(16+2*n), p.from(16+4*n), p.from(16+6*n)
	for i := range n {
		first, last := starts.u16(2*i), ends.u16(2*i)
		for code := first; code <= last && code < 0xffff; code++ {
			glyph := code
			if offset := offsets.u16(2 * i); offset > 0 {
				if glyph = offsets.u16(2*i + offset + 2*(code-first)); glyph == 0 {
					continue
				}
			}
			found(code, (glyph+deltas.u16(2*i))&0xffff)
		}
	}
}

// compact is what a CFF font says of its glyphs.
type compact struct {
	names []string       // of the glyphs; empty for one with numbers in place of names
	codes map[int]string // the names by the codes of the font's own encoding; nil for a standard one
}

// readCompact reads a CFF font.
func readCompact(data []byte) compact {
	p := program(data)
	_, next := p.index(p.u8(2)) // names of fonts
	top, next := p.index(next)
	texts, _ := p.index(next)
	if len(top) == 0 {
		return compact{}
	}
	operands := top[0].operands()
	charset, encoding := operands[15], operands[16]
	if glyphs, _ := p.index(last(operands[17])); len(glyphs) > 0 && operands[12<<8|30] == nil {
		c := compact{names: p.charset(last(charset), len(glyphs), texts)}
		if at := last(encoding); at > 1 {
			c.codes = p.from(at).codeTable(c.names, texts)
		}
		return c
	}
	return compact{}
}

func last(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

// index reads a list of objects, and returns where it ends.
func (p program) index(at int) (list []program, next int) {
	n, size := p.u16(at), p.u8(at+2)
	if n == 0 || size < 1 || size > 4 {
		return nil, at + 2
	}
	offset := func(i int) (o int) {
		for j := range size {
			o = o<<8 | p.u8(at+3+i*size+j)
		}
		return o
	}
	base := at + 2 + (n+1)*size
	for i := range n {
		from, to := base+offset(i), base+offset(i+1)
		if from < 0 || to < from || to > len(p) {
			return nil, len(p)
		}
		list = append(list, p[from:to])
	}
	return list, base + offset(n)
}

// operands returns the integers before each operator of a dictionary; those of two bytes are 12<<8 and the second.
func (p program) operands() map[int][]int {
	all, list := map[int][]int{}, []int{}
	for i := 0; i < len(p); i++ {
		switch b := p.u8(i); {
		case b == 12:
			all[12<<8|p.u8(i+1)], list = list, []int{}
			i++
		case b <= 21:
			all[b], list = list, []int{}
		case b == 28:
			list = append(list, int(int16(p.u16(i+1))))
			i += 2
		case b == 29:
			list = append(list, int(int32(p.u32(i+1))))
			i += 4
		case b == 30: // a real number ends with a half byte 15
			i++
			for i < len(p) && p[i]&15 != 15 && p[i]>>4 != 15 {
				i++
			}
		case b >= 32 && b <= 246:
			list = append(list, b-139)
		case b >= 247 && b <= 250:
			list = append(list, (b-247)*256+p.u8(i+1)+108)
			i++
		case b >= 251 && b <= 254:
			list = append(list, -(b-251)*256-p.u8(i+1)-108)
			i++
		}
	}
	return all
}

// glyphName returns the name with a number: a standard one, or one of the texts of the file; empty if it is unknown.
func glyphName(id int, texts []program) string {
	standard := standardNames()
	switch {
	case id < len(standard):
		return standard[id]
	case id-len(standard) < len(texts):
		return string(texts[id-len(standard)])
	}
	return ""
}

// charset returns the names of n glyphs. The charsets 0 to 2 are standard ones, of which only the first is known.
func (p program) charset(at, n int, texts []program) []string {
	names := []string{".notdef"}
	if at <= 2 {
		for id := 1; id < n && id <= 228 && at == 0; id++ {
			names = append(names, glyphName(id, texts))
		}
		return names
	}
	format, at := p.u8(at), at+1
	for len(names) < n && at < len(p) {
		first, left := p.u16(at), 0
		switch format {
		case 0:
			at += 2
		case 1:
			left = p.u8(at + 2)
			at += 3
		default:
			left = p.u16(at + 2)
			at += 4
		}
		for id := first; id <= first+left && len(names) < n; id++ {
			names = append(names, glyphName(id, texts))
		}
	}
	return names
}

// codeTable reads the encoding of a font: the names of glyphs in order, or in ranges, and of further codes.
func (p program) codeTable(names []string, texts []program) map[int]string {
	codes, glyph := map[int]string{}, 1
	add := func(code int) {
		if glyph < len(names) && code < 256 {
			codes[code] = names[glyph]
		}
		glyph++
	}
	at := 2
	for range p.u8(1) {
		code, more := p.u8(at), 0
		if at++; p.u8(0)&127 == 1 {
			more = p.u8(at)
			at++
		}
		for i := range more + 1 {
			add(code + i)
		}
	}
	if p.u8(0)&128 != 0 {
		for i := range p.u8(at) {
			codes[p.u8(at+1+3*i)] = glyphName(p.u16(at+2+3*i), texts)
		}
	}
	return codes
}

// standardNames are the names of glyphs that all CFF fonts have (Adobe's Technical Note 5176, appendix A).
var standardNames = sync.OnceValue(func() []string { return strings.Fields(standardNameList) })

const standardNameList = ".notdef space exclam quotedbl numbersign dollar percent ampersand quoteright parenleft parenright asterisk plus comma hyphen period slash zero one two " +
	"three four five six seven eight nine colon semicolon less equal greater question at A B C D E F G H I J K L M N O P Q R S T U V W X Y Z bracketleft " +
	"backslash bracketright asciicircum underscore quoteleft a b c d e f g h i j k l m n o p q r s t u v w x y z braceleft bar braceright asciitilde " +
	"exclamdown cent sterling fraction yen florin section currency quotesingle quotedblleft guillemotleft guilsinglleft guilsinglright fi fl endash dagger " +
	"daggerdbl periodcentered paragraph bullet quotesinglbase quotedblbase quotedblright guillemotright ellipsis perthousand questiondown grave acute " +
	"circumflex tilde macron breve dotaccent dieresis ring cedilla hungarumlaut ogonek caron emdash AE ordfeminine Lslash Oslash OE ordmasculine ae " +
	"dotlessi lslash oslash oe germandbls onesuperior logicalnot mu trademark Eth onehalf plusminus Thorn onequarter divide brokenbar degree thorn " +
	"threequarters twosuperior registered minus eth multiply threesuperior copyright Aacute Acircumflex Adieresis Agrave Aring Atilde Ccedilla Eacute " +
	"Ecircumflex Edieresis Egrave Iacute Icircumflex Idieresis Igrave Ntilde Oacute Ocircumflex Odieresis Ograve Otilde Scaron Uacute Ucircumflex Udieresis " +
	"Ugrave Yacute Ydieresis Zcaron aacute acircumflex adieresis agrave aring atilde ccedilla eacute ecircumflex edieresis egrave iacute icircumflex " +
	"idieresis igrave ntilde oacute ocircumflex odieresis ograve otilde scaron uacute ucircumflex udieresis ugrave yacute ydieresis zcaron exclamsmall " +
	"Hungarumlautsmall dollaroldstyle dollarsuperior ampersandsmall Acutesmall parenleftsuperior parenrightsuperior twodotenleader onedotenleader " +
	"zerooldstyle oneoldstyle twooldstyle threeoldstyle fouroldstyle fiveoldstyle sixoldstyle sevenoldstyle eightoldstyle nineoldstyle commasuperior " +
	"threequartersemdash periodsuperior questionsmall asuperior bsuperior centsuperior dsuperior esuperior isuperior lsuperior msuperior nsuperior " +
	"osuperior rsuperior ssuperior tsuperior ff ffi ffl parenleftinferior parenrightinferior Circumflexsmall hyphensuperior Gravesmall Asmall Bsmall Csmall " +
	"Dsmall Esmall Fsmall Gsmall Hsmall Ismall Jsmall Ksmall Lsmall Msmall Nsmall Osmall Psmall Qsmall Rsmall Ssmall Tsmall Usmall Vsmall Wsmall Xsmall " +
	"Ysmall Zsmall colonmonetary onefitted rupiah Tildesmall exclamdownsmall centoldstyle Lslashsmall Scaronsmall Zcaronsmall Dieresissmall Brevesmall " +
	"Caronsmall Dotaccentsmall Macronsmall figuredash hypheninferior Ogoneksmall Ringsmall Cedillasmall questiondownsmall oneeighth threeeighths " +
	"fiveeighths seveneighths onethird twothirds zerosuperior foursuperior fivesuperior sixsuperior sevensuperior eightsuperior ninesuperior zeroinferior " +
	"oneinferior twoinferior threeinferior fourinferior fiveinferior sixinferior seveninferior eightinferior nineinferior centinferior dollarinferior " +
	"periodinferior commainferior Agravesmall Aacutesmall Acircumflexsmall Atildesmall Adieresissmall Aringsmall AEsmall Ccedillasmall Egravesmall " +
	"Eacutesmall Ecircumflexsmall Edieresissmall Igravesmall Iacutesmall Icircumflexsmall Idieresissmall Ethsmall Ntildesmall Ogravesmall Oacutesmall " +
	"Ocircumflexsmall Otildesmall Odieresissmall OEsmall Oslashsmall Ugravesmall Uacutesmall Ucircumflexsmall Udieresissmall Yacutesmall Thornsmall " +
	"Ydieresissmall 001.000 001.001 001.002 001.003 Black Bold Book Light Medium Regular Roman Semibold"
