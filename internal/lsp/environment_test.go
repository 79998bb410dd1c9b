package lsp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const environmentDocument = `id: shop
description: "${LSP_TEST_SET} and ${LSP_TEST_FILE:-x}, ${LSP_TEST_NONE:-none} ${LSP_TEST_LOST}"
memories: !include part.yaml
`

func environmentEditor(t *testing.T) *editor {
	t.Helper()
	t.Setenv("LSP_TEST_SET", "hunter2")
	e := start(t, map[string]string{".env": "LSP_TEST_FILE=hunter3\n", "part.yaml": "[{id: m, ttl: '${LSP_TEST_PART}'}]\n"})
	e.open(app, environmentDocument)
	return e
}

// TestHover_Environment checks that hover says whether a variable is set, where, and its default, never its value.
func TestHover_Environment(t *testing.T) {
	e := environmentEditor(t)
	for word, want := range map[string]string{
		"LSP_TEST_SET}":   "**LSP_TEST_SET** — environment variable\n\nSet in the environment of the editor\n\nUsed in 1 place",
		"LSP_TEST_FILE:-": "**LSP_TEST_FILE** — environment variable\n\nSet in `.env`\n\nDefault: `x`\n\nUsed in 1 place",
		"LSP_TEST_NONE:-": "**LSP_TEST_NONE** — environment variable\n\nNot set; the default is used\n\nDefault: `none`\n\nUsed in 1 place",
		"LSP_TEST_LOST}":  "**LSP_TEST_LOST** — environment variable\n\nNot set: checking gives a warning, and running is an error\n\nUsed in 1 place",
	} {
		var h struct {
			Contents struct{ Value string }
			Range    textRange
		}
		e.call("textDocument/hover", e.positionOf(app, word, 0, 2), &h)
		if got := h.Contents.Value; !strings.HasSuffix(got, want) || strings.Contains(got, "hunter") {
			t.Errorf("hover of %s:\n%s\nwant the end\n%s", word, got, want)
		}
		at := e.positionOf(app, "${"+word, 0, 0)["position"].(position)
		if h.Range.Start != at {
			t.Errorf("the range of %s begins at %v, want %v", word, h.Range.Start, at)
		}
	}
}

// TestCompletion_Environment checks the names after ${: those that the document uses first, then those of .env and of
// the environment.
func TestCompletion_Environment(t *testing.T) {
	e := environmentEditor(t)
	for i, c := range []struct {
		text string
		made string // with LSP_TEST_FILE; empty for no names of variables
	}{
		{"name: ${" + cursor, "name: ${LSP_TEST_FILE}"},
		{"name: \"a ${LSP" + cursor + "\"", "name: \"a ${LSP_TEST_FILE}\""},
		{"name: ${LSP" + cursor + "}", "name: ${LSP_TEST_FILE}"},
		{"name: ${LS" + cursor + "P:-x}", "name: ${LSP_TEST_FILE:-x}"},
		{"name: ${LSP}" + cursor, ""},
		{"name: ${LSP:-" + cursor, ""},
		{"# ${" + cursor, ""},
	} {
		text, at := cutCursor(t, environmentDocument+c.text+"\n")
		name := fmt.Sprintf("c%d.qtype.yaml", i)
		e.open(name, text)
		var list struct{ Items []completionItem }
		e.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}, "position": at}, &list)
		slices.SortFunc(list.Items, func(a, b completionItem) int { return strings.Compare(a.SortText, b.SortText) })
		var first []string
		made := ""
		for _, item := range list.Items {
			if strings.HasPrefix(item.Label, "LSP_TEST") {
				first = append(first, item.Label)
			}
			if item.Label == "LSP_TEST_FILE" {
				made = applyEdits(t, text, []textEdit{item.TextEdit})
			}
		}
		if c.made == "" {
			if made != "" {
				t.Errorf("%s: proposed %v", c.text, first)
			}
			continue
		}
		if want := environmentDocument + c.made + "\n"; made != want {
			t.Errorf("%s becomes\n%s\nwant\n%s", c.text, made, want)
		}
		want := []string{"LSP_TEST_FILE", "LSP_TEST_LOST", "LSP_TEST_NONE", "LSP_TEST_PART", "LSP_TEST_SET"}
		if !slices.Equal(first, want) || list.Items[0].Label != want[0] {
			t.Errorf("%s: proposed %v first, want %v", c.text, first, want)
		}
	}
}

// TestEnvironment_Changes checks that a change of .env is seen.
func TestEnvironment_Changes(t *testing.T) {
	e := start(t, nil)
	e.open(app, "id: shop\ndescription: ${LSP_TEST_LATER}\n")
	if list := e.diagnostics(app); len(list) != 1 || list[0].Code != "QT005" {
		t.Fatalf("got %+v", list)
	}
	e.write(".env", "LSP_TEST_LATER=x\n")
	e.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": e.uri(".env"), "type": 1}}})
	if list := e.diagnostics(app); len(list) != 0 {
		t.Errorf("after the change: %+v", list)
	}
}
