package records_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// texts are the variables that read the columns a and b as texts.
func texts() []*spec.Variable {
	return []*spec.Variable{{ID: "a", Type: spec.Type{Name: "text"}}, {ID: "b", Type: spec.Type{Name: "text"}}}
}

// TestTable reads files as an export of another program has them: what is detected, what an option of the
// table decides, and the refusal that names the option.
func TestTable(t *testing.T) {
	encoded := func(enc interface{ String(string) (string, error) }, text string) string {
		out, err := enc.String(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	cp1252 := encoded(charmap.Windows1252.NewEncoder(), "a,b\n1,“smart” – €5\n")
	sjis := encoded(japanese.ShiftJIS.NewEncoder(), "a,b\n1,日本語テキスト\n")
	utf16 := encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(), "a,b\r\n1,é漢\r\n")
	for name, c := range map[string]struct {
		file, text string
		table      spec.Table
		want       []string
	}{
		"comment":             {"t.csv", "# made by tool\na,b\n1,2\n#3,4\n5,6\n", spec.Table{Comment: "#"}, []string{`3: a="1" b="2"`, `5: a="5" b="6"`}},
		"windows-1252":        {"t.csv", cp1252, spec.Table{Encoding: "windows-1252"}, []string{`2: a="1" b="“smart” – €5"`}},
		"Shift JIS":           {"t.csv", sjis, spec.Table{Encoding: "shift_jis"}, []string{`2: a="1" b="日本語テキスト"`}},
		"a wrong charset":     {"t.csv", cp1252, spec.Table{Encoding: "shift_jis"}, []string{`t.csv:2: column "b" has bytes that are not text in shift_jis`}},
		"no charset":          {"t.csv", cp1252, spec.Table{}, []string{`t.csv:2: column "b" is not UTF-8 text; the table option encoding names its charset, such as encoding=windows-1252`}},
		"UTF-16 with a mark":  {"t.csv", utf16, spec.Table{}, []string{`2: a="1" b="é漢"`}},
		"UTF-16 without one":  {"t.csv", utf16[2:], spec.Table{Encoding: "utf-16le"}, []string{`2: a="1" b="é漢"`}},
		"UTF-16 JSON lines":   {"t.jsonl", encoded(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder(), `{"a":"é"}`), spec.Table{}, []string{`1: a="é"`}},
		"pipes":               {"t.csv", "a|b\n1|2\n", spec.Table{}, []string{`2: a="1" b="2"`}},
		"spaces":              {"t.csv", "a b\n1 2\n", spec.Table{Delimiter: "space"}, []string{`2: a="1" b="2"`}},
		"a delimiter decides": {"t.csv", "a;x,b\n1;2\n", spec.Table{Delimiter: "semicolon"}, []string{`2: a="1" x,b="2"`}},
		"sep=":                {"t.csv", "sep=;\r\na;b\r\n1;2\r\n", spec.Table{}, []string{`3: a="1" b="2"`}},
		"sep= with a pipe":    {"t.csv", "\xef\xbb\xbfSEP=|\na,x|b\n1|2\n", spec.Table{}, []string{`3: a,x="1" b="2"`}},
		"quotes are text":     {"t.tsv", "a\tb\n1\t\"unclosed\n2\tz\n", spec.Table{Quote: "none"}, []string{`2: a="1" b="\"unclosed"`, `3: a="2" b="z"`}},
		"single quotes":       {"t.csv", "a,b\n'x,y','it''s'\n", spec.Table{Quote: "single"}, []string{`2: a="x,y" b="it's"`}},
		"nulls":               {"t.csv", "a,b\n,\"\"\n\"\",\nNULL,NA\n\"NA\",na\n", spec.Table{Nulls: []string{"", "NULL", "NA"}}, []string{`2: a=<nil> b=""`, `3: a="" b=<nil>`, `4: a=<nil> b=<nil>`, `5: a="NA" b="na"`}},
		"no nulls":            {"t.csv", "a,b\n,\"\"\nNULL,NA\n", spec.Table{}, []string{`2: a="" b=""`, `3: a="NULL" b="NA"`}},
		"a header below":      {"t.csv", "Report \"May\ngenerated, today\na,b\n1,2\n", spec.Table{Header: 3}, []string{`4: a="1" b="2"`}},
		"a header too far":    {"t.csv", "a,b\n1,2\n", spec.Table{Header: 9}, []string{"t.csv: has fewer than 9 lines"}},
		"no header":           {"t.csv", "1,2\n3,4\n", spec.Table{Columns: []string{"a", "b"}}, []string{`1: a="1" b="2"`, `2: a="3" b="4"`}},
		"other names":         {"t.csv", "x,y\n3,4\n", spec.Table{Columns: []string{"a", "b"}, Header: 1}, []string{`2: a="3" b="4"`}},
		"decimals of text":    {"t.csv", "a;b\n1.234,5;x\n", spec.Table{Decimal: "comma"}, []string{`2: a="1.234,5" b="x"`}},
		"pandas, split":       {"t.json", `{"columns":["a","b"],"index":[0,1],"data":[[1,"x"],[2,"y"]]}`, spec.Table{}, []string{`0: a=1 b="x"`, `0: a=2 b="y"`}},
		"not split":           {"t.json", `{"columns":["a"],"index":[0],"data":[[1,2]]}`, spec.Table{}, []string{`0: columns="a" index=0 data=[1,2]`}},
		"wrapped":             {"t.json", `{"data":[{"a":1},{"a":2},3],"count":1}`, spec.Table{Rows: "data"}, []string{`0: a=1`, `0: a=2`, `t.json: row 3: the row is 3, not an object`}},
		"wrapped, no option":  {"t.json", `{"data":[{"a":1}],"count":1}`, spec.Table{}, []string{"t.json: is one object; the table option rows=data reads the objects in its member data"}},
		"wrapped elsewhere":   {"t.json", `{"data":[{"a":1}],"count":1}`, spec.Table{Rows: "count"}, []string{`t.json: has no list in a member "count"; the members are data, count`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := readAs(t, testkit.WriteFile(t, c.file, c.text), records.Options{Table: &c.table, Variables: texts()})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTable_Decimals reads numbers with a decimal comma for variables of numbers only.
func TestTable_Decimals(t *testing.T) {
	path := testkit.WriteFile(t, "t.csv", "f;i;t\n1.234,5;1.234;1,5\n-0,25;7;1.234\n1 234 567,8;+3;x\n1,2,3;1.23;\n")
	got := readAs(t, path, records.Options{Table: &spec.Table{Decimal: "comma"}, Variables: []*spec.Variable{
		{ID: "f", Type: spec.Type{Name: "float"}}, {ID: "i", Type: spec.Type{Name: "int"}}, {ID: "t", Type: spec.Type{Name: "text"}},
	}})
	want := []string{`2: f="1234.5" i="1234" t="1,5"`, `3: f="-0.25" i="7" t="1.234"`, `4: f="1234567.8" i="+3" t="x"`, `5: f="1,2,3" i="1.23" t=""`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTable_Unread reads files with cells in error, of which only those fail their row that a variable reads.
func TestTable_Unread(t *testing.T) {
	book := parts(t, map[string]string{
		"xl/workbook.xml": bookXML, "xl/_rels/workbook.xml.rels": relsXML,
		"xl/worksheets/mine.xml": `<worksheet><sheetData><row><c t="str"><v>a</v></c><c t="str"><v>b</v></c></row>
			<row><c t="str"><v>x</v></c><c t="e" r="B2"><v>#DIV/0!</v></c></row>
			<row><c t="str"><v>y</v></c><c><v>1</v></c><c r="D3" t="str"><v>a note</v></c></row>
			<row><c r="D4" t="str"><v>another</v></c></row></sheetData></worksheet>`,
	})
	for name, c := range map[string]struct {
		path string
		vars []*spec.Variable
		want []string
	}{
		"read":         {book, texts(), []string{"book.xlsx:2: cell B2 has the error #DIV/0!", `3: a="y" b="1"`}},
		"not read":     {book, texts()[:1], []string{`2: a="x" b=""`, `3: a="y" b="1"`}},
		"no charset":   {testkit.WriteFile(t, "t.csv", "a,b\nx,\xff\n"), texts()[:1], []string{"2: a=\"x\" b=\"\\xff\""}},
		"no variables": {testkit.WriteFile(t, "u.csv", "a,b\nx,\xff\n"), []*spec.Variable{}, []string{"2: a=\"x\" b=\"\\xff\""}},
	} {
		if diff := cmp.Diff(c.want, readAs(t, c.path, records.Options{Variables: c.vars})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTable_Sheets reads the first sheet that is not hidden, or the one that the table names.
func TestTable_Sheets(t *testing.T) {
	path := workbook(t, func(f *excelize.File) {
		for _, sheet := range []string{"Sheet1", "Orders", "Old"} {
			if _, err := f.NewSheet(sheet); err != nil {
				t.Fatal(err)
			}
			for i, v := range []string{"made by tool", "a", strings.ToLower(sheet)} {
				if err := f.SetCellValue(sheet, "A"+string(rune('1'+i)), v); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.SetActiveSheet(1)
		if err := f.SetSheetVisible("Sheet1", false); err != nil {
			t.Fatal(err)
		}
	})
	for name, c := range map[string]struct {
		table spec.Table
		want  []string
	}{
		"visible":     {spec.Table{Header: 2}, []string{`3: a="orders"`}},
		"named":       {spec.Table{Header: 2, Sheet: "Sheet1"}, []string{`3: a="sheet1"`}},
		"own columns": {spec.Table{Columns: []string{"a"}, Sheet: "Old"}, []string{`1: a="made by tool"`, `2: a="a"`, `3: a="old"`}},
		"unknown":     {spec.Table{Sheet: "New"}, []string{`book.xlsx: has no sheet "New"; the sheets are Sheet1, Orders, Old`}},
	} {
		if diff := cmp.Diff(c.want, readAs(t, path, records.Options{Table: &c.table, Variables: texts()})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestReader_Hint names the option that helps if a column is missing.
func TestReader_Hint(t *testing.T) {
	for text, want := range map[string]string{
		"# made by tool\na,b\n1,2\n": "; the table option comment=# skips such lines",
		"x,y\n1,2\n":                 "",
		"a~b\n1~2\n":                 "; the table option delimiter names what separates the columns",
		"Report,\na,b\n1,2\n":        "; the table option header names the line of the columns, such as header=3",
	} {
		r, err := records.Open(t.Context(), testkit.WriteFile(t, "t.csv", text), records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Hint(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		_ = r.Close() // only read
	}
}

// TestTable_Encodings checks that each charset of the table is known, under its own name.
func TestTable_Encodings(t *testing.T) {
	field, _ := reflect.TypeFor[spec.Table]().FieldByName("Encoding")
	_, names, _ := strings.Cut(field.Tag.Get("validate"), "oneof=")
	for _, name := range strings.Fields(names) {
		enc, err := htmlindex.Get(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := htmlindex.Name(enc); got != name || err != nil {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
}
