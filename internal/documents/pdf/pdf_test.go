package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var limits = Limits{Pages: 20_000, Unpacked: 64 << 20}

// document makes a file of objects, the first of which is the catalog, with a table.
func document(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", len(objects)+1, start)
	return b.Bytes()
}

func streamObject(entries, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", entries, len(data), data)
}

// onePage makes a file with a page of a content stream.
func onePage(content string, more ...string) []byte {
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>>>",
		streamObject("", content),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
	}
	return document(append(objects, more...)...)
}

func read(t *testing.T, data []byte) *Document {
	t.Helper()
	doc, err := Read(t.Context(), data, "", limits)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func textOf(p Page) string {
	var parts []string
	for _, b := range p.Blocks {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "|")
}

func TestRead_Operators(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"kerning and spaces", "BT /F 10 Tf 50 700 Td [(Har)-20(bour)-300(mast)20(er)] TJ ET", "Harbour master"},
		{"next lines", "BT /F 10 Tf 12 TL 50 700 Td (one) Tj (two) ' 0 0 (three) \" ET", "one two three"},
		{"escapes", `BT /F 10 Tf 50 700 Td (a\(b\)\101\n \344) Tj ET`, "a(b)A ä"},
		{"hexadecimal", "BT /F 10 Tf 50 700 Td <48 65 6C6C6F2> Tj ET", "Hello"},
		{"divided word", "BT /F 10 Tf 12 TL 50 700 Td (har-) Tj (bour) ' ET", "harbour"},
		{"hyphen of a name", "BT /F 10 Tf 12 TL 50 700 Td (North-) Tj (Sea) ' ET", "North-Sea"},
		{"printed over another text", "BT /F 10 Tf 50 700 Td (Text the first time) Tj 0 0 Td (Text the second time) Tj ET", "Text the first time Text the second time"},
		{"in the space of another text", "BT /F 10 Tf 50 700 Td [(Name:)-4000(Age:)] TJ 40 0 Td (Ada) Tj ET", "Name: Ada Age:"},
		{"printed twice", "BT /F 10 Tf 50 700 Td (bold) Tj ET BT /F 10 Tf 50.3 700 Td (bold) Tj ET", "bold"},
		{"replacement text", "BT /F 10 Tf 50 700 Td /Span <</ActualText(office)>> BDC (o\001ce) Tj EMC ET", "office"},
		{"image in the content", "BI /W 1 /H 1 ID \x00BT(no)Tj EI BT /F 10 Tf 50 700 Td (yes) Tj ET", "yes"},
		{"saved state", "q 2 0 0 2 0 0 cm Q BT /F 10 Tf 50 700 Td (a) Tj ET", "a"},
		{"later drawn, higher on the page", "BT /F 10 Tf 50 100 Td (below) Tj ET BT /F 10 Tf 50 700 Td (above) Tj ET", "above|below"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := textOf(read(t, onePage(test.content)).Pages[0]); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRead_ToUnicode(t *testing.T) {
	data := document(
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
		streamObject("", "BT /F 10 Tf 50 700 Td <000100020003> Tj ET"),
		"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[7 0 R]>>",
		streamObject("", "1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfchar <0001> <00660066> endbfchar 1 beginbfrange <0002> <0003> [<0069> <D83DDE00>] endbfrange"),
		"<</Type/Font/Subtype/CIDFontType2/DW 500/W[1[600 500 900]]>>")
	if got := textOf(read(t, data).Pages[0]); got != "ffi😀" {
		t.Errorf("got %q", got)
	}
}

// TestRead_ThousandPages reads a file with 1,000 pages, labels included.
// TestRead_UnknownCharacters shows each character that the font does not state, or states to be null, as U+FFFD.
func TestRead_UnknownCharacters(t *testing.T) {
	for _, test := range []struct {
		name, content, font, want string
		unknown, known            int
	}{
		{"glyphs without a name", "(a\x01b) Tj", "/Type1/Encoding<</Differences[1/g7]>>/FirstChar 1/Widths[500]", "a\uFFFDb", 1, 2},
		{"a control code that the font does not have", "(a\\n\\000b) Tj", "/Type1/BaseFont/Helvetica", "a b", 0, 2},
		{"a space without a name", "(a b) Tj", "/Type1/Encoding<</Differences[32/g7]>>", "a b", 0, 2},
		{"null characters of a map", "<000100020003> Tj", "/Type0/Encoding/Identity-H/ToUnicode 6 0 R", "i\uFFFD\uFFFD", 2, 1},
		{"a replacement", "/Span<</ActualText(x)>>BDC <00020003> Tj EMC", "/Type0/Encoding/Identity-H/ToUnicode 6 0 R", "x", 0, 1},
		{"a name without letters", "(a\x01) Tj", "/Type1/Encoding<</Differences[1/ /a]>>/FirstChar 1/Widths[500]", "a\uFFFD", 1, 1},
	} {
		page := read(t, document(
			"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
			"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
			streamObject("", "BT /F 10 Tf 50 700 Td "+test.content+" ET"), "<</Type/Font/Subtype"+test.font+">>",
			streamObject("", "2 beginbfchar <0001> <0069> <0002> <0000> endbfchar"))).Pages[0]
		if got := textOf(page); got != test.want || page.Unknown != test.unknown || page.Known != test.known {
			t.Errorf("%s: %q, %d unknown, %d known", test.name, got, page.Unknown, page.Known)
		}
	}
}

func TestRead_ThousandPages(t *testing.T) {
	const pages = 1000
	objects := []string{"<</Type/Catalog/Pages 2 0 R/PageLabels<</Nums[0<</S/r>>3<</S/D>>]>>>>", ""}
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", len(objects)+1)
		objects = append(objects,
			fmt.Sprintf("<</Type/Page/Contents %d 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Courier>>>>>>>>", len(objects)+2),
			streamObject("", fmt.Sprintf("BT /F 10 Tf 50 700 Td (page %d) Tj ET", i+1)))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", pages, kids.String())
	doc := read(t, document(objects...))
	if len(doc.Pages) != pages {
		t.Fatalf("%d pages", len(doc.Pages))
	}
	for i, p := range doc.Pages {
		if want := fmt.Sprintf("page %d", i+1); textOf(p) != want {
			t.Fatalf("page %d: %q", i+1, textOf(p))
		}
	}
	if got := []string{doc.Pages[1].Label, doc.Pages[3].Label, doc.Pages[999].Label}; strings.Join(got, " ") != "ii 1 997" {
		t.Errorf("labels %v", got)
	}
	if _, err := Read(t.Context(), document(objects...), "", Limits{Pages: 999, Unpacked: 1 << 20}); !errors.Is(err, ErrPages) {
		t.Errorf("limit of pages: %v", err)
	}
}

func deflate(data []byte) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.String()
}

// TestRead_Bombs: small files that would cost much end with an error or without text.
func TestRead_Bombs(t *testing.T) {
	huge := deflate(bytes.Repeat([]byte(" "), 100<<20))
	twice := deflate([]byte(deflate(bytes.Repeat([]byte("0"), 90<<20))))
	forms := []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Contents 4 0 R/Resources<</XObject<</X 4 0 R>>>>>>",
		streamObject("/Subtype/Form/Resources<</XObject<</X 4 0 R>>>>", strings.Repeat("/X Do ", 100)),
	}
	for name, data := range map[string][]byte{
		"stream":          onePageOf(streamObject("/Filter/FlateDecode", huge)),
		"stream of twice": onePageOf(streamObject("/Filter[/FlateDecode/FlateDecode]", twice)),
		"runs":            onePageOf(streamObject("/Filter/RunLengthDecode", strings.Repeat("\x81 ", 1<<20))),
		"forms":           document(forms...),
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Read(t.Context(), data, "", limits)
			if err == nil && textOf(doc.Pages[0]) != "" || err != nil && !errors.Is(err, ErrTooLarge) {
				t.Errorf("error %v", err)
			}
		})
	}
	for name, data := range map[string][]byte{
		"nested arrays":     onePageOf(streamObject("", strings.Repeat("[", 1<<20))),
		"nested dicts":      []byte("%PDF-1.4\n1 0 obj\n" + strings.Repeat("<</A", 1<<20)),
		"page of itself":    document("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R]>>"),
		"reference to self": document("<</Type/Catalog/Pages 2 0 R>>", "2 0 R"),
		"length of itself":  document("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]>>", "<</Type/Page/Contents 4 0 R>>", "<</Length 4 0 R>>\nstream\nBT\nendstream"),
		"previous table":    []byte("%PDF-1.4\nxref\n0 0\ntrailer\n<</Prev 9>>\nstartxref\n9\n%%EOF"),
		"empty":             nil,
		"header only":       []byte("%PDF-1.7"),
	} {
		t.Run(name, func(t *testing.T) {
			if doc, err := Read(t.Context(), data, "", limits); err == nil && textOf(doc.Pages[0]) != "" {
				t.Errorf("text %q", textOf(doc.Pages[0]))
			}
		})
	}
}

func onePageOf(stream string) []byte {
	return document("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Contents 4 0 R>>", stream)
}

func TestRead_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, onePage("BT /F 10 Tf (a) Tj ET"), "", limits); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUnpackLZW(t *testing.T) {
	f := &file{unpacked: 1 << 20}
	// The example of ISO 32000-1, 7.4.4.2.
	got, err := f.unpackLZW([]byte{0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01}, 1)
	if want := []byte{45, 45, 45, 45, 45, 65, 45, 45, 45, 66}; err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(onePage("BT /F 10 Tf 50 700 Td [(Har)-20(bour)] TJ ET"))
	f.Add(onePageOf(streamObject("/Filter/FlateDecode", deflate([]byte("BT (a) Tj ET")))))
	f.Add([]byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Contents 4 0 R>>endobj trailer<</Root 1 0 R>>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Read(context.Background(), data, "", Limits{Pages: 100, Unpacked: 4 << 20})
		if err == nil && len(doc.Pages) == 0 {
			t.Error("no pages and no error")
		}
	})
}

// TestHardenedHash: the number of rounds follows from the last byte; of these one is at the limit.
func TestHardenedHash(t *testing.T) {
	user := hexBytes(t, "ae700c793d687882958ce411fed797a6364e182dc4cb8c3819d347b9d577c3526d9fd5c2b9fe54cfed6539accc53ac28")
	owner := hexBytes(t, "57c08f4d2b7e02a2eb6deabf903267643bd971f5201ed5e1865311001c05d012e7a9dea18e3de1aa35675d0069944da1")
	if got := hardenedHash([]byte("asdfzxcv"), user[32:40], nil); !bytes.Equal(got, user[:32]) {
		t.Errorf("the password of users: %x", got)
	}
	if got := hardenedHash(nil, owner[32:40], user); !bytes.Equal(got, owner[:32]) {
		t.Errorf("the password of the owner: %x", got)
	}
	f := &file{trailer: dict{}}
	d := dict{"R": 6.0, "U": text(user), "O": text(owner), "UE": text(hexBytes(t, "557c4e6be3cc2bd0166a1b1ab3b0e09d6f0e3f5d17d305925c7055116ac14c6c")), "OE": text(hexBytes(t, "ec81dd84bd5492acdcd5f82cd3093427d2db0eace3789f0f39c65ebea10253dd"))}
	if a, b := f.key256(d, nil), f.key256(d, []byte("asdfzxcv")); a == nil || !bytes.Equal(a, b) {
		t.Errorf("the keys by both passwords: %x, %x", a, b)
	}
	if got := f.key256(d, []byte("Asdfzxcv")); got == nil || !bytes.Equal(got, f.key256(d, nil)) {
		t.Error("the file opens without a password")
	}
}

func hexBytes(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fontFile makes a TrueType font with one table of characters, for codes to glyphs.
func fontFile(format string) string {
	table := map[string]string{
		"4":  "\x00\x04\x00\x20\x00\x00\x00\x04\x00\x04\x00\x01\x00\x00\x00\x42\xff\xff\x00\x00\x00\x41\xff\xff\xff\xc4\x00\x01\x00\x00\x00\x00",
		"6":  "\x00\x06\x00\x0e\x00\x00\x00\x41\x00\x02\x00\x05\x00\x06",
		"12": "\x00\x0c\x00\x00\x00\x00\x00\x1c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x41\x00\x00\x00\x42\x00\x00\x00\x05",
	}[format]
	kind := map[string]string{"4": "\x00\x03\x00\x01", "6": "\x00\x01\x00\x00", "12": "\x00\x03\x00\x0a"}[format]
	cmap := "\x00\x00\x00\x01" + kind + "\x00\x00\x00\x0c" + table
	return "\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00cmap\x00\x00\x00\x00\x00\x00\x00\x1c" + string([]byte{0, 0, 0, byte(len(cmap))}) + cmap
}

// TestRead_FontPrograms: a font without a ToUnicode map has the characters of its program, through the CMap of its codes and
// the map to its glyphs.
func TestRead_FontPrograms(t *testing.T) {
	const codes = "1 begincodespacerange <00> <7f> endcodespacerange 1 begincidrange <20> <21> 1 endcidrange 1 begincidchar <30> 2 endcidchar"
	for _, format := range []string{"4", "6", "12"} {
		for name, c := range map[string]struct{ content, encoding, toGlyph, want string }{
			"identity": {"<00050006>", "/Identity-H", "/Identity", "AB"},
			"map":      {"<00010002>", "/Identity-H", "9 0 R", "BA"},
			"CMap":     {"<202130>", "10 0 R", "9 0 R", "BAA"},
		} {
			data := document("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
				"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>", streamObject("", "BT /F 12 Tf 10 700 Td "+c.content+" Tj ET"),
				"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding "+c.encoding+"/DescendantFonts[6 0 R]>>",
				"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDToGIDMap "+c.toGlyph+"/FontDescriptor 7 0 R>>", "<</Type/FontDescriptor/FontFile2 8 0 R>>",
				streamObject("", fontFile(format)), streamObject("", "\x00\x00\x00\x06\x00\x05"), streamObject("", codes))
			if got := texts(read(t, data)); got != c.want {
				t.Errorf("%s, format %s: %q", name, format, got)
			}
		}
	}
}

// TestReadCompact: the names of glyphs, in order, in ranges and of further codes.
func TestReadCompact(t *testing.T) {
	index := func(items ...string) string {
		out, at := string([]byte{0, byte(len(items)), 1, 1}), 1
		for _, item := range items {
			at += len(item)
			out += string([]byte{byte(at)})
		}
		return out + strings.Join(items, "")
	}
	number := func(n int) string { return string([]byte{28, byte(n >> 8), byte(n)}) }
	for name, c := range map[string]struct{ charset, encoding string }{
		"lists":  {"\x00\x00\x22\x01\x87", "\x80\x02\x41\x42\x01\x43\x00\x6d"},
		"ranges": {"\x01\x00\x22\x00\x01\x87\x00", "\x81\x01\x41\x01\x01\x43\x00\x6d"},
	} {
		head, dictSize := "\x01\x00\x04\x01"+index("X"), 3*3+3
		at := len(head) + len(index(strings.Repeat(" ", dictSize))) + len(index("Ydieresis.alt")) + len("\x00\x00")
		glyphs := index("a", "b", "c")
		top := number(at+len(glyphs)) + "\x0f" + number(at+len(glyphs)+len(c.charset)) + "\x10" + number(at) + "\x11"
		got := readCompact([]byte(head + index(top) + index("Ydieresis.alt") + "\x00\x00" + glyphs + c.charset + c.encoding))
		if want := []string{".notdef", "A", "Ydieresis.alt"}; !slices.Equal(got.names, want) || got.codes[0x41] != "A" || got.codes[0x42] != "Ydieresis.alt" || got.codes[0x43] != "fi" {
			t.Errorf("%s: %q, %v", name, got.names, got.codes)
		}
	}
}

// FuzzProgram: no font program fails.
func FuzzProgram(f *testing.F) {
	for _, format := range []string{"4", "6", "12"} {
		f.Add([]byte(fontFile(format)))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		program(data).characters()
		readCompact(data)
	})
}

// texts returns the text of a document, a line for each block.
func texts(doc *Document) string {
	var lines []string
	for _, p := range doc.Pages {
		for _, b := range p.Blocks {
			lines = append(lines, b.Text)
		}
	}
	return strings.Join(lines, "\n")
}
