package loader_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

func TestIncludes(t *testing.T) {
	path := write(t, "app.yaml", `
id: app
description: !include_raw text/raw.md
models: !include parts/models.yaml
memories:
  - !include "parts/memory.yaml"
tools: !include parts/empty.yaml
`,
		"text/raw.md", "# ${NOT_EXPANDED}\n\n\"quoted\": yes\n",
		"parts/models.yaml", "- !include model.yaml\n", "parts/model.yaml", "id: small\ntype: Model\nprovider: !include ../word.yaml\n", "word.yaml", "openai",
		"parts/memory.yaml", "id: m\ntoken_limit: -1\n", "parts/empty.yaml", "# nothing\n")
	result, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
	if got := codes(list); len(got) != 1 || got[0] != "QT108" {
		t.Fatalf("got %v", list)
	}
	app := result.Document.Application
	if d := cmp.Diff("# ${NOT_EXPANDED}\n\n\"quoted\": yes\n", app.Description); d != "" {
		t.Error(d)
	}
	if app.Models[0].Base().Provider != "openai" || len(app.Tools) != 0 || len(result.Files) != 7 {
		t.Errorf("got %+v and %d files", app.Models[0], len(result.Files))
	}
	span := list[0].Span
	chain := span.Includes()
	if filepath.Base(span.File.Path) != "memory.yaml" || span.Start.Line != 2 || len(chain) != 1 || chain[0].Start.Line != 6 || chain[0].Start.Column != 14 {
		t.Errorf("the found is at %v, included from %v", span, chain)
	}
	if at := app.Models[0].Position().Field("provider").Span(); filepath.Base(at.File.Path) != "word.yaml" || len(at.Includes()) != 3 {
		t.Errorf("the provider is at %v", at)
	}
}

func TestIncludeErrors(t *testing.T) {
	folder := filepath.Dir(write(t, "latin1.txt", "caf\xe9", "nul.txt", "a\x00b", "bad.yaml", "a: [", "two.yaml", "a: 1\n---\nb: 2\n", "alias.yaml", "*x",
		"a.yaml", "references: [!include b.yaml]", "b.yaml", "references: [!include a.yaml]", "secret.txt", "hidden", "tag.yaml", "id: !foo x", "sub/x.yaml", "id: x"))
	for _, link := range [][2]string{{"loop", "loop"}, {"sub/again", "."}, {"sub/self.yaml", "../include.yaml"}} {
		if err := os.Symlink(link[1], filepath.Join(folder, link[0])); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Chmod(filepath.Join(folder, "secret.txt"), 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ written, code, message string }{
		{"!include missing.yaml", "QT006", `cannot include "missing.yaml": the file does not exist`},
		{"!include sub", "QT006", "is a folder"},
		{"!include a.yaml/b", "QT006", "does not exist: a part of the path is not a folder"},
		{"!include loop", "QT006", "symbolic link to itself"},
		{"!include ~/x.yaml", "QT006", "does not exist"},
		{"!include /dev/null", "QT006", "not a regular file"},
		{"!include gopher://example.com/x.yaml", "QT006", "gopher:// is not supported"},
		{"!include_raw secret.txt", "QT006", "permission denied"},
		{"!include_raw latin1.txt", "QT008", "is not valid UTF-8 text (line 1)"},
		{"!include latin1.txt", "QT008", "is not valid UTF-8"},
		{"!include_raw nul.txt", "QT008", "is a binary file"},
		{"!include", "QT002", "take the path of a file"},
		{"!include [a]", "QT002", "take the path of a file"},
		{"!include {a: b}", "QT002", "take the path of a file"},
		{"!include bad.yaml", "QT002", "expected"},
		{"!include two.yaml", "QT003", "second document"},
		{"!include alias.yaml", "QT002", "the alias *x has no anchor"},
		{"!include tag.yaml", "QT004", "unknown tag !foo"},
		{"!include_row a", "QT004", "unknown tag !include_row"},
		{"!include include.yaml", "QT007", "include.yaml → "},
		{"!include sub/self.yaml", "QT007", "self.yaml"},
		{"!include a.yaml", "QT007", "a.yaml → "},
		{"{<<: !include a.yaml}", "QT002", "<< cannot merge an included file"},
	} {
		t.Run(c.written, func(t *testing.T) {
			if c.message == "permission denied" && os.Getuid() == 0 {
				t.Skip("root may read everything")
			}
			path := filepath.Join(folder, "include.yaml")
			if err := os.WriteFile(path, []byte("id: app\nreferences:\n  - "+c.written+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
			for _, d := range list {
				if d.Code == c.code && strings.Contains(d.Message+d.Hint, c.message) && d.Span.Start.Line > 0 {
					return
				}
			}
			t.Errorf("%s with %q is due, got %v", c.code, c.message, list)
		})
	}
}

// TestConfinedIncludes: a document from elsewhere reads nothing outside of its folder.
func TestConfinedIncludes(t *testing.T) {
	folder := filepath.Dir(write(t, "secret.yaml", "id: stolen", "base/inner.yaml", "id: inner", "base/sub/deep.yaml", "references: [!include ../inner.yaml, !include ../../secret.yaml]\nid: deep"))
	if err := os.Symlink("../secret.yaml", filepath.Join(folder, "base/link.yaml")); err != nil {
		t.Skip(err)
	}
	base := filepath.Join(folder, "base")
	for written, allowed := range map[string]bool{
		"inner.yaml": true, "./sub/../inner.yaml": true, "../base/inner.yaml": true, filepath.Join(base, "inner.yaml"): true,
		"../secret.yaml": false, filepath.Join(folder, "secret.yaml"): false, "link.yaml": false, "/etc/hostname": false, "sub/deep.yaml": false, "file:///etc/hostname": false,
	} {
		text := []byte("id: app\nreferences: [!include " + written + "]\n")
		_, list := loader.LoadBytes(t.Context(), "posted.yaml", text, loader.Options{Lookup: noEnv, Confine: base})
		if got := len(list) == 0; got != allowed {
			t.Errorf("%s: allowed %v, got %v", written, allowed, list)
		}
		for _, d := range list {
			if d.Code != "QT006" {
				t.Errorf("%s: %v", written, d)
			}
		}
		if _, list = loader.LoadBytes(t.Context(), "posted.yaml", text, loader.Options{Lookup: noEnv}); len(list) != 1 || !strings.Contains(list[0].Message, "may not read files") {
			t.Errorf("%s: a text without a folder includes nothing, got %v", written, list)
		}
	}
}

// TestOpenHook loads a document whose files are not on a disk.
func TestOpenHook(t *testing.T) {
	files := map[string]string{
		"https://host/a/app.yaml?token=1": "id: app\nreferences: [!include ../parts/m.yaml, !include https://other/x.yaml]",
		"https://host/parts/m.yaml":       "[{id: v, type: text}]",
	}
	open := func(_ context.Context, path string) (io.ReadCloser, error) {
		if text, found := files[path]; found {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return nil, os.ErrNotExist
	}
	result, list := loader.Load(t.Context(), "https://host/a/app.yaml?token=1", loader.Options{Lookup: noEnv, Open: open})
	if len(list) != 1 || !strings.Contains(list[0].Message, `"https://other/x.yaml": the file does not exist`) {
		t.Errorf("got %v", list)
	}
	if refs := result.Document.Application.References; len(refs) != 1 || refs[0].Variables[0].ID != "v" {
		t.Errorf("got %+v", refs)
	}
}

// TestIncludedTwice checks that an error of a file that is included twice is reported once.
func TestIncludedTwice(t *testing.T) {
	path := write(t, "app.yaml", "id: app\nmodels: !include m.yaml\nreferences: [!include m.yaml]\n", "m.yaml", "- {type: Model, id: m, provider: opneai}\n")
	_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
	if len(list) != 1 || list[0].Code != "QT107" {
		t.Errorf("got %v", list)
	}
}

func TestUnreadableDocuments(t *testing.T) {
	folder := filepath.Dir(write(t, "empty.yaml", "", "space.yaml", " \n\n# c\n", "nul.yaml", "id: a\x00", "latin1.yaml", "id: a\ndescription: caf\xe9\n", "utf16.yaml", "\xff\xfei\x00d\x00:\x00 \x00a\x00", "word.yaml", "word", "wide.yaml", "id：shop\nmodels： []\n", "dashes.yaml", "---\n", "sub/x", ""))
	if err := os.Symlink("loop", filepath.Join(folder, "loop")); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]string{
		"missing.yaml": "QT001 missing.yaml does not exist", "sub": "QT001 sub is a folder, not a file", "sub/x/y": "QT001 sub/x/y does not exist: a part",
		"loop": "QT001 loop is a symbolic link to itself", "empty.yaml": "QT101 the document is empty", "space.yaml": "QT101 the document is empty",
		"dashes.yaml": "QT101 the document is empty", "word.yaml": "QT101 the document is only a text", "wide.yaml": "QT101 the document is only a text",
		"nul.yaml": "QT008 nul.yaml is a binary file", "utf16.yaml": "QT008 utf16.yaml is UTF-16 text, not UTF-8; save it as UTF-8", "latin1.yaml": "QT008 latin1.yaml is not valid UTF-8 text (line 2)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(folder)
			result, list := loader.Load(t.Context(), filepath.Join(folder, name), loader.Options{Lookup: noEnv})
			if len(list) != 1 || !strings.HasPrefix(list[0].Code+" "+list[0].Message, want) {
				t.Errorf("%q is due, got %v", want, list)
			}
			if result == nil || result.Document == nil || result.Lookup == nil {
				t.Error("a result is due, be it empty")
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, list := loader.Load(ctx, filepath.Join(folder, "word.yaml"), loader.Options{}); len(list) != 1 || !strings.Contains(list[0].Message, "cancelled") {
			t.Errorf("got %v", list)
		}
	})
}

func TestByteOrderMarkAndLineEnds(t *testing.T) {
	result, list := load(t, "\ufeffid: app\r\ndescription: |\r\n  a\r\n  b\r\nmemories:\r\n- id: 5\r\n")
	if got := result.Document.Application.Description; got != "a\nb\n" {
		t.Errorf("got %q", got)
	}
	if len(list) != 1 || list[0].Span.String() != "app.yaml:6:7" {
		t.Errorf("got %v", list)
	}
	for text, want := range map[string]string{"%YAML 1.2\n---\nid: 5\n": "app.yaml:3:5", "# a\n\n%YAML 1.2 # b\n---\nid: 5\n": "app.yaml:5:5", "%YAML 1.1\r\n---\r\nid: 5\r\n": "app.yaml:3:5"} {
		if _, list = load(t, text); len(list) != 1 || list[0].Span.String() != want {
			t.Errorf("%q: a document may name its version: %v", text, list)
		}
	}
	if _, list = load(t, "%YAML 2.0\n---\nid: a\n"); len(list) != 1 || list[0].Message != "this version of YAML is unknown" {
		t.Errorf("another version: %v", list)
	}
}

// TestListDocuments checks the kinds of list documents.
func TestListDocuments(t *testing.T) {
	for written, want := range map[string]string{
		"[]": "auths 0", "{}": "QT104", "id: x": "application", "root: [a]": "QT103 QT104", "~": "QT101", "5": "QT101",
		"[{id: a, type: Model, provider: openai}]": "models 1", "[{id: a, type: EmbeddingModel, provider: openai, dimensions: 5}]": "models 1",
		"[{id: a, provider: openai}]": "QT106 models 1", "[{id: a, properties: {}}]": "types 1", "[{id: a, type: text}]": "variables 1", "[{id: a}]": "QT104 variables 1",
		"[{id: a, type: text, description: x}]": "QT103 variables 1", "[{id: a, token: x}]": "auths 1", "[{id: a, type: aws, region: r}]": "auths 1",
		"[{id: a, type: APITool, name: n, description: d, endpoint: e}]": "tools 1", "[{id: a, name: n, description: d, endpoint: e}]": "QT106 tools 1",
		"[{id: a, steps: []}]": "QT102", "[{id: a, type: Flow, steps: []}]": "QT102", "[{id: a, type: Echo}]": "QT102", "[{id: a, token_limit: 5}]": "QT102",
		"[{id: a, type: VectorIndex}]": "QT102", "[{id: a, endpoint: e, provider: Phoenix}]": "QT102", "[a]": "QT102", "[[]]": "QT102",
		"[{id: m, type: Model, provider: openai}, {id: v, type: text}]": "QT102 models 1", "[{id: v, type: text}, 5, {id: w, type: int}]": "QT102 variables 2",
		"[{id: v, type: text}, {id: f, steps: []}]": "QT102 variables 1", "[{id: v, type: text}, ~]": "QT102 variables 1",
		"{id: f, steps: [], type: Flow}": "QT103 QT103",
		// Who misspells the type, or the first element, is still understood.
		"[{id: t, type: APITol, name: n, description: d, endpoint: e}]": "QT106 tools 1", "[{id: m, type: '5', provider: openai, model_id: x}]": "QT106 models 1",
		"[{a: 1}, {id: m, type: Model, provider: openai}]": "QT106 models 2", "[{id: a, type: Order, description: x}]": "QT103 variables 1",
		"---\n---\nid: x": "QT003",
	} {
		result, list := load(t, written)
		got := strings.Join(codes(list), " ")
		if kind := documentKind(result.Document); kind != "" && (kind != "application" || got == "") {
			got = strings.TrimSpace(got + " " + kind)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q: %v", written, got, want, list)
		}
	}
}

func documentKind(d *spec.Document) string {
	count := func(name string, n int) string { return name + " " + string(rune('0'+n)) }
	switch {
	case d.Application != nil:
		return "application"
	case d.Auths != nil:
		return count("auths", len(d.Auths))
	case d.Models != nil:
		return count("models", len(d.Models))
	case d.Tools != nil:
		return count("tools", len(d.Tools))
	case d.Types != nil:
		return count("types", len(d.Types))
	case d.Variables != nil:
		return count("variables", len(d.Variables))
	}
	return ""
}
