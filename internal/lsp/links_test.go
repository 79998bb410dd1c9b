package lsp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentLinks checks that includes, of documents, parts and texts, lead to their files.
func TestDocumentLinks(t *testing.T) {
	e := start(t, map[string]string{"parts/m.yaml": "- id: m\n", "t.txt": "text"})
	e.open(app, "id: x\ndescription: !include_raw t.txt\nmemories: !include \"parts/m.yaml\"\nreferences:\n  - !include ../other.qtype.yaml\n")
	var links []struct {
		Range  textRange
		Target string
	}
	e.call("textDocument/documentLink", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &links)
	var got []string
	for _, l := range links {
		got = append(got, fmt.Sprintf("%v %s", l.Range.Start, l.Target))
	}
	want := []string{"{1 26} " + e.uri("t.txt"), "{2 19} " + e.uri("parts/m.yaml"), "{4 13} " + e.uri("../other.qtype.yaml")}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFoldingRanges checks which lines editors can hide.
func TestFoldingRanges(t *testing.T) {
	e := start(t, nil)
	e.open(app, "id: x\nmemories:\n  - id: m\n    token_limit: 5\n\n  - {id: n,\n     token_limit: 6}\n# about flows\nflows: []\ndescription: |\n  one\n  two\n\n")
	var folds []struct{ StartLine, EndLine int }
	e.call("textDocument/foldingRange", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &folds)
	want := []struct{ StartLine, EndLine int }{{1, 6}, {2, 3}, {5, 6}, {9, 11}}
	slices.SortFunc(folds, func(a, b struct{ StartLine, EndLine int }) int { return a.StartLine - b.StartLine })
	if d := cmp.Diff(want, folds); d != "" {
		t.Error(d)
	}
}

// TestWorkspaceSymbols checks that entities of open documents and of files in the folder are found by parts of their names.
func TestWorkspaceSymbols(t *testing.T) {
	e := start(t, map[string]string{"lib.qtype.yaml": "id: lib\nmemories: [{id: Chat_Store}]\n", "a.qtype.yaml": "id: a\nmemories: [{id: chat_disk}]\n", "notes.yaml": "- id: chat_part\n"})
	e.open("a.qtype.yaml", "id: a\nmemories: [{id: chat_open}]\nreferences: [!include lib.qtype.yaml]\n")
	find := func(query string) []string {
		var found []struct {
			Name, ContainerName string
			Location            struct{ URI string }
		}
		e.call("workspace/symbol", map[string]any{"query": query}, &found)
		var got []string
		for _, s := range found {
			got = append(got, s.ContainerName+"/"+s.Name+" "+s.Location.URI)
		}
		slices.Sort(got)
		return got
	}
	want := []string{"a/chat_open " + e.uri("a.qtype.yaml"), "lib/Chat_Store " + e.uri("lib.qtype.yaml")}
	if d := cmp.Diff(want, find("chat")); d != "" {
		t.Error(d)
	}
	if got := find("nothing"); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

// TestCompletion_Paths checks the files that an include may name.
func TestCompletion_Paths(t *testing.T) {
	e := start(t, map[string]string{"parts/m.yaml": "", "parts/text.md": "", "lib.qtype.yaml": "", ".env": "", "notes.txt": ""})
	for i, c := range []struct {
		text string
		want []string
		made string // the text of the first proposal in place
	}{
		{"memories: !include " + cursor, []string{"lib.qtype.yaml", "parts/"}, "memories: !include lib.qtype.yaml"},
		{"memories: !include lib.q" + cursor, []string{"lib.qtype.yaml", "parts/"}, "memories: !include lib.qtype.yaml"},
		{"memories: !include parts/" + cursor, []string{"m.yaml"}, "memories: !include parts/m.yaml"},
		{"memories: !include './parts/m" + cursor + "'", []string{"m.yaml"}, "memories: !include './parts/m.yaml'"},
		{"description: !include_raw parts/x" + cursor + ".md", []string{"m.yaml", "text.md"}, "description: !include_raw parts/m.yaml"},
		{"memories: !include none/" + cursor, nil, ""},
	} {
		name := fmt.Sprintf("c%d.qtype.yml", i)
		text, at := cutCursor(t, "id: x\n"+c.text+"\n")
		e.open(name, text)
		var list struct {
			Items []struct {
				Label    string
				TextEdit textEdit
			}
		}
		e.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}, "position": at}, &list)
		var got []string
		for _, item := range list.Items {
			got = append(got, item.Label)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.text, d)
			continue
		}
		if len(list.Items) > 0 {
			if made := applyEdits(t, text, []textEdit{list.Items[0].TextEdit}); made != "id: x\n"+c.made+"\n" {
				t.Errorf("%s becomes %q", c.text, made)
			}
		}
	}
}
