package documents_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/qtype-dev/qtype/internal/documents"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// tree is a folder with what readers of folders treat differently.
func tree() map[string]string {
	return map[string]string{
		"b.md": "# B\r\ntext\r\n", "a.txt": "A", "Z.txt": "Z", "empty.txt": "", "data.json": `{"a": 1}`, "page.html": "<html><body><nav>menu</nav><p>body</p></body></html>",
		"a/x.md": "X", "a/deep/y.md": "Y", "a/deep/y.tmp": "T", "drafts/d.md": "D", "drafts2/e.md": "E",
		".hidden.md": "H", ".git/config": "G", "noext": "N", "ümlaut ß.md": "Ü",
		"latin1.txt": "caf\xe9 au lait, d\xe9j\xe0 vu et fa\xe7ade",
	}
}

func TestDirectory_Selection(t *testing.T) {
	dir := folder(t, tree())
	for name, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"flat":       {map[string]any{}, "Z.txt a.txt b.md data.json empty.txt latin1.txt noext page.html ümlaut ß.md"},
		"recursive":  {map[string]any{"recursive": true, "required_exts": []any{".md"}}, "a/deep/y.md a/x.md b.md drafts/d.md drafts2/e.md ümlaut ß.md"},
		"hidden":     {map[string]any{"recursive": true, "exclude_hidden": false, "required_exts": []any{".md", ""}}, "-"},
		"exclude":    {map[string]any{"recursive": true, "exclude": []any{"drafts", "*.tmp", "[ab].*", "y.?d"}, "required_exts": []any{".md", ".txt", ".tmp"}}, "Z.txt a/x.md drafts2/e.md empty.txt latin1.txt ümlaut ß.md"},
		"path":       {map[string]any{"recursive": true, "exclude": []any{"a/**"}, "required_exts": []any{".md"}}, "b.md drafts/d.md drafts2/e.md ümlaut ß.md"},
		"empty":      {map[string]any{"exclude_empty": true, "required_exts": []any{".txt"}}, "Z.txt a.txt latin1.txt"},
		"limit":      {map[string]any{"num_files_limit": int64(2)}, "Z.txt a.txt"},
		"all hidden": {map[string]any{"exclude_hidden": false, "required_exts": []any{".md"}}, ".hidden.md b.md ümlaut ß.md"},
	} {
		t.Run(name, func(t *testing.T) {
			c.args["input_dir"] = dir
			got := read(t, "directory", c.args, nil)
			if c.want == "-" {
				if got.err == nil || !strings.Contains(got.err.Error(), "an extension begins with a dot") {
					t.Errorf("got %v", got.err)
				}
				return
			}
			var paths []string
			for _, d := range got.docs {
				rel, err := filepath.Rel(dir, d.Metadata["file_path"].(string))
				if err != nil {
					t.Fatal(err)
				}
				paths = append(paths, filepath.ToSlash(rel))
			}
			if d := cmp.Diff(c.want, strings.Join(paths, " ")); d != "" || got.err != nil || got.failed != nil {
				t.Error(d, got.err, got.failed)
			}
		})
	}
}

func TestDirectory_Texts(t *testing.T) {
	dir := folder(t, tree())
	got := read(t, "directory", map[string]any{"input_dir": dir}, nil)
	texts := map[string]string{}
	for _, d := range got.docs {
		texts[d.Name] = d.Text
	}
	for name, want := range map[string]string{"b.md": "# B\r\ntext\r\n", "page.html": tree()["page.html"], "latin1.txt": "café au lait, déjà vu et façade", "empty.txt": ""} {
		if texts[name] != want {
			t.Errorf("%s: got %q, want %q", name, texts[name], want)
		}
	}
	for errors, want := range map[string]string{"ignore": "caf au lait, dj vu et faade", "replace": "caf\uFFFD au lait, d\uFFFDj\uFFFD vu et fa\uFFFDade", "strict": ""} {
		got := read(t, "directory", map[string]any{"input_files": []any{filepath.Join(dir, "latin1.txt")}, "encoding": "utf-8", "errors": errors}, nil)
		switch {
		case want == "" && (len(got.failed) != 1 || !strings.Contains(got.failed[0], "bytes that its charset does not have")):
			t.Errorf("%s: got %v", errors, got.failed)
		case want != "" && (len(got.docs) != 1 || got.docs[0].Text != want):
			t.Errorf("%s: got %+v %v", errors, got.docs, got.failed)
		}
	}
}

// unknownPDF has one page with four characters, of which the font does not state the last.
const unknownPDF = "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n" +
	"3 0 obj <</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>> endobj\n" +
	"4 0 obj <</Length 37>>\nstream\nBT /F 10 Tf 50 700 Td (abc~) Tj ET   \nendstream endobj\n" +
	"5 0 obj <</Type/Font/Subtype/Type1/Encoding<</Differences[126/g7]>>>> endobj\ntrailer <</Root 1 0 R>>\n"

// TestDirectory_UnknownCharacters: the metadata of a page tells which part of its text is not known.
func TestDirectory_UnknownCharacters(t *testing.T) {
	dir := folder(t, map[string]string{"a.pdf": unknownPDF})
	got := read(t, "directory", map[string]any{"input_dir": dir}, nil)
	if len(got.docs) != 1 || got.docs[0].Text != "abc\uFFFD" || got.docs[0].Metadata["unknown_characters"] != 0.25 {
		t.Errorf("got %+v %v", got.docs, got.failed)
	}
}

// TestDirectory_Ids: ids follow from the path as it is written, so they are the same on
// another computer and after a second reading.
func TestDirectory_Ids(t *testing.T) {
	dir := folder(t, map[string]string{"docs/a.md": "A", "docs/b.md": "B"})
	t.Chdir(dir)
	ids := func(args map[string]any) []string {
		var all []string
		for _, d := range read(t, "directory", args, nil).docs {
			all = append(all, d.ID)
		}
		return all
	}
	first, second := ids(map[string]any{"input_dir": "docs"}), ids(map[string]any{"input_dir": "./docs/"})
	if !slices.Equal(first, second) || len(first) != 2 || first[0] == first[1] {
		t.Errorf("got %v, then %v", first, second)
	}
	if want := uuid.NewSHA1(uuid.NameSpaceURL, []byte("docs/a.md")).String(); first[0] != want {
		t.Errorf("got %q, want %q", first[0], want)
	}
	if byFile := ids(map[string]any{"input_files": []any{"docs/a.md"}}); !slices.Equal(byFile, first[:1]) {
		t.Errorf("as a single file: %v, in its folder: %v", byFile, first)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if named := ids(map[string]any{"input_dir": "docs", "filename_as_id": true}); named[0] != filepath.Join(wd, "docs", "a.md") {
		t.Errorf("filename_as_id: %v", named)
	}
}

// TestDirectory_FailedFiles: a file that cannot be read fails alone.
func TestDirectory_FailedFiles(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "A", "image.png": "\x89PNG\r\n\x1a\n\x00\x00", "program": "\x7fELF\x00\x01\x02\x00\x00\xff\xfe\x80", "big.txt": strings.Repeat("x", 100)})
	env := testEnv()
	env.Limits.Input = 50
	got := readIn(t.Context(), "directory", map[string]any{"input_dir": dir}, nil, env)
	if !slices.Equal(got.names(), []string{"a.md"}) || len(got.failed) != 3 || got.err != nil {
		t.Errorf("got %v, failed %q, error %v", got.names(), got.failed, got.err)
	}
	for _, text := range got.failed {
		if !strings.Contains(text, dir) || strings.Contains(text, "\n") {
			t.Errorf("%q does not name the file on one line", text)
		}
	}
	for want, args := range map[string]map[string]any{
		"does not exist":     {"input_dir": filepath.Join(dir, "none")},
		"is not a folder":    {"input_dir": filepath.Join(dir, "a.md")},
		"no files found in ": {"input_dir": dir, "required_exts": []any{".xyz"}},
	} {
		if got := read(t, "directory", args, nil); got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("got %v, want %q", got.err, want)
		}
	}
	missing := read(t, "directory", map[string]any{"input_files": []any{filepath.Join(dir, "none.md"), filepath.Join(dir, "a.md"), dir}}, nil)
	if len(missing.failed) != 2 || len(missing.docs) != 1 {
		t.Errorf("got %v, failed %v", missing.names(), missing.failed)
	}
}

// TestDirectory_Password: one password opens all files that need one; the others open too.
func TestDirectory_Password(t *testing.T) {
	locked := filepath.Join("format", "testdata", "user128.pdf")
	files := map[string]any{"input_files": []any{locked, filepath.Join("format", "testdata", "rotated.pdf")}}
	if got := read(t, "directory", files, nil); len(got.docs) != 2 || len(got.failed) != 1 || !strings.HasSuffix(got.failed[0], "is encrypted: set password to its password") {
		t.Errorf("got %v, failed %q", got.names(), got.failed)
	}
	files["password"] = "secret"
	if got := read(t, "directory", files, nil); len(got.docs) != 3 || len(got.failed) != 0 || !strings.Contains(got.docs[0].Text, "Harbour report") {
		t.Errorf("got %v, failed %q", got.names(), got.failed)
	}
}

// TestDirectory_OneAtATime: the reading stops with the first error of emit.
func TestDirectory_OneAtATime(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "A", "b.md": "B"})
	source := mustOpen(t, "directory", map[string]any{"input_dir": dir})
	count := 0
	err := source.Read(t.Context(), func(*documents.Document, error) error { count++; return os.ErrClosed })
	if !errors.Is(err, os.ErrClosed) || count != 1 {
		t.Errorf("%d documents, error %v", count, err)
	}
}

// TestDirectory_Links: a link to a file is read, a link to a folder is not.
func TestDirectory_Links(t *testing.T) {
	dir := folder(t, map[string]string{"docs/a.md": "A", "elsewhere/b.md": "B"})
	for name, to := range map[string]string{"docs/link.md": "elsewhere/b.md", "docs/folder": "elsewhere", "docs/loop": "docs", "docs/broken.md": "none", "root": "docs"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, name)); err != nil {
			t.Skip("SKIPPED: no symbolic links")
		}
	}
	for _, root := range []string{"docs", "root"} {
		got := read(t, "directory", map[string]any{"input_dir": filepath.Join(dir, root), "recursive": true}, nil)
		if !slices.Equal(got.names(), []string{"a.md", "link.md"}) || got.failed != nil {
			t.Errorf("%s: got %v %v %v", root, got.names(), got.failed, got.err)
		}
	}
}

// TestDirectory_Unreadable: a file that cannot be looked up has failed, unless it is not to be read. If it
// were left out, IndexUpsert with sync would remove it from the index.
func TestDirectory_Unreadable(t *testing.T) {
	dir := folder(t, map[string]string{"docs/a.md": "A", "docs/sub/b.md": "B", "docs/sub/c.tmp": "C"})
	wanted := 0
	// The name of the target is longer than the system allows, which fails for root as well.
	if os.Symlink(strings.Repeat("x", 300), filepath.Join(dir, "docs", "long.md")) == nil {
		wanted++
	}
	if os.Getuid() > 0 {
		testkit.Must(t, os.Chmod(filepath.Join(dir, "docs", "sub"), 0o400))
		t.Cleanup(func() { testkit.Must(t, os.Chmod(filepath.Join(dir, "docs", "sub"), 0o700)) })
		wanted++
	}
	if wanted == 0 {
		t.Skip("SKIPPED: all files can be looked up")
	}
	args := map[string]any{"input_dir": filepath.Join(dir, "docs"), "recursive": true, "required_exts": []any{".md"}}
	got := read(t, "directory", args, nil)
	if len(got.failed) != wanted || got.err != nil || got.names()[0] != "a.md" {
		t.Errorf("got %v, failed %q, error %v", got.names(), got.failed, got.err)
	}
	args["required_exts"] = []any{".tmp"}
	if got := read(t, "directory", args, nil); slices.ContainsFunc(got.failed, func(text string) bool { return strings.Contains(text, "long.md") }) {
		t.Errorf("failed %q", got.failed)
	}
}
