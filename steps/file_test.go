package steps_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// source runs a FileSource on a file; the folder is removed from errors.
func source(t testing.TB, l layout, path string, outputs ...string) []string {
	t.Helper()
	r := build(t, &spec.FileSource{StepBase: l.base("f", nil, outputs), Path: spec.PathRef{URI: path}}, &steps.Env{Slots: l})
	got := drive(t, l, r, l.row(map[string]any{"up": "kept"}))
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], filepath.Dir(path)+string(filepath.Separator), "")
	}
	return got
}

func TestFileSource_ConvertsValues(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"sku: text"})
	l := declare(t, []*spec.CustomType{item}, "up: text", "id: text", "n: int?", "ok: boolean", "items: list[Item]?")
	csv := "id,extra,n,ok,items\n007,x,5,yes,\"[{\"\"sku\"\":\"\"a\"\"}]\"\nNA,x,,no,\n\"a\nb\",x,many,1,\n4,x,1,true,\n"
	expect(t, "csv", source(t, l, testkit.WriteFile(t, "a.csv", csv), "id", "n", "ok", "items"),
		`{"up":"kept","id":"007","n":5,"ok":true,"items":[{"sku":"a"}]}`, `{"up":"kept","id":"NA","n":null,"ok":false,"items":null}`,
		`error: a.csv:4: n: expected int, got "many"`, `{"up":"kept","id":"4","n":1,"ok":true,"items":null}`)
	expect(t, "jsonl", source(t, l, testkit.WriteFile(t, "a.jsonl", "{\"id\":\"x\",\"ok\":true,\"items\":[{\"sku\":\"a\"}]}\n\n{\"id\":5,\"ok\":true}\n{\"id\":\"y\"}\n"), "id", "n", "ok", "items"),
		`{"up":"kept","id":"x","n":null,"ok":true,"items":[{"sku":"a"}]}`, "error: a.jsonl:3: id: expected text, got 5", `error: a.jsonl:4: no "ok"; the record has id`)
	expect(t, "header only", source(t, l, testkit.WriteFile(t, "a.csv", "id,ok\n"), "id", "ok"))
	expect(t, "no outputs", source(t, l, testkit.WriteFile(t, "a.csv", "id\n1\n2\n")), `{"up":"kept"}`, `{"up":"kept"}`)
	expect(t, "a column is missing", source(t, l, testkit.WriteFile(t, "a.csv", "id,n\n1,2\n3,4\n"), "id", "ok"), `error: a.csv: no column "ok"; columns are id, n`)
	expect(t, "no file", source(t, l, "/nowhere/at/all.csv", "id"), "error: all.csv: no such file")
}

func TestFileSource_PathFromVariable(t *testing.T) {
	l := declare(t, nil, "path: text", "id: text")
	path := testkit.WriteFile(t, "a.csv", "id\nx\n")
	r := build(t, &spec.FileSource{StepBase: l.base("f", nil, []string{"id"}), Path: spec.PathRef{Var: l.ref("path")}, Base: filepath.Dir(path)}, &steps.Env{Slots: l})
	rows := driveRows(t, r, l.row(map[string]any{"path": path}), l.row(map[string]any{"path": "file://" + path}),
		l.row(nil), l.row(map[string]any{"path": ""}), l.row(map[string]any{"path": int64(1)}), l.row(map[string]any{"path": "a.csv"}))
	var got []string
	for _, row := range rows {
		if row.Err != nil {
			got = append(got, row.Err.Err.Error())
		} else {
			got = append(got, row.Values[1].(string))
		}
	}
	expect(t, "paths", got, "x", "x", "variable path is not set", "variable path: the path is empty", "variable path: expected a path, got 1", "x")
}

// TestFileSource_PathOfOtherType checks that a run refuses a path that no value of the variable can be.
func TestFileSource_PathOfOtherType(t *testing.T) {
	for _, typ := range []string{"text", "text?", "any", "citation_url", "int", "file", "list[text]", "date"} {
		l := declare(t, nil, "path: "+typ, "id: text")
		_, err := steps.Build(&spec.FileSource{StepBase: l.base("f", nil, []string{"id"}), Path: spec.PathRef{Var: l.ref("path")}}, &steps.Env{Slots: l})
		if valid := slices.Contains([]string{"text", "text?", "any", "citation_url"}, typ); valid != (err == nil) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

func TestFileSource_Canceled(t *testing.T) {
	l := declare(t, nil, "id: text")
	path := testkit.WriteFile(t, "a.csv", "id\n"+strings.Repeat("x\n", 1000))
	r := build(t, &spec.FileSource{StepBase: l.base("f", nil, []string{"id"}), Path: spec.PathRef{URI: path}}, &steps.Env{Slots: l})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := r.(steps.Step).Process(ctx, l.row(nil), func(*steps.Row) error { n++; cancel(); return nil })
	if err == nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestFileWriter_Formats(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"b: text", "a: int"})
	l := declare(t, []*spec.CustomType{item}, "id: text", "n: int", "items: list[Item]", "unused: text", "path: text")
	rec := value.NewRecord("Item", value.Field{Name: "b", Value: "x"}, value.Field{Name: "a", Value: int64(1)})
	rows := func() []*steps.Row {
		return []*steps.Row{l.row(map[string]any{"id": "1", "n": int64(5), "items": []any{rec}}), l.row(map[string]any{"id": "2", "n": nil}), l.row(map[string]any{"id": "3", "n": "many"})}
	}
	step := func(path string, inputs ...string) *spec.FileWriter {
		return &spec.FileWriter{StepBase: l.base("w", inputs, []string{"path"}), Path: spec.PathRef{URI: path}}
	}
	dir := t.TempDir()
	env := &steps.Env{Slots: l}
	out := filepath.Join(dir, "new", "folder", "out.jsonl")
	got := driveRows(t, build(t, step(out), env), rows()...)
	if len(got) != 2 || show(l, got[0]) != `error: column n: expected int, got "many"` || got[1].Values[4] != any(out) {
		t.Errorf("%v", got)
	}
	if s := testkit.ReadFile(t, out); s != "{\"id\":\"1\",\"n\":5,\"items\":[{\"b\":\"x\",\"a\":1}]}\n{\"id\":\"2\",\"n\":null,\"items\":null}\n" {
		t.Error(s)
	}
	csv := filepath.Join(dir, "out.csv")
	driveRows(t, build(t, step(csv, "items", "id"), env), rows()[:2]...)
	if s := testkit.ReadFile(t, csv); s != "items,id\n\"[{\"\"b\"\":\"\"x\"\",\"\"a\"\":1}]\",1\n,2\n" {
		t.Errorf("%q", s)
	}
	got = driveRows(t, build(t, step(filepath.Join(dir, "out.parquet"), "id", "n"), env), rows()[:2]...)
	if text := show(l, got[0]); !strings.HasSuffix(text, "this program has no record format parquet; the distribution has it: "+parts.Get) {
		t.Error(text)
	}
}

func TestFileWriter_NumberedParts(t *testing.T) {
	l := declare(t, nil, "id: text", "path: text")
	out := filepath.Join(t.TempDir(), "out.csv")
	s := &spec.FileWriter{StepBase: l.base("w", []string{"id"}, []string{"path"}), Path: spec.PathRef{URI: out}}
	s.BatchConfig = &spec.BatchConfig{BatchSize: 2}
	var rows []*steps.Row
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		rows = append(rows, l.row(map[string]any{"id": id}))
	}
	var got []string
	for _, row := range driveRows(t, build(t, s, &steps.Env{Slots: l}), rows...) {
		path := row.Values[1].(string)
		got = append(got, filepath.Base(path)+": "+strings.ReplaceAll(testkit.ReadFile(t, path), "\n", " "))
	}
	expect(t, "parts", got, "out.csv: id a b ", "out-2.csv: id c d ", "out-3.csv: id e ")
}

func TestFileWriter_GroupsByPath(t *testing.T) {
	l := declare(t, nil, "id: text", "to: text", "done: text")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := &spec.FileWriter{StepBase: l.base("w", []string{"id"}, []string{"done"}), Path: spec.PathRef{Var: l.ref("to")}, Base: dir}
	blocked := at("file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rows := driveRows(t, build(t, s, &steps.Env{Slots: l}),
		l.row(map[string]any{"id": "1", "to": at("b.csv")}), l.row(map[string]any{"id": "2", "to": at("a.csv")}),
		l.row(map[string]any{"id": "3", "to": at("b.csv")}), l.row(map[string]any{"id": "4"}),
		l.row(map[string]any{"id": "5", "to": at("c.xyz")}), l.row(map[string]any{"id": "6", "to": filepath.Join(blocked, "d.csv")}))
	var got []string
	for _, row := range rows {
		s := show(l, row)
		got = append(got, strings.ReplaceAll(s, dir+string(filepath.Separator), ""))
	}
	expect(t, "groups", got[:4], "error: variable to is not set", `{"id":"2","to":"a.csv","done":"a.csv"}`, `{"to":"b.csv","done":"b.csv"}`,
		"error: c.xyz: unknown file format: use .csv, .tsv, .json, .jsonl or .parquet, optionally followed by .gz or .zst")
	if len(got) != 5 || !strings.HasPrefix(got[4], "error: file/d.csv: ") {
		t.Error(got)
	}
	if s := testkit.ReadFile(t, at("b.csv")); s != "id\n1\n3\n" {
		t.Errorf("%q", s)
	}
	names, _ := os.ReadDir(dir)
	if len(names) != 3 {
		t.Errorf("half-written files are left: %v", names)
	}
}

// TestFileWriter_NamesOfOneFile: no row is lost if paths differ only in their form, or if one is that of a
// numbered file of another.
func TestFileWriter_NamesOfOneFile(t *testing.T) {
	l := declare(t, nil, "id: text", "to: text", "done: text")
	dir := t.TempDir()
	s := &spec.FileWriter{StepBase: l.base("w", []string{"id"}, []string{"done"}), Path: spec.PathRef{Var: l.ref("to")}, Base: dir}
	s.BatchConfig = &spec.BatchConfig{BatchSize: 3}
	var rows []*steps.Row
	for i, to := range []string{"a.csv", "./a.csv", filepath.Join(dir, "x", "..", "a.csv"), "a-2.csv", "a.csv", "b.csv", "b.csv", "b-2.csv", "a.csv"} {
		rows = append(rows, l.row(map[string]any{"id": strconv.Itoa(i), "to": to}))
	}
	var got []string
	for _, row := range driveRows(t, build(t, s, &steps.Env{Slots: l}), rows...) {
		path := row.Values[2].(string)
		got = append(got, filepath.Base(path)+": "+strings.ReplaceAll(testkit.ReadFile(t, path), "\n", " "))
	}
	expect(t, "files", got, "a.csv: id 0 1 2 ", "a-2.csv: id 3 ", "a-3.csv: id 4 ", "b.csv: id 5 ",
		"a-4.csv: id 8 ", "b-2.csv: id 7 ", "b-3.csv: id 6 ")
}

// TestFileWriter_FilesOfRun: a step does not replace the input of the run or its results.
func TestFileWriter_FilesOfRun(t *testing.T) {
	l := declare(t, nil, "id: text", "to: text")
	dir := t.TempDir()
	input, output := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv")
	testkit.Must(t, os.WriteFile(input, []byte("id\n1\n"), 0o600))
	s := &spec.FileWriter{StepBase: l.base("w", []string{"id"}, nil), Path: spec.PathRef{Var: l.ref("to")}, Base: dir}
	var got []string
	emit := func(r *steps.Row) error { got = append(got, show(l, r)); return nil }
	rows := []*steps.Row{l.row(map[string]any{"id": "1", "to": "in.csv"}), l.row(map[string]any{"id": "2", "to": "out.csv"})}
	batch := build(t, s, &steps.Env{Slots: l}).(steps.Batch)
	testkit.Must(t, batch.Batch(remotefs.WithOwn(t.Context(), input, output, ""), rows, emit))
	for _, row := range got {
		if !strings.Contains(row, "is a file of the run itself") {
			t.Error(row)
		}
	}
	if s := testkit.ReadFile(t, input); len(got) != 2 || s != "id\n1\n" {
		t.Errorf("%q, the input is %q", got, s)
	}
}

func TestFileWriter_UnknownFormat(t *testing.T) {
	l := declare(t, nil, "id: text")
	_, err := steps.Build(&spec.FileWriter{StepBase: l.base("w", []string{"id"}, nil), Path: spec.PathRef{URI: "out"}}, &steps.Env{Slots: l})
	if err == nil || !strings.HasPrefix(err.Error(), "out: unknown file format: use .csv, .tsv, ") {
		t.Error(err)
	}
}

// numbered is a layout that cannot list its variables.
type numbered struct{ l layout }

func (n numbered) Slot(v *spec.Variable) int { return n.l.Slot(v) }
func (n numbered) Len() int                  { return n.l.Len() }

func TestFileWriter_NoColumns(t *testing.T) {
	l := declare(t, nil, "id: text")
	_, err := steps.Build(&spec.FileWriter{StepBase: l.base("w", nil, nil), Path: spec.PathRef{URI: "out.csv"}}, &steps.Env{Slots: numbered{l}})
	if err == nil || err.Error() != "needs inputs: the variables to write" {
		t.Error(err)
	}
}

// JSON is read as it is, for any structure and names of columns.
func TestFileSource_JSON(t *testing.T) {
	l := declare(t, nil, "up: text", "id: text", "created_at: text", "n: int?")
	want := `{"up":"kept","id":"007","created_at":"2024-02-29T10:00:00Z","n":1}`
	const object = `{"id": "007", "created_at": "2024-02-29T10:00:00Z", "n": 1, "more": {"x": 1}}`
	for name, text := range map[string]string{
		"a.json": object, "b.json": "[" + object + "]", "c.jsonl": object + "\n", "d": object, "e.ndjson": object,
		"f.json": `{"id": ["007"], "created_at": ["2024-02-29T10:00:00Z"], "n": [1]}`,
	} {
		expect(t, name, source(t, l, testkit.WriteFile(t, name, text), "id", "created_at", "n"), want)
	}
	expect(t, "left out", source(t, l, testkit.WriteFile(t, "a.json", `[{"id": "x", "created_at": ""}, {"created_at": "", "n": 1}]`), "id", "created_at", "n"),
		`{"up":"kept","id":"x","created_at":"","n":null}`, `error: a.json: row 2: no "id"; the record has created_at, n`)
}

func TestFileWriter_FailsRows(t *testing.T) {
	l := declare(t, nil, "id: text", "to: text", "done: text")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	testkit.Must(t, os.WriteFile(file, []byte("x"), 0o600))
	w := &spec.FileWriter{StepBase: l.base("w", []string{"id"}, []string{"done"}), Path: spec.PathRef{Var: l.ref("to")}, Base: dir}
	good := filepath.Join(dir, "good.csv")
	got := drive(t, l, build(t, w, &steps.Env{Slots: l}),
		l.row(map[string]any{"id": "1", "to": filepath.Join(file, "below.csv")}), l.row(map[string]any{"id": "2", "to": good}),
		l.row(map[string]any{"id": "3", "to": "https://example.com/x.csv"}))
	for i := range got {
		got[i] = strings.NewReplacer(dir+"/", "", dir, "DIR").Replace(got[i])
	}
	expect(t, "rows", got, `error: file/below.csv: cannot be written: not a directory`, `{"id":"2","to":"good.csv","done":"good.csv"}`,
		"error: variable to: https://example.com/x.csv is outside of the base folder DIR; declare base: with the folder or the address of such files")
	if s := testkit.ReadFile(t, good); s != "id\n2\n" {
		t.Error(s)
	}
}
