package steps_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

const outside = "; declare base: with the folder or the address of such files"

// writeTo runs a FileWriter on one row that names a file, in a folder that is the working directory,
// and returns the path or the error.
func writeTo(t *testing.T, w *spec.FileWriter, path string, policy *trust.Policy) string {
	t.Helper()
	l := declare(t, nil, "id: text", "to: text", "done: text")
	w.StepBase, w.Path = l.base("w", []string{"id"}, []string{"done"}), spec.PathRef{Var: l.ref("to")}
	var got string
	r := build(t, w, &steps.Env{Slots: l})
	testkit.Must(t, r.(steps.Batch).Batch(trust.With(t.Context(), policy), []*steps.Row{l.row(map[string]any{"id": "x", "to": path})}, func(row *steps.Row) error {
		if row.Err != nil {
			got = row.Err.Err.Error()
		} else {
			got = row.Values[2].(string)
		}
		return nil
	}))
	return got
}

func TestFileWriter_Base(t *testing.T) {
	work, other := t.TempDir(), t.TempDir()
	t.Chdir(work)
	testkit.Must(t, os.Symlink(other, "link"))
	testkit.Must(t, os.Symlink(filepath.Join(other, "later.csv"), "dangling.csv"))
	testkit.Must(t, os.Symlink(filepath.Join(other, "part.csv"), "a-2.csv"))
	for _, c := range []struct{ base, path, want string }{
		{"", "a.csv", "a.csv"},
		{"", work + "/b.csv", work + "/b.csv"},
		{"", "../c.csv", "variable to: ../c.csv is outside of the working directory " + work + outside},
		{"", other + "/c.csv", "variable to: " + other + "/c.csv is outside of the working directory " + work + outside},
		{"", "file://" + other + "/c.csv", "variable to: " + other + "/c.csv is outside of the working directory " + work + outside},
		{"", "link/c.csv", "variable to: link/c.csv is outside of the working directory " + work + outside},
		{"", "dangling.csv", "variable to: dangling.csv is outside of the working directory " + work + outside},
		{"", "s3://bucket/c.csv", "variable to: s3://bucket/c.csv is outside of the working directory " + work + outside},
		{"sub", "a.csv", "sub/a.csv"},
		{"sub", "../c.csv", "variable to: c.csv is outside of the base folder sub" + outside},
		{other, "a.csv", other + "/a.csv"},
		{other, "/etc/a.csv", "variable to: /etc/a.csv is outside of the base folder " + other + outside},
	} {
		if got := writeTo(t, &spec.FileWriter{Base: c.base}, c.path, nil); got != c.want {
			t.Errorf("base %q, %s: %s", c.base, c.path, got)
		}
	}
	for _, name := range []string{"c.csv", "later.csv", "part.csv"} {
		if _, err := os.Stat(filepath.Join(other, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

func TestFileWriter_NumberedPartIsLink(t *testing.T) {
	work, other := t.TempDir(), t.TempDir()
	t.Chdir(work)
	testkit.Must(t, os.WriteFile(filepath.Join(other, "x.csv"), []byte("kept"), 0o600))
	testkit.Must(t, os.Symlink(filepath.Join(other, "x.csv"), "a-2.csv"))
	l := declare(t, nil, "id: text", "to: text")
	w := &spec.FileWriter{StepBase: l.base("w", []string{"id"}, nil), Path: spec.PathRef{Var: l.ref("to")}}
	w.BatchConfig = &spec.BatchConfig{BatchSize: 1}
	row := func() *steps.Row { return l.row(map[string]any{"id": "x", "to": "a.csv"}) }
	got := drive(t, l, build(t, w, &steps.Env{Slots: l}), row(), row())
	expect(t, "rows", got, `{"id":"x","to":"a.csv"}`, "error: variable to: a-2.csv is outside of the working directory "+work+outside)
	if text := testkit.ReadFile(t, filepath.Join(other, "x.csv")); text != "kept" {
		t.Error(text)
	}
}

func TestFileWriter_OutDir(t *testing.T) {
	out := t.TempDir()
	t.Chdir(t.TempDir())
	policy := &trust.Policy{Grants: trust.Grants{OutDir: out}}
	for _, c := range []struct{ base, path, want string }{
		{"", "a.csv", out + "/a.csv"},
		{"sub", "a.csv", out + "/sub/a.csv"},
		{"", "../c.csv", "variable to: " + filepath.Dir(out) + "/c.csv is outside of the output folder " + out + outside},
		{"", "/tmp/c.csv", "variable to: /tmp/c.csv is outside of the output folder " + out + outside},
	} {
		if got := writeTo(t, &spec.FileWriter{Base: c.base}, c.path, policy); got != c.want {
			t.Errorf("base %q, %s: %s", c.base, c.path, got)
		}
	}
}

// TestFileSource_RootIsNoBase has the working directory of services and containers.
func TestFileSource_RootIsNoBase(t *testing.T) {
	t.Chdir("/")
	l := declare(t, nil, "path: text")
	s := &spec.FileSource{StepBase: l.base("f", nil, nil), Path: spec.PathRef{Var: l.ref("path")}}
	got := drive(t, l, build(t, s, &steps.Env{Slots: l}), l.row(map[string]any{"path": "/etc/passwd"}))
	expect(t, "rows", got, "error: variable path: the working directory is the root of the file system; declare base: with the folder of such files")
}

func TestFileSource_AddressBelowBase(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		_, _ = w.Write([]byte("id\nx\n"))
	}))
	t.Cleanup(server.Close)
	l := declare(t, nil, "path: text", "id: text")
	read := func(base, path string) string {
		s := &spec.FileSource{StepBase: l.base("f", nil, []string{"id"}), Path: spec.PathRef{Var: l.ref("path")}, Base: base}
		got := drive(t, l, build(t, s, &steps.Env{Slots: l}), l.row(map[string]any{"path": path}))
		return strings.ReplaceAll(strings.Join(got, " "), server.URL, "SITE")
	}
	for _, c := range []struct{ base, path, want string }{
		{server.URL + "/data", "a.csv", `{"path":"a.csv","id":"x"}`},
		{server.URL + "/data", server.URL + "/data/b.csv", `{"path":"SITE/data/b.csv","id":"x"}`},
		{server.URL + "/data", server.URL + "/admin/b.csv", "error: variable path: SITE/admin/b.csv is outside of the base folder SITE/data" + outside},
		{server.URL + "/data", "/etc/passwd", "error: variable path: /etc/passwd is outside of the base folder SITE/data" + outside},
		{t.TempDir(), server.URL + "/data/b.csv", ""},
	} {
		if got := read(c.base, c.path); got != c.want && (c.want != "" || !strings.Contains(got, " is outside of ")) {
			t.Errorf("base %s, %s: %s", c.base, c.path, got)
		}
	}
	expect(t, "requests", asked, "/data/a.csv", "/data/b.csv")
}

func TestFileSource_BaseOfUnknownScheme(t *testing.T) {
	l := declare(t, nil, "path: text")
	_, err := steps.Build(&spec.FileSource{StepBase: l.base("f", nil, nil), Path: spec.PathRef{Var: l.ref("path")}, Base: "ftp://x/data"}, &steps.Env{Slots: l})
	if err == nil || !strings.HasPrefix(err.Error(), "base: ftp://x/data: ftp:// is not supported") {
		t.Error(err)
	}
}

// TestFileWriter_CSVSafe has texts that spreadsheets take for formulas, and numbers, which
// they do not.
func TestFileWriter_CSVSafe(t *testing.T) {
	l := declare(t, nil, "name: text", "n: int", "f: float?", "any: any?", "tags: list[text]?")
	row := func(name string) *steps.Row {
		return l.row(map[string]any{"name": name, "n": int64(-5), "f": -1.5, "any": "=1+1", "tags": []any{"=1"}})
	}
	write := func(file string, safe bool) string {
		path := filepath.Join(t.TempDir(), file)
		w := &spec.FileWriter{StepBase: l.base("w", []string{"name", "n", "f", "any", "tags"}, nil), Path: spec.PathRef{URI: path}, CSVSafe: safe}
		driveRows(t, build(t, w, &steps.Env{Slots: l}), row("=cmd|' /C calc'!A0"), row("+1"), row("-1"), row("@SUM(A1)"), row("\tx"), row("\rx"), row("a=b"), row("'x"), row(""))
		return testkit.ReadFile(t, path)
	}
	const rest = `,-5,-1.5,"""=1+1""","[""=1""]"` + "\n"
	want := "name,n,f,any,tags\n'=cmd|' /C calc'!A0" + rest + "'+1" + rest + "'-1" + rest + "'@SUM(A1)" + rest + "'\tx" + rest + "\"'\rx\"" + rest + "a=b" + rest + "'x" + rest + rest
	if got := write("a.csv", true); got != want {
		t.Errorf("%q", got)
	}
	if got := write("a.csv", false); got != strings.NewReplacer("\n'=", "\n=", "'+", "+", "'-", "-", "'@", "@", "'\t", "\t", "'\r", "\r").Replace(want) {
		t.Errorf("%q", got)
	}
	if got := write("a.jsonl", true); !strings.Contains(got, `"name":"+1"`) {
		t.Errorf("%q", got)
	}
	if got := write("a.tsv", true); !strings.Contains(got, "'+1\t-5\t") {
		t.Errorf("%q", got)
	}
}
