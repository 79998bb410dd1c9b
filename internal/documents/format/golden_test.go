package format

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// TestConvert_RealFiles converts files that LaTeX, Chromium, LibreOffice, WeasyPrint,
// ReportLab, fpdf2, qpdf, python-docx, python-pptx, openpyxl and ebooklib wrote
// (testdata/generate.py) and compares the texts with goldens.
func TestConvert_RealFiles(t *testing.T) {
	for _, name := range []string{
		"bitmap.pdf", "chromium.pdf", "cmap.pdf", "columns.pdf", "letters.pdf", "libreoffice.pdf", "rotated.pdf", "subset.pdf",
		"table.pdf", "tex.pdf", "weasyprint.pdf", "book.epub", "libreoffice.docx", "python.docx", "sheets.xlsx", "slides.pptx", "python.odt", "python.rtf", "sheets.ods", "slides.odp",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Convert(t.Context(), File{Name: name, Data: testFile(t, name)}, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			fmt.Fprintf(&got, "title: %s\nformat: %s\n", r.Title, r.Format)
			for i, text := range r.PageTexts() {
				fmt.Fprintf(&got, "---- part %d\n%s\n", i+1, text)
			}
			golden := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("the text differs from %s:\n%s", golden, got.String())
			}
		})
	}
}

// TestConvert_SameColumns: an encrypted, compressed or damaged copy of a file has its text.
func TestConvert_SameColumns(t *testing.T) {
	columns := testFile(t, "columns.pdf")
	end := strings.LastIndex(string(columns), "startxref")
	table := strings.LastIndex(string(columns[:end]), "xref\n")
	files := map[string][]byte{
		"owner40.pdf": nil, "owner128.pdf": nil, "owner256.pdf": nil, "streams.pdf": nil,
		"wrong place of the table": append(columns[:end:end], "startxref\n99\n%%EOF"...),
		"no table":                 columns[:table],
		"text before the header":   append([]byte("text\n"), columns...),
	}
	want := convert(t, "columns.pdf", string(columns)).Text
	for name, data := range files {
		if data == nil {
			data = testFile(t, name)
		}
		if got := convert(t, "copy.pdf", string(data)).Text; got != want {
			t.Errorf("%s: got:\n%s", name, got)
		}
	}
}

// TestConvert_Passwords: a file opens with the password of its users and with that of its owner.
func TestConvert_Passwords(t *testing.T) {
	want := convert(t, "columns.pdf", string(testFile(t, "columns.pdf"))).Text
	for name, password := range map[string]string{"user40.pdf": "geheimé", "user128.pdf": "secret", "user256.pdf": "secret", "columns.pdf": "of no use", "owner256.pdf": "of no use"} {
		file := File{Name: name, Data: testFile(t, name)}
		for _, file.Password = range []string{password, "owner"} {
			got, err := Convert(t.Context(), file, Limits{})
			if err != nil || got.Text != want {
				t.Errorf("%s with %q: %v, %v", name, file.Password, got, err)
			}
		}
		if !strings.HasPrefix(name, "user") {
			continue
		}
		file.Password = "Secret"
		if err := convertError(t, file, Limits{}); err.Kind != Encrypted || err.Error() != name+": is encrypted, and not with this password" {
			t.Errorf("%s with a wrong password: %v", name, err)
		}
	}
}

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// symbols is a PDF file whose font does not state the character of a code.
func symbols(content string) string {
	return "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n" +
		"3 0 obj <</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>> endobj\n" +
		fmt.Sprintf("4 0 obj <</Length %d>>\nstream\n%s\nendstream endobj\n", len(content), content) +
		"5 0 obj <</Type/Font/Subtype/Type1/Encoding<</Differences[126/g7]>>>> endobj\ntrailer <</Root 1 0 R>>\n"
}

func TestConvert_UnknownCharacters(t *testing.T) {
	r := convert(t, "a.pdf", symbols("BT /F 10 Tf 50 700 Td (below ~10 metres) Tj ET"))
	if want := "below \uFFFD10 metres"; r.Text != want || r.UnknownCharacters() != 0.072 {
		t.Errorf("got %q, %v", r.Text, r.UnknownCharacters())
	}
	if err := convertError(t, File{Name: "a.pdf", Data: []byte(symbols("BT /F 10 Tf 50 700 Td (a~~) Tj ET"))}, Limits{}); err.Kind != NoText {
		t.Errorf("got %v", err)
	}
}
