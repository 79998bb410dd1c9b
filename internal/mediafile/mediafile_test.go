package mediafile_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const png, png64 = "\x89PNG\r\n\x1a\n\x00", "iVBORw0KGgoA"

// folder writes files and returns the path of rows in it.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cat.png": png, "sub/my cat.PNG": png, "notes.txt": "Dear shop", "empty.png": "", "page.html": "<html>", "sound.wav": "RIFF\x00\x00\x00\x00WAVEfmt "} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "empty.png"), 21<<20); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "rows.csv")
}

func typ(t *testing.T, text string) spec.Type {
	t.Helper()
	parsed, err := spec.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Name == "Item" {
		parsed.Custom = &spec.CustomType{ID: "Item", Properties: []spec.Property{{Name: "pic", Type: spec.Type{Name: "image"}}, {Name: "title", Type: spec.Type{Name: "text"}}}}
	}
	return parsed
}

// Every form of media in the values of JSON, of cells and of Go programs.
func TestSource_Load(t *testing.T) {
	base := folder(t)
	dir := filepath.Dir(base)
	record := func(name, text string) *value.Record {
		return value.NewRecord("", value.Field{Name: name, Value: text})
	}
	for _, c := range []struct {
		typ  string
		raw  any
		want any // bytes as a string; an error begins with "error: "
	}{
		{"image", "cat.png", png}, {"image", "sub/my cat.PNG", png}, {"image", filepath.Join(dir, "cat.png"), png}, {"image", "file://" + dir + "/cat.png", png},
		{"image", value.ParseCell("cat.png"), png}, {"image", value.ParseCell(`{"path": "cat.png"}`), png}, {"image", []byte(png), png},
		{"image", "data:image/png;base64," + png64, png}, {"image", png64, png}, {"image", record("base64", png64), png}, {"image", record("path", "cat.png"), png},
		{"image", map[string]any{"base64": png64}, png}, {"image", "<svg xmlns=''></svg>", "<svg xmlns=''></svg>"},
		{"audio", "sound.wav", "RIFF\x00\x00\x00\x00WAVEfmt "}, {"image?", "", nil}, {"image?", nil, nil},
		{"list[image]", []any{"cat.png", record("base64", png64)}, []any{png, png}}, {"list[image]", value.ParseCell(`["cat.png"]`), []any{png}},
		{"Item", map[string]any{"pic": "cat.png", "title": "x"}, `{"pic":{"base64":"` + png64 + `"},"title":"x"}`},
		{"file", "notes.txt", "Dear shop"}, {"file", "Dear shop.", "Dear shop."}, {"file", "one line\nnotes.txt", "one line\nnotes.txt"}, {"file", record("path", "sub/my cat.PNG"), png},
		{"file", "data: see above", "data: see above"}, {"file", value.ParseCell(`{"a": 1}`), `{"a": 1}`},
		{"bytes", "notes.txt", "notes.txt"}, {"bytes", record("path", "notes.txt"), "Dear shop"}, {"text", "cat.png", "cat.png"},
		{"image", int64(5), int64(5)}, // reported by package value

		{"image", "notes.txt", `error: DIR/notes.txt: expected an image, found the text "Dear shop"`},
		{"image", "page.html", "error: DIR/page.html: expected an image, found an HTML page"},
		{"image", "sound.wav", "error: DIR/sound.wav: expected an image, found a sound (audio/wav)"},
		{"image", "empty.png", "error: DIR/empty.png: it is larger than 20 MiB, the limit of type image"},
		{"image", "no.png", "error: DIR/no.png: does not exist"}, {"image", "sub", "error: DIR/sub: is not a regular file"},
		{"image", "", "error: expected an image, but it is empty"}, {"image", "two\nlines", `error: expected an image, found the text "two\nlines"`},
		{"image", []byte("text"), `error: expected an image, found the text "text"`}, {"image", "data:image/png;base64,%", "error: the data URL is not valid base64"},
		{"image", record("base64", "%"), "error: it is not valid base64"}, {"image", record("b64", "x"), `error: expected a path, an address, a data URL or {"base64": "…"}, got an object`},
		{"list[image]", []any{"cat.png", "notes.txt"}, `error: [1]: DIR/notes.txt: expected an image, found the text "Dear shop"`},
		{"Item", map[string]any{"pic": "notes.txt"}, `error: pic: DIR/notes.txt: expected an image, found the text "Dear shop"`},
		{"file", "missing.txt", "error: DIR/missing.txt: does not exist"},
		{"image", "http://127.0.0.1/a.png", "error: http://127.0.0.1/a.png: "}, {"image", "http://169.254.169.254/latest", "error: http://169.254.169.254/latest: "},
	} {
		got := show((&mediafile.Source{Base: base}).Load(t.Context(), typ(t, c.typ), c.raw))
		want := strings.ReplaceAll(fmt.Sprint(c.want), "DIR", dir)
		if exact := !strings.HasSuffix(want, ": "); got != want && (exact || !strings.HasPrefix(got, want)) {
			t.Errorf("%s %v: got %q, want %q", c.typ, c.raw, got, want)
		}
	}
}

// show returns a value with bytes as text, or the error.
func show(v any, err error) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = show(v[i], nil)
		}
		return fmt.Sprint(all)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(v)
}

// Rows name files below the folder of their file only; what a user types names any file.
func TestSource_StaysInFolder(t *testing.T) {
	base := folder(t)
	outside := testkit.WriteFile(t, "secret.txt", "secret")
	testkit.Must(t, os.Symlink(outside, filepath.Join(filepath.Dir(base), "link.txt")))
	back, err := filepath.Rel(filepath.Dir(base), outside)
	testkit.Must(t, err)
	for name, want := range map[string]string{
		outside:             "rows name files in the folder of their file, " + filepath.Dir(base) + ", and below it",
		back:                "rows name files in the folder of their file, ",
		"file://" + outside: "rows name files in the folder of their file, ",
		"link.txt":          "link.txt: path escapes from parent",
	} {
		kind := spec.Type{Name: "file"}
		if got := show((&mediafile.Source{Base: base}).Load(t.Context(), kind, name)); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if got := show((&mediafile.Source{Base: base, AnyFile: true}).Load(t.Context(), kind, name)); got != "secret" {
			t.Errorf("%s, any file: got %q", name, got)
		}
	}
}

// Rows of callers that are not trusted, and of remote files, name no files of this computer.
func TestSource_RefusesNames(t *testing.T) {
	base := folder(t)
	path := filepath.Join(filepath.Dir(base), "cat.png")
	for _, source := range []*mediafile.Source{{}, {Base: "https://example.com/rows.csv"}} {
		for _, name := range []string{path, "file://" + path, "data:image/png;base64," + png64} {
			got := show(source.Load(t.Context(), spec.Type{Name: "image"}, name))
			if strings.HasPrefix(name, "data:") != (got == png) {
				t.Errorf("base %q, %s: got %q", source.Base, name, got)
			}
		}
	}
	if got := show((&mediafile.Source{}).Load(t.Context(), spec.Type{Name: "image"}, "a.png")); got != `error: a.png: files cannot be named here: pass the content as a data URL or {"base64": "…"}` {
		t.Error(got)
	}
	if got := show((&mediafile.Source{}).Load(t.Context(), spec.Type{Name: "file"}, path)); got != path {
		t.Error("the text of a file is not its content:", got)
	}
}

func TestSource_HTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a/cat.png":
			fmt.Fprint(w, png)
		case "/a/large.png":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, png+strings.Repeat("x", 20<<20))
		case "/a/sign-in.png":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, png)
		case "/a/text.png":
			fmt.Fprint(w, "Dear shop")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	source := &mediafile.Source{Base: server.URL + "/a/rows.csv", HTTP: server.Client()}
	for name, want := range map[string]string{
		"cat.png": png, server.URL + "/a/cat.png": png,
		"large.png":       "error: URL/a/large.png: it is larger than 20 MiB, the limit of type image",
		"sign-in.png?k=1": "error: URL/a/sign-in.png: expected the type image, the server sends text/html",
		"text.png":        `error: URL/a/text.png: expected an image, found the text "Dear shop"`,
		"none.png":        "error: URL/a/none.png: the server answers with status 404",
	} {
		want = strings.ReplaceAll(want, "URL", server.URL)
		if got := show(source.Load(t.Context(), spec.Type{Name: "image"}, name)); got != want {
			t.Errorf("%s: got %.200q, want %q", name, got, want)
		}
	}
	if mediafile.BaseOf("-") != "./" || mediafile.BaseOf("/dev/null") != "./" || mediafile.BaseOf("rows.csv") != "rows.csv" {
		t.Error("the folder of rows is wrong")
	}
}
