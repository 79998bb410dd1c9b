package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const valid = `id: shop
models:
  - {type: Model, id: assistant, provider: openai, model_id: gpt-6-luna}
flows:
  - id: answer
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: draft, model: assistant, inputs: [message], outputs: [reply]}
`

// broken has a reference to an unknown model at 11:48.
var broken = strings.Replace(valid, "model: assistant", "model: asistant", 1)

// folder creates files in a new working directory.
func folder(t testing.TB, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		write(t, name, text)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// options returns options that ignore the environment.
func options() loader.Options {
	return loader.Options{NoDotEnv: true, Lookup: func(string) (string, bool) { return "", false }}
}

func check(t testing.TB, find lint.Finder) []lint.Result {
	t.Helper()
	documents, err := find.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lint.Check(t.Context(), documents, options())
}

// positions formats diagnostics as "code file:line:column".
func positions(list diag.List) []string {
	spans := []string{}
	for _, d := range list {
		spans = append(spans, d.Code+" "+d.Span.String())
	}
	return spans
}

func TestDiagnostics_InOrderOfDocuments(t *testing.T) {
	files := map[string]string{}
	for _, name := range strings.Fields("d b a c f e") {
		files["specs/"+name+".qtype.yaml"] = broken
	}
	folder(t, files)
	for range 5 {
		got := positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"specs"}})))
		var want []string
		for _, name := range strings.Fields("a b c d e f") {
			want = append(want, "QT202 specs/"+name+".qtype.yaml:11:48")
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
}

func TestFind(t *testing.T) {
	folder(t, map[string]string{
		"specs/b.qtype.yaml": "", "specs/a.qtype.yml": "", "specs/part.yaml": "", "specs/deep/er/c.qtype.yaml": "",
		"specs/.git/x.qtype.yaml": "", "specs/node_modules/y.qtype.yaml": "", "specs/page.md": page, "specs/[odd].yaml": "",
		"none/readme.txt": "",
	})
	if err := os.Symlink("../specs", "specs/loop"); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("specs", "linked"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		paths    string
		markdown bool
		want     string // the documents or the error
	}{
		{"a folder", "specs", false, "specs/a.qtype.yml specs/b.qtype.yaml specs/deep/er/c.qtype.yaml"},
		{"a path that is cleaned", "./specs//", false, "specs/a.qtype.yml specs/b.qtype.yaml specs/deep/er/c.qtype.yaml"},
		{"a link to a folder", "linked", false, "linked/a.qtype.yml linked/b.qtype.yaml linked/deep/er/c.qtype.yaml"},
		{"pages too", "specs", true, "specs/a.qtype.yml specs/b.qtype.yaml specs/deep/er/c.qtype.yaml specs/page.md:6 specs/page.md:18"},
		{"a page by name", "specs/page.md", false, "specs/page.md:6 specs/page.md:18"},
		{"any file by name", "specs/part.yaml none/readme.txt", false, "specs/part.yaml none/readme.txt"},
		{"a missing file", "nowhere.yaml", false, "nowhere.yaml"},
		{"a URL", "https://127.0.0.1/a.yaml?x=[1]", false, "https://127.0.0.1/a.yaml"},
		{"a file with odd letters", "specs/[odd].yaml", false, "specs/[odd].yaml"},
		{"duplicate files", "specs/b.qtype.yaml specs ./specs/b.qtype.yaml", false, "specs/b.qtype.yaml specs/a.qtype.yml specs/deep/er/c.qtype.yaml"},
		{"a pattern", "specs/*.yaml", false, "specs/[odd].yaml specs/b.qtype.yaml specs/part.yaml"},
		{"any folders", "specs/**/*.qtype.yaml", false, "specs/b.qtype.yaml specs/deep/er/c.qtype.yaml"},
		{"any folders, then anything", "specs/deep/**", false, "specs/deep/er/c.qtype.yaml"},
		{"from here", "**/c.*", false, "specs/deep/er/c.qtype.yaml"},
		{"a letter of some", "specs/[ab].qtype.y*ml", false, "specs/a.qtype.yml specs/b.qtype.yaml"},
		{"a folder without documents", "none", false, "error: folder none has no *.qtype.yaml"},
		{"a pattern of nothing", "specs/*.json", false, "error: no file matches specs/*.json"},
		{"a pattern below nothing", "nowhere/**/*.yaml", false, "error: no file matches nowhere/**/*.yaml"},
		{"an invalid pattern", "specs/[a", false, "error: specs/[a is not a valid pattern: unclosed ["},
	} {
		t.Run(c.name, func(t *testing.T) {
			documents, err := lint.Finder{Paths: strings.Fields(c.paths), Markdown: c.markdown}.Find(t.Context())
			var got []string
			for _, d := range documents {
				got = append(got, filepath.ToSlash(d.String()))
			}
			if err != nil {
				got = []string{"error: " + err.Error()}
			}
			if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
				t.Error(d)
			}
		})
	}
}

// page is a Markdown page with two documents, at lines 6 and 18, and other blocks.
var page = strings.ReplaceAll(`# A page

A whole document:

'''yaml
id: shop
models: [{type: Model, id: m, provider: opneai}]
flows: []
'''

- one in a list:

  ~~~~yml title=x
  ~~~
  ~~~~

  '''YAML
  id: shop
  description: a text
  models: !include models.yaml
  '''

A part, another language, one that is wrong on purpose, one in a larger fence:

'''yaml
id: chat_memory
token_limit: 50000
'''

'''json
{"id": "shop", "flows": []}
'''

'''yaml qtype:ignore
id: shop
flows: {}
'''

''''text
'''yaml
id: shop
flows: {}
'''
''''

'''yaml
- id: m
  type: Model
`, "'''", "```")

func TestCheck_Pages(t *testing.T) {
	folder(t, map[string]string{"docs/page.md": page, "docs/models.yaml": "- {type: Model, id: m, provider: openai, modle_id: x}\n"})
	got := positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"docs"}, Markdown: true})))
	want := []string{"QT107 docs/page.md:7:41", "QT103 docs/models.yaml:1:42"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCheck_PageForms(t *testing.T) {
	const block = "```yaml\nid: shop\nflows: 1\n```\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"carriage returns", "a\r\n\r\n" + strings.ReplaceAll(block, "\n", "\r\n"), []string{"QT105 p.md:5:8"}},
		{"a byte order mark", "\ufeff" + block, []string{"QT105 p.md:3:8"}},
		{"a fence that is never closed", "```yaml\nid: shop\nflows: 1", []string{"QT105 p.md:3:8"}},
		{"invalid YAML", "```yaml\nid: shop\nflows: [\n```\n\nflows: ]", []string{"QT002 p.md:4:1"}},
		{"nothing", "", []string{}},
		{"a NUL byte", "\x00", []string{"QT008 p.md"}},
		{"invalid UTF-8", "\xff", []string{"QT008 p.md"}},
		{"too large", strings.Repeat("x", 2<<20), []string{"QT009 p.md"}},
		{"too long", strings.Repeat("\n", 20_001), []string{"QT009 p.md"}},
		{"too many documents", strings.Repeat("```yaml\nid: a\nflows: []\n```\n", 501), []string{"QT009 p.md"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder(t, map[string]string{"p.md": c.text})
			if d := cmp.Diff(c.want, positions(lint.Diagnostics(check(t, lint.Finder{Paths: []string{"p.md"}})))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheck_LimitsDiagnostics(t *testing.T) {
	steps := strings.Repeat("      - {type: LLMInference, id: draft, model: unknown, inputs: [message], outputs: [reply]}\n", 1500)
	folder(t, map[string]string{
		"errors.yaml":   valid + steps,
		"comments.yaml": "id: shop\n" + strings.Repeat("# qtype:ignore QT917\n", 5000),
		"bad.yaml":      "id: shop\n" + strings.Repeat("# qtype:ignore\n", 5000),
	})
	for _, r := range check(t, lint.Finder{Paths: []string{"errors.yaml", "comments.yaml", "bad.yaml"}}) {
		last := r.Diagnostics[len(r.Diagnostics)-1]
		if len(r.Diagnostics) > 1001 || !strings.HasPrefix(last.Message, "more than 1000 ") {
			t.Errorf("%s: %d diagnostics, the last is %v", r.Document, len(r.Diagnostics), last)
		}
		if errors := r.Diagnostics.Errors() > 0; errors != (r.Document.Path == "errors.yaml") {
			t.Errorf("%s: %d errors", r.Document, r.Diagnostics.Errors())
		}
	}
}
