package steps_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// The cells of a workbook are converted to the declared types, like those of a CSV file.
func TestFileSource_Workbook(t *testing.T) {
	l := declare(t, nil, "up: text", "no: text", "qty: int?", "total: float", "paid: boolean", "day: date", "tags: list[text]?")
	path := filepath.Join(t.TempDir(), "orders.xlsx")
	f := excelize.NewFile()
	for i, row := range [][]any{{"no", "qty", "total", "paid", "day", "tags"}, {"007", 3, 12.5, true, "2024-02-29", `["a","b"]`},
		{8, nil, 7, "no", 45351, nil}, {"009", "many", 1, true, "2024-03-02", nil}} {
		if err := f.SetSheetRow("Sheet1", "A"+string(rune('1'+i)), &row); err != nil {
			t.Fatal(err)
		}
	}
	style, err := f.NewStyle(&excelize.Style{NumFmt: 14})
	if err == nil {
		err = f.SetCellStyle("Sheet1", "E3", "E3", style)
	}
	if err == nil {
		err = f.SaveAs(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "workbook", source(t, l, path, "no", "qty", "total", "paid", "day", "tags"),
		`{"up":"kept","no":"007","qty":3,"total":12.5,"paid":true,"day":"2024-02-29","tags":["a","b"]}`,
		`{"up":"kept","no":"8","qty":null,"total":7,"paid":false,"day":"2024-02-29","tags":null}`,
		`error: orders.xlsx:4: qty: expected int, got "many"`)
	expect(t, "a missing column", source(t, l, path, "up"), `error: orders.xlsx: no column "up"; columns are no, qty, total, paid, day, tags`)
}

func TestFileSource_RemoteFile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.csv" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("no\n007\n"))
	}))
	defer server.Close()
	l := declare(t, nil, "path: text", "no: text")
	r := build(t, &spec.FileSource{StepBase: l.base("f", nil, []string{"no"}), Path: spec.PathRef{Var: l.ref("path")}, Base: server.URL}, &steps.Env{Slots: l})
	var got []string
	for _, address := range []string{server.URL + "/a.csv?sig=s3cret", server.URL + "/b.csv?sig=s3cret"} {
		for _, row := range driveRows(t, r, l.row(map[string]any{"path": address})) {
			if row.Err != nil {
				got = append(got, row.Err.Err.Error())
				continue
			}
			got = append(got, row.Values[1].(string))
		}
	}
	expect(t, "addresses", got, "007", server.URL+"/b.csv: no such file")
	if strings.Contains(strings.Join(got, ""), "s3cret") {
		t.Error("the error contains the signature")
	}
}

// Later batches go to numbered parts, with the number before the extension.
func TestFileWriter_CompressedParts(t *testing.T) {
	l := declare(t, nil, "no: text", "path: text")
	dir := t.TempDir()
	w := &spec.FileWriter{StepBase: l.base("w", []string{"no"}, []string{"path"}), Path: spec.PathRef{URI: filepath.Join(dir, "new", "out.jsonl.zst")},
		Batched: spec.Batched{BatchConfig: &spec.BatchConfig{BatchSize: 2}}}
	var rows []*steps.Row
	for _, no := range []string{"007", "8", "9"} {
		rows = append(rows, l.row(map[string]any{"no": no}))
	}
	written := driveRows(t, build(t, w, &steps.Env{Slots: l}), rows...)
	if len(written) != 2 || written[1].Values[1] != filepath.Join(dir, "new", "out-2.jsonl.zst") {
		t.Fatalf("%v", written)
	}
	expect(t, "parts", append(source(t, declare(t, nil, "up: text", "no: text"), written[0].Values[1].(string), "no"),
		source(t, declare(t, nil, "up: text", "no: text"), written[1].Values[1].(string), "no")...),
		`{"up":"kept","no":"007"}`, `{"up":"kept","no":"8"}`, `{"up":"kept","no":"9"}`)
}
