package lsp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func codesOf(found []diagnostic) string {
	var all []string
	for _, d := range found {
		all = append(all, d.Code)
	}
	return strings.Join(all, " ")
}

func TestDiagnostics_Typing(t *testing.T) {
	e := start(t, nil)
	e.open("app.qtype.yaml", shopDocument)
	if found := e.diagnostics("app.qtype.yaml"); codesOf(found) != "QT915 QT915" {
		t.Fatalf("a valid document has %v", found)
	}
	// Remove one character: chat_memory becomes chat_memry.
	place := e.positionOf("app.qtype.yaml", "memory: chat_memory", 0, len("memory: chat_mem"))["position"].(position)
	e.change("app.qtype.yaml", map[string]any{"text": "", "range": textRange{place, position{place.Line, place.Character + 1}}})
	found := e.diagnostics("app.qtype.yaml")
	i := slices.IndexFunc(found, func(d diagnostic) bool { return d.Code == "QT202" })
	if i < 0 {
		t.Fatalf("found %v", found)
	}
	d := found[i]
	if d.Severity != 1 || !strings.Contains(d.Message, `did you mean "chat_memory"?`) || len(d.Related) != 1 {
		t.Errorf("got %+v", d)
	}
	if d.Range.Start != (position{place.Line, place.Character - len("chat_mem")}) || d.Range.End.Character-d.Range.Start.Character != len("chat_memry") {
		t.Errorf("at %v", d.Range)
	}
	e.replace("app.qtype.yaml", "id: [")
	if found := e.diagnostics("app.qtype.yaml"); codesOf(found) != "QT002" {
		t.Errorf("broken YAML has %v", found)
	}
	e.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}})
	if found := e.diagnostics("app.qtype.yaml"); len(found) != 0 {
		t.Errorf("a closed document has %v", found)
	}
}

// TestDiagnostics_UTF16 checks positions after characters of one to four bytes,
// some of which take two UTF-16 code units.
func TestDiagnostics_UTF16(t *testing.T) {
	for _, before := range []string{"", "ab", "é", "日本", "😀", "𝒳é😀"} {
		e := start(t, nil)
		e.open("app.qtype.yaml", "id: x\ndescription: \""+before+"\"\nflows: [{id: \""+before+"f\", descriptoin: y}]\n")
		found := e.diagnostics("app.qtype.yaml")
		found = slices.DeleteFunc(found, func(d diagnostic) bool { return d.Code != "QT103" })
		if len(found) != 1 {
			t.Fatalf("%q: found %v", before, found)
		}
		want := len("flows: [{id: \"") + utf16Length(before) + len("f\", ")
		if got := found[0].Range.Start.Character; got != want {
			t.Errorf("after %q the diagnostic is at %d, want %d", before, got, want)
		}
		// An edit at that range fixes the document.
		r := found[0].Range
		e.change("app.qtype.yaml", map[string]any{"text": "description", "range": r})
		if found := e.diagnostics("app.qtype.yaml"); strings.Contains(codesOf(found), "QT103") {
			t.Errorf("after %q the fixed document has %v", before, found)
		}
	}
}

// TestDiagnostics_Includes checks that errors in an included file are reported
// there, that the open text replaces the file on disk, and that the file is not
// checked as a document.
func TestDiagnostics_Includes(t *testing.T) {
	e := start(t, map[string]string{
		"app.qtype.yaml":      shopWith(t, "memories:\n  - id: chat_memory\n    token_limit: 20000\n", "memories: !include parts/memories.yaml\n"),
		"parts/memories.yaml": "- id: chat_memory\n  token_limit: 20000\n",
	})
	e.openFile("parts/memories.yaml")
	if found := e.diagnostics("parts/memories.yaml"); len(found) != 0 {
		t.Fatalf("the part has %v", found)
	}
	e.replace("parts/memories.yaml", "- id: chat_memory\n  token_limit: many\n")
	found := e.diagnostics("parts/memories.yaml")
	if len(found) != 1 || found[0].Range.Start != (position{1, 15}) {
		t.Fatalf("the part has %v", found)
	}
	if r := found[0].Related; len(r) != 1 || r[0].Message != "included from here" || r[0].Location.URI != e.uri("app.qtype.yaml") {
		t.Errorf("related information: %v", r)
	}
	// Another id breaks the document that includes it.
	e.replace("parts/memories.yaml", "- id: another_memory\n")
	if found := e.diagnostics("app.qtype.yaml"); !strings.Contains(codesOf(found), "QT202") {
		t.Errorf("the document has %v", found)
	}
	// After closing the part, the file on disk is read.
	e.openFile("app.qtype.yaml")
	e.diagnostics("app.qtype.yaml")
	e.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": e.uri("parts/memories.yaml")}})
	if found := e.diagnostics("app.qtype.yaml"); strings.Contains(codesOf(found), "QT202") {
		t.Errorf("after closing the part the document has %v", found)
	}
}

// TestDiagnostics_IncludeSortsFirst checks that the errors of a document stay while an included file is open whose
// name sorts before that of the document.
func TestDiagnostics_IncludeSortsFirst(t *testing.T) {
	e := start(t, map[string]string{"a.yaml": "- id: chat_memory\n", "b.qtype.yaml": "id: x\nmemories: !include a.yaml\nflow: []\n"})
	e.openFile("a.yaml")
	e.openFile("b.qtype.yaml")
	if found := e.diagnostics("b.qtype.yaml"); !strings.Contains(codesOf(found), "QT103") {
		t.Fatalf("the document has %v", found)
	}
	e.replace("a.yaml", "- id: chat_memory\n  token_limit: many\n")
	if found := e.diagnostics("a.yaml"); codesOf(found) != "QT105" {
		t.Errorf("the part has %v", found)
	}
	e.replace("b.qtype.yaml", "id: x\nmemories: !include a.yaml\nflowz: []\n")
	if found := e.diagnostics("b.qtype.yaml"); !strings.Contains(codesOf(found), "QT103") {
		t.Errorf("the document has %v", found)
	}
}

// TestDiagnostics_IncludedText checks that an error in a text of !include_raw is reported for its file,
// and follows the file.
func TestDiagnostics_IncludedText(t *testing.T) {
	const document = "id: x\nflows:\n  - id: f\n    variables: [{id: a, type: text}, {id: b, type: text}]\n    inputs: [a]\n    outputs: [b]\n    steps:\n      - {id: s, type: PromptTemplate, template: !include_raw t.txt, inputs: [a], outputs: [b]}\n"
	e := start(t, map[string]string{"t.txt": "Dear {a}\n  {c}\n"})
	e.open("app.qtype.yaml", document)
	found := e.diagnostics("t.txt")
	if codesOf(found) != "QT905" || found[0].Range.Start != (position{1, 2}) || len(found[0].Related) != 1 || found[0].Related[0].Location.URI != e.uri("app.qtype.yaml") {
		t.Fatalf("got %+v", found)
	}
	e.write("t.txt", "Dear {a}\n")
	e.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": e.uri("t.txt"), "type": 2}}})
	if found := e.diagnostics("t.txt"); len(found) != 0 {
		t.Errorf("the corrected text has %+v", found)
	}
}

// TestDiagnostics_WatchedFiles checks that files are read again after the editor
// reports a change.
func TestDiagnostics_WatchedFiles(t *testing.T) {
	e := start(t, map[string]string{"app.qtype.yaml": "id: x\nmemories: !include m.yaml\n"})
	e.openFile("app.qtype.yaml")
	if found := e.diagnostics("app.qtype.yaml"); len(found) == 0 {
		t.Fatal("a missing include is not an error")
	}
	e.write("m.yaml", "- id: m\n")
	e.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": e.uri("m.yaml"), "type": 1}}})
	if found := e.diagnostics("app.qtype.yaml"); strings.Contains(codesOf(found), "QT004") {
		t.Errorf("the file is there now, but found %v", found)
	}
}

func TestDiagnostics_Pull(t *testing.T) {
	e := start(t, map[string]string{"m.yaml": "- idd: m\n"}, map[string]any{
		"textDocument": map[string]any{"diagnostic": map[string]any{}},
		"workspace":    map[string]any{"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true}, "diagnostics": map[string]any{"refreshSupport": true}},
	})
	e.open("app.qtype.yaml", "id: x\nmemories: !include m.yaml\nflow: []\n")
	var report struct {
		Kind    string
		Items   []diagnostic
		Related map[string]struct{ Items []diagnostic } `json:"relatedDocuments"`
	}
	e.call("textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}}, &report)
	if report.Kind != "full" || !strings.Contains(codesOf(report.Items), "QT103") || len(report.Related[e.uri("m.yaml")].Items) == 0 {
		t.Errorf("got %+v", report)
	}
	e.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": e.uri("m.yaml"), "type": 2}}})
	for _, want := range []string{"client/registerCapability", "workspace/diagnostic/refresh"} {
		select {
		case got := <-e.serverRequests:
			if got != want {
				t.Errorf("the server sent %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Errorf("the server did not send %s", want)
		}
	}
	select {
	case p := <-e.published:
		t.Errorf("an editor that pulls diagnostics got %v", p)
	default:
	}
}

// TestServer_IgnoresOtherYAML checks that YAML files that are not documents get no
// results: editors may send every YAML file.
func TestServer_IgnoresOtherYAML(t *testing.T) {
	e := start(t, nil)
	e.open("deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n")
	if found := e.diagnostics("deployment.yaml"); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	var list struct{ Items []completionItem }
	var made []textEdit
	var tree []documentSymbol
	var h *struct{ Contents any }
	for method, result := range map[string]any{
		"textDocument/completion": &list, "textDocument/formatting": &made, "textDocument/documentSymbol": &tree, "textDocument/hover": &h,
	} {
		e.call(method, e.positionOf("deployment.yaml", "kind", 0, 2), result)
	}
	if len(list.Items)+len(made)+len(tree) > 0 || h != nil {
		t.Errorf("got %v, %v, %v and %v", list, made, tree, h)
	}
	e.open("other.yaml", "id: x\nmemmories: []\n")
	if found := e.diagnostics("other.yaml"); len(found) == 0 {
		t.Error("a document by another name is not checked")
	}
}

func TestRemote_DisabledByDefault(t *testing.T) {
	e := start(t, nil)
	e.open("app.qtype.yaml", "id: x\nreferences: [!include https://qtype.invalid/parts.yaml]\n")
	if found := e.diagnostics("app.qtype.yaml"); len(found) != 1 || found[0].Severity != 3 || !strings.Contains(found[0].Message, "remote") {
		t.Errorf("found %v", found)
	}
}

func TestDiagnostics_UntitledDocument(t *testing.T) {
	e := start(t, nil)
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": "untitled:Untitled-1", "languageId": "qtype", "version": 1, "text": "id: x\nflow: []\n"}})
	select {
	case p := <-e.published:
		if p.URI != "untitled:Untitled-1" || codesOf(p.Diagnostics) != "QT103" {
			t.Errorf("got %v", p)
		}
	case <-time.After(time.Minute):
		t.Error("nothing was published")
	}
}

func TestDiagnostics_Examples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.qtype.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v (%v)", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e := start(t, nil)
		e.open("app.qtype.yaml", string(text))
		if found := e.diagnostics("app.qtype.yaml"); len(found) > 0 {
			t.Errorf("%s has %v", file, found)
		}
	}
}
