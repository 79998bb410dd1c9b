package lsp_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// BenchmarkKeystroke5000Lines measures the time from an edit to its diagnostics,
// debouncing included.
func BenchmarkKeystroke5000Lines(b *testing.B) {
	e := start(b, nil)
	e.open(app, testkit.LargeDocument(5000, "Be brief."))
	e.diagnostics(app)
	at := e.positionOf(app, "You answer", 200, 3)["position"].(position)
	for i := 0; b.Loop(); i++ {
		r := textRange{at, at}
		if i%2 == 1 {
			r.End.Character++
			e.change(app, map[string]any{"range": r, "text": ""})
		} else {
			e.change(app, map[string]any{"range": r, "text": "x"})
		}
		e.diagnostics(app)
	}
}

// BenchmarkCompletion5000Lines measures completion after an edit.
func BenchmarkCompletion5000Lines(b *testing.B) {
	e := start(b, nil)
	e.open(app, testkit.LargeDocument(5000, "Be brief."))
	where := e.positionOf(app, "memory: chat_memory", 200, 10)
	for b.Loop() {
		var list struct{ Items []completionItem }
		e.call("textDocument/completion", where, &list)
		if len(list.Items) != 1 {
			b.Fatal(list)
		}
	}
}

func BenchmarkSemanticTokens5000Lines(b *testing.B) {
	e := start(b, nil)
	e.open(app, testkit.LargeDocument(5000, "Be brief."))
	for b.Loop() {
		var tokens struct{ Data []int }
		e.call("textDocument/semanticTokens/full", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &tokens)
	}
}

// BenchmarkRename5000Lines renames an id that occurs 400 times.
func BenchmarkRename5000Lines(b *testing.B) {
	e := start(b, nil)
	e.open(app, testkit.LargeDocument(5000, "Be brief."))
	e.diagnostics(app)
	for b.Loop() {
		var w renameEdits
		e.call("textDocument/rename", withParam(e.positionOf(app, "id: chat_memory", 0, 5), "newName", "talks"), &w)
		if len(w.Changes[e.uri(app)]) < 400 {
			b.Fatal(len(w.Changes[e.uri(app)]))
		}
	}
}
