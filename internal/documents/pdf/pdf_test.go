package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
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
