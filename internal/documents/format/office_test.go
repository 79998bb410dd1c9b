package format

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// pack makes a zip archive of names and contents.
func pack(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range parts {
		out, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// word makes a Word document of the content of its body.
func word(t testing.TB, body string) []byte {
	t.Helper()
	return pack(t, map[string]string{"word/document.xml": `<w:document xmlns:w="w" xmlns:mc="mc"><w:body>` + body + `</w:body></w:document>`})
}

func TestConvert_WordElements(t *testing.T) {
	paragraph := func(s string) string { return "<w:p><w:r><w:t>" + s + "</w:t></w:r></w:p>" }
	for _, test := range []struct{ name, body, want string }{
		{"deleted and inserted", "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>", "new"},
		{"hidden", "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r><w:r><w:t>yes</w:t></w:r></w:p>", "yes"},
		{"outline level", `<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>h</w:t></w:r></w:p>`, "### h"},
		{"text box", "<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>" + paragraph("box") + "</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>" + paragraph("box") + "</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>" + paragraph("after"), "box\n\nafter"},
		{"merged cells", `<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>` + paragraph("a") + `</w:tc></w:tr><w:tr><w:tc>` + paragraph("b") + `</w:tc><w:tc>` + paragraph("c|d") + `</w:tc></w:tr></w:tbl>`, "| a |  |\n| --- | --- |\n| b | c\\|d |"},
		{"content control", "<w:sdt><w:sdtContent>" + paragraph("x") + "</w:sdtContent></w:sdt>", "x"},
		{"field", `<w:p><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>7</w:t></w:r></w:p>`, "7"},
	} {
		if got := convert(t, "a.docx", string(word(t, test.body))).Text; got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// The main part of a file may have any name, which the relations of the archive have.
func TestConvert_MainPart(t *testing.T) {
	relations := func(target string) string {
		return `<Relationships><Relationship Id="a" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="` + target + `"/></Relationships>`
	}
	text := func(tag, body string) string {
		return "<" + tag + ` xmlns:w="w"><w:body><w:p><w:r><w:t>` + body + "</w:t></w:r></w:p></w:body></" + tag + ">"
	}
	for name, parts := range map[string]map[string]string{
		"absolute.docx": {"_rels/.rels": relations("/word/document2.xml"), "word/document2.xml": text("w:document", "main")},
		"relative.docx": {"_rels/.rels": relations("word/other.xml"), "word/other.xml": text("w:document", "main")},
		"no extension":  {"_rels/.rels": relations("word/other.xml"), "word/other.xml": text("w:document", "main")},
	} {
		if got := convert(t, name, string(pack(t, parts))).Text; got != "main" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestConvert_ArchiveBombs: archives and XML that would take much memory are errors.
func TestConvert_ArchiveBombs(t *testing.T) {
	testkit.SkipWithRace(t)
	var entities strings.Builder
	entities.WriteString(`<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "lol">`)
	for i := range 30 {
		fmt.Fprintf(&entities, `<!ENTITY a%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&a%d;", i), 10))
	}
	entities.WriteString(`]><w:document xmlns:w="w"><w:body><w:p><w:r><w:t>&a30;</w:t></w:r></w:p></w:body></w:document>`)
	for name, parts := range map[string]map[string]string{
		"a.docx": {"word/document.xml": "<w>" + strings.Repeat(" ", 40<<20)},
		"b.docx": {"word/document.xml": strings.Repeat("<w>", 100_000)},
		"c.docx": {"word/document.xml": strings.Repeat("<w/>", 3_000_000)},
		"a.xlsx": {"xl/workbook.xml": "<workbook>" + strings.Repeat(" ", 40<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			err := convertError(t, File{Name: name, Data: pack(t, parts)}, Limits{Unpacked: 16 << 20})
			if err.Kind != TooLarge {
				t.Error(err)
			}
		})
	}
	r, err := Convert(t.Context(), File{Name: "e.docx", Data: pack(t, map[string]string{"word/document.xml": entities.String()})}, Limits{})
	if err == nil && len(r.Text) > 100 {
		t.Errorf("entities were expanded to %d bytes", len(r.Text))
	}
}

func TestConvert_EncryptedBook(t *testing.T) {
	parts := map[string]string{
		"META-INF/container.xml":  `<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`,
		"META-INF/encryption.xml": `<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>`,
		"b.opf":                   `<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>`,
		"a.xhtml":                 "<p>text</p>",
	}
	if err := convertError(t, File{Name: "a.epub", Data: pack(t, parts)}, Limits{}); err.Kind != Encrypted {
		t.Error(err)
	}
	parts["META-INF/encryption.xml"] = `<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></EncryptedData></encryption>`
	if got := convert(t, "a.epub", string(pack(t, parts))).Text; got != "text" {
		t.Errorf("got %q", got)
	}
}

func FuzzOffice(f *testing.F) {
	f.Add("docx", `<w:document xmlns:w="w"><w:body><w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p><w:tbl><w:tr><w:tc/></w:tr></w:tbl></w:body></w:document>`)
	f.Add("pptx", `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="1" r:id="2"/></p:sldIdLst></p:presentation>`)
	f.Add("xlsx", `<workbook xmlns:r="r"><sheets><sheet name="a" r:id="1"/></sheets></workbook>`)
	f.Add("epub", `<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`)
	parts := map[string]string{"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml", "epub": "META-INF/container.xml"}
	f.Fuzz(func(t *testing.T, format, content string) {
		part, ok := parts[format]
		if !ok {
			return
		}
		data := pack(t, map[string]string{part: content, "b.opf": content, "word/styles.xml": content})
		_, _ = Convert(t.Context(), File{Name: "a." + format, Data: data}, Limits{Output: 1 << 20, Unpacked: 1 << 20}) // must not panic
	})
}
