package records_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// workbook writes a workbook with another's library.
func workbook(t testing.TB, fill func(f *excelize.File)) string {
	t.Helper()
	f := excelize.NewFile()
	defer func() { _ = f.Close() }()
	fill(f)
	path := filepath.Join(t.TempDir(), "book.xlsx")
	if err := f.SaveAs(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExcel(t *testing.T) {
	path := workbook(t, func(f *excelize.File) {
		set := func(cell string, v any) {
			if err := f.SetCellValue("Sheet1", cell, v); err != nil {
				t.Fatal(err)
			}
		}
		style := func(cell, format string, builtIn int) {
			s := &excelize.Style{NumFmt: builtIn}
			if format != "" {
				s.CustomNumFmt = &format
			}
			id, err := f.NewStyle(s)
			if err == nil {
				err = f.SetCellStyle("Sheet1", cell, cell, id)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, h := range []string{" no ", "total", "paid", "day", "at", "tod", "note", "styled"} {
			set(fmt.Sprintf("%c2", 'A'+i), h)
		}
		set("A4", "007")
		set("B4", 12.5)
		set("C4", true)
		set("D4", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))
		style("D4", "", 14)
		set("E4", time.Date(2024, 2, 29, 12, 30, 15, 0, time.UTC))
		style("E4", "dd.mm.yyyy\\ hh:mm", 0)
		set("F4", 0.5)
		style("F4", "[$-409]h:mm AM/PM", 0)
		if err := f.SetCellRichText("Sheet1", "G4", []excelize.RichTextRun{{Text: "a & "}, {Text: "<b>", Font: &excelize.Font{Bold: true}}}); err != nil {
			t.Fatal(err)
		}
		set("H4", 7)
		style("H4", "#,##0.00 \"days\"", 0)
		set("B5", 1e15)
		if err := f.SetCellFormula("Sheet1", "D5", "1+1"); err != nil {
			t.Fatal(err)
		}
		set("H5", 0.1)
		set("J7", "beyond")
		set("A8", 8)
		if _, err := f.NewSheet("Second"); err != nil {
			t.Fatal(err)
		}
		if err := f.SetCellValue("Second", "A1", "other"); err != nil {
			t.Fatal(err)
		}
	})
	got := read(t, path)
	want := []string{
		`4: no="007" total="12.5" paid="true" day="2024-02-29" at="2024-02-29T12:30:15" tod="12:00:00" note="a & <b>" styled="7"`,
		`5: no="" total="1000000000000000" paid="" day="" at="" tod="" note="" styled="0.1"`,
		`8: no="8" total="" paid="" day="" at="" tod="" note="" styled=""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// parts writes a workbook of given parts.
func parts(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return testkit.WriteFile(t, "book.xlsx", b.String())
}

const (
	bookXML = `<workbook xmlns="x" xmlns:r="r"><workbookPr date1904="1"/><sheets><sheet name="S" sheetId="9" r:id="rId3"/><sheet name="T" sheetId="1" r:id="rId1"/></sheets></workbook>`
	relsXML = `<Relationships><Relationship Id="rId1" Target="worksheets/no.xml"/><Relationship Id="rId3" Target="/xl/worksheets/mine.xml"/></Relationships>`
)

// TestExcel_Numbers reads numbers as texts: with all of their digits, and an exponent only where a person would write one.
func TestExcel_Numbers(t *testing.T) {
	cells := []string{"1234567.5", "2100000.25", "9999999.99", "1000000000000000", "1234567890123456", "12345678901234567", "1E+20", "1E+21", "1E-05", "0.000123", "1E-07", "0.30000000000000004", "-0.5", "007"}
	want := []string{"1234567.5", "2100000.25", "9999999.99", "1000000000000000", "1234567890123456", "12345678901234567", "100000000000000000000", "1e+21", "0.00001", "0.000123", "1e-07", "0.30000000000000004", "-0.5", "007"}
	rows := "<row><c t=\"inlineStr\"><is><t>n</t></is></c></row>"
	for i, cell := range cells {
		rows += "<row><c><v>" + cell + "</v></c></row>"
		want[i] = fmt.Sprintf("%d: n=%q", i+2, want[i])
	}
	got := read(t, parts(t, map[string]string{
		"xl/workbook.xml": bookXML, "xl/_rels/workbook.xml.rels": relsXML,
		"xl/worksheets/mine.xml": "<worksheet><sheetData>" + rows + "</sheetData></worksheet>",
	}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What other programs than the usual one write: no places of cells, absolute
// targets, days counted from 1904, texts in the cells, readings of names.
func TestExcel_Parts(t *testing.T) {
	got := read(t, parts(t, map[string]string{
		"xl/workbook.xml": bookXML, "xl/_rels/workbook.xml.rels": relsXML,
		"xl/SharedStrings.xml": `<sst><si><t>name</t></si><si><r><t>Yam</t></r><r><t>ada</t></r><rPh><t>やまだ</t></rPh></si></sst>`,
		"xl/styles.xml":        `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="mmm"/></numFmts><cellStyleXfs><xf numFmtId="14"/><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="46"/></cellXfs></styleSheet>`,
		"xl/worksheets/mine.xml": `<worksheet><sheetData><row><c t="s"><v>0</v></c><c t="inlineStr"><is><t>when</t></is></c></row>
			<row r="3"><c t="s"><v>1</v></c><c s="1"><v>1</v></c></row><row><c t="str"><f>A1</f><v>x</v></c><c s="2"><v>1.5</v></c></row>
			<row><c t="e" r="A5"><v>#N/A</v></c></row><row><c t="s" r="A6"><v>7</v></c></row><row/><row><c t="b"><v>0</v></c><c t="d"><v>2024-02-29</v></c></row>
			<row><c r="A9"><f>1+1</f></c></row><row><c r="A10"><f>1+1</f><v/></c></row><row><c t="str" r="A11"><f>""</f><v></v></c><c><v>1</v></c></row></sheetData><more/></worksheet>`,
	}))
	want := []string{`3: name="Yamada" when="1904-01-02"`, `4: name="x" when="36:00:00"`, `book.xlsx:5: cell A5 has the error #N/A`,
		`book.xlsx:6: cell A6 refers to a shared string that does not exist`, `8: name="false" when="2024-02-29"`,
		`book.xlsx:9: cell A9 has a formula without its result: open the workbook in a spreadsheet program and save it`,
		`book.xlsx:10: cell A10 has a formula without its result: open the workbook in a spreadsheet program and save it`, `11: name="" when="1"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The main part, and the parts that it refers to, may have any names.
func TestExcel_NamesOfParts(t *testing.T) {
	const relations = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	path := parts(t, map[string]string{
		"_rels/.rels":  relations + `<Relationship Id="a" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="/xl/Book2.xml"/></Relationships>`,
		"xl/Book2.xml": `<workbook xmlns:r="r"><sheets><sheet name="S" sheetId="1" r:id="s"/></sheets></workbook>`,
		"xl/_rels/Book2.xml.rels": relations + `<Relationship Id="s" Type="x/worksheet" Target="mine/one.xml"/>` +
			`<Relationship Id="t" Type="x/sharedStrings" Target="/xl/texts.xml"/><Relationship Id="u" Type="x/styles" Target="looks.xml"/></Relationships>`,
		"xl/texts.xml": `<sst><si><t>took</t></si></sst>`,
		"xl/looks.xml": `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[h]:mm:ss"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>`,
		"xl/mine/one.xml": `<worksheet><sheetData><row><c t="s"><v>0</v></c></row><row><c s="1"><v>1.25</v></c></row>` +
			`<row><c s="1"><v>4.1666782407</v></c></row><row><c s="1"><v>0.25</v></c></row></sheetData></worksheet>`,
	})
	if diff := cmp.Diff([]string{`2: took="30:00:00"`, `3: took="100:00:01"`, `4: took="06:00:00"`}, read(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestExcel_Errors(t *testing.T) {
	good := workbook(t, func(f *excelize.File) { _ = f.SetCellValue("Sheet1", "A1", "a") })
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ path, want string }{
		"cut off":       {testkit.WriteFile(t, "a.xlsx", string(whole[:len(whole)/2])), "a.xlsx: is damaged or not a complete Excel workbook"},
		"another zip":   {parts(t, map[string]string{"word/document.xml": "<x/>"}), "book.xlsx: is a zip archive, not an Excel workbook"},
		"text":          {testkit.WriteFile(t, "a.xlsx", "a,b\n1,2\n"), "a.xlsx: is not an Excel workbook"},
		"old":           {testkit.WriteFile(t, "a.xlsx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and more"), "a.xlsx: is an Excel workbook in the old format (.xls): save it as .xlsx"},
		"no sheet":      {parts(t, map[string]string{"xl/workbook.xml": bookXML}), "book.xlsx: is damaged or not a complete Excel workbook"},
		"empty":         {workbook(t, func(*excelize.File) {}), "book.xlsx: the sheet is empty"},
		"wrong name":    {testkit.WriteFile(t, "a.csv", string(whole)), "a.csv: is a zip archive or an Excel workbook, not CSV: rename a workbook to .xlsx"},
		"twice a name":  {workbook(t, func(f *excelize.File) { _ = f.SetSheetRow("Sheet1", "A2", &[]any{"a", "a"}) }), `book.xlsx:2: duplicate column "a" in the header`},
		"broken XML":    {parts(t, map[string]string{"xl/workbook.xml": bookXML, "xl/_rels/workbook.xml.rels": relsXML, "xl/worksheets/mine.xml": "<sheetData><row><c><v>1</v></row>"}), "book.xlsx: is damaged or not a complete Excel workbook"},
		"endless texts": {parts(t, map[string]string{"xl/workbook.xml": bookXML, "xl/_rels/workbook.xml.rels": relsXML, "xl/worksheets/mine.xml": "<sheetData><row r='1'><c r='ZZZZ1'><v>1</v></c></row></sheetData>"}), "book.xlsx: is damaged or not a complete Excel workbook"},
	} {
		if got := read(t, c.path); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}

// A sheet of many rows is read row by row.
func TestExcel_Streams(t *testing.T) {
	testkit.SkipWithRace(t)
	const rows, most = 100_000, 30 << 20
	path := workbook(t, func(f *excelize.File) {
		w, err := f.NewStreamWriter("Sheet1")
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			row := []any{i, fmt.Sprintf("a text in the cell of row %d", i), float64(i) / 3}
			if i == 0 {
				row = []any{"n", "text", "third"}
			}
			if err := w.SetRow(fmt.Sprintf("A%d", i+1), row); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	})
	r, err := records.Open(t.Context(), path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 1
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := rec.Get("text"); got != fmt.Sprintf("a text in the cell of row %d", n) {
			t.Fatalf("row %d: %v", n, got)
		}
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&now)
	if held := int64(now.HeapAlloc) - int64(before.HeapAlloc); n != rows || held > most {
		t.Errorf("%d rows, %d bytes held", n, held)
	}
	if read, size := r.Progress(); read == 0 || size == 0 || read > size {
		t.Errorf("progress: %d of %d", read, size)
	}
}
