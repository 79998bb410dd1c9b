package format

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func convert(t *testing.T, name, content string) *Result {
	t.Helper()
	r, err := Convert(t.Context(), File{Name: name, Data: []byte(content)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// convertError returns the error of a file that cannot be converted.
func convertError(t *testing.T, file File, limits Limits) *Error {
	t.Helper()
	r, err := Convert(t.Context(), file, limits)
	var known *Error
	if !errors.As(err, &known) {
		t.Fatalf("error %v, result %.100v", err, r)
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "panic") {
		t.Errorf("message %q", err)
	}
	return known
}

func TestConvert_Detection(t *testing.T) {
	columns, book := string(testFile(t, "columns.pdf")), string(testFile(t, "book.epub"))
	for _, test := range []struct{ name, mediaType, content, want string }{
		{"a.md", "", "\xef\xbb\xbf# Title\r\n", "markdown"},
		{"main.go", "", "package main\n", "text"},
		{"page", "text/html; charset=utf-8", "<p>x", "html"},
		{"page", "", "<?xml version='1.0'?>\n<!-- c -->\n<!DOCTYPE html><p>x", "html"},
		{"README.md", "", "<html>is not a page</html>", "markdown"},
		{"https://example.com/a.html?x=1.csv", "", "<p>x", "html"},
		{"wrong.txt", "text/plain", columns, "pdf"},
		{"wrong.zip", "", book, "epub"},
		{"mail", "", "From: a@example.com\nTo: b@example.com\nSubject: s\n\ntext", "eml"},
		{"box", "", "From a Mon\nFrom: a@example.com\nTo: b@example.com\nSubject: s\n\ntext", "mbox"},
		{"letter", "", "From: the harbour\n\nDear pilots", "text"},
		{"data", "application/json", "[1]", "json"},
		{`C:\docs\A.CSV`, "", "a,b", "csv"},
	} {
		r, err := Convert(t.Context(), File{Name: test.name, MediaType: test.mediaType, Data: []byte(test.content)}, Limits{})
		if err != nil || r.Format != test.want {
			t.Errorf("%s: %v, want %s; %v", test.name, r, test.want, err)
		}
	}
}

func TestConvert_Errors(t *testing.T) {
	read := func(name string) string { return string(testFile(t, name)) }
	for _, test := range []struct {
		name, content string
		kind          Kind
		want          string
	}{
		{"user256.pdf", read("user256.pdf"), Encrypted, "user256.pdf: is encrypted: set password to its password"},
		{"scan.pdf", read("scan.pdf"), NoText, "model step"},
		{"photo.txt", read("scan.png"), NoText, "model step"},
		{"photo.jpg", "\xff\xd8\xff\xe0\x00\x10JFIF", NoText, "image"},
		{"song.mp3", "ID3\x03\x00", NoText, "model accepts audio"},
		{"film.mp4", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", NoText, "model accepts video"},
		{"cut.pdf", read("columns.pdf")[:900], Damaged, "cut.pdf: is damaged"},
		{"text.pdf", "no PDF", Damaged, "text.pdf: is not a PDF file"},
		{"cut.docx", read("python.docx")[:9000], Damaged, "is damaged or not a complete Word file"},
		{"cut.xlsx", read("sheets.xlsx")[:2000], Damaged, "is damaged or not a complete Excel file"},
		{"cut.pptx", read("slides.pptx")[:2000], Damaged, "is damaged or not a complete PowerPoint file"},
		{"cut.epub", read("book.epub")[:1000], Damaged, "is damaged or not a complete EPUB file"},
		{"old.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Unsupported, "save it in the new format"},
		{"locked.docx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00", Encrypted, "is encrypted"},
		{"a.rtf", `{\rtf1 x`, Damaged, "is not a complete RTF file"},
		{"b.rtf", "no rich text", Damaged, "is not a RTF file"},
		{"c.rtf", `{\rtf1` + strings.Repeat("{", 2000), TooLarge, "too deeply nested groups"},
		{"a.gz", "\x1f\x8b\x08", Unsupported, "unpack it first"},
		{"empty.html", " \n", NoText, "is empty"},
		{"x.txt", "one\x00null", Unsupported, "binary data"},
		{"https://user:secret@example.com/x.bin?sig=abc", "\x00\x01\x02\x03\x04\x05\x06", Unsupported, "binary data"},
	} {
		err := convertError(t, File{Name: test.name, Data: []byte(test.content)}, Limits{})
		if err.Kind != test.kind || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: kind %d, %v", test.name, err.Kind, err)
		}
	}
}

func TestConvert_Limits(t *testing.T) {
	slides := testFile(t, "slides.pptx")
	for name, test := range map[string]struct {
		file   File
		limits Limits
	}{
		"is larger than 3 bytes":                     {File{Name: "a.txt", Data: []byte("text")}, Limits{Input: 3}},
		"has more than 3 bytes of text":              {File{Name: "a.txt", Data: []byte("text")}, Limits{Output: 3}},
		"has more than 2 pages":                      {File{Name: "a.pptx", Data: slides}, Limits{Pages: 2}},
		"is larger than 100 bytes after decompress":  {File{Name: "a.pptx", Data: slides}, Limits{Unpacked: 100}},
		"is larger than 900 bytes after decompress":  {File{Name: "a.xlsx", Data: testFile(t, "sheets.xlsx")}, Limits{Unpacked: 900}},
		"is larger than 50 bytes after decompressio": {File{Name: "a.pdf", Data: testFile(t, "columns.pdf")}, Limits{Unpacked: 50}},
		"has more than 20 bytes of text":             {File{Name: "a.html", Data: []byte("<p>one<p>two<p>three<p>four<p>five")}, Limits{Output: 20}},
	} {
		if err := convertError(t, test.file, test.limits); err.Kind != TooLarge || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConvert_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	for _, name := range []string{"columns.pdf", "python.docx", "slides.pptx", "sheets.xlsx", "book.epub"} {
		if _, err := Convert(ctx, File{Name: name, Data: testFile(t, name)}, Limits{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResult_Pages: offsets count characters, not bytes.
func TestResult_Pages(t *testing.T) {
	r := convert(t, "box.mbox", "From a\nSubject: Größe\n\neins äöü\n\nFrom b\nSubject: two\n\n>From here\n")
	runes := []rune(r.Text)
	if len(r.Pages) != 2 || string(runes[r.Pages[1].Offset:]) != "# two\n\nFrom here" {
		t.Errorf("pages %v of %q", r.Pages, r.Text)
	}
	if got := r.PageTexts(); got[0] != "# Größe\n\neins äöü" || got[1] != "# two\n\nFrom here" {
		t.Errorf("texts %q", got)
	}
	if got := r.PageOffsets(); len(got) != 2 || got[0] != int64(0) || got[1] != int64(r.Pages[1].Offset) {
		t.Errorf("offsets %v", got)
	}
}

func TestResult_Nulls(t *testing.T) {
	r := convert(t, "box.mbox", "From a\nContent-Type: text/plain; charset=utf-8\n\nä\x00\x00b\n\nFrom b\nSubject: two\n\nc\x00d\n")
	if got := r.PageTexts(); len(got) != 2 || got[0] != "äb" || got[1] != "# two\n\ncd" {
		t.Errorf("got %q", got)
	}
}
