package lsp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"pgregory.net/rapid"
)

// aboutAPlace are the requests that carry a document and a position.
var aboutAPlace = []string{
	"textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references",
	"textDocument/documentHighlight", "textDocument/prepareRename", "textDocument/rename", "textDocument/documentSymbol",
	"textDocument/semanticTokens/full", "textDocument/formatting", "textDocument/codeAction", "textDocument/diagnostic",
}

// TestNoTextBreaksTheServer cuts documents up as typing does, and worse, and
// asks for everything everywhere: an answer or a reason comes, never a bug.
func TestNoTextBreaksTheServer(t *testing.T) {
	e := start(t, map[string]string{"m.yaml": "- id: m\n"})
	e.open(app, shop)
	done := make(chan struct{})
	defer close(done)
	go func() { // nobody looks at what is published here
		for {
			select {
			case <-e.published:
			case <-done:
				return
			}
		}
	}()
	typed := []string{"", "x", " ", "\n", "\t", ": ", "- ", "[", "{", "]", "}", "\"", "'", "|", "&a ", "*a", "!include m.yaml", "!include app.qtype.yaml", "<<: *a", "#", "${", "{{", "😀", "\x00", "---\n", "$ref: ", "\r"}
	rapid.Check(t, func(r *rapid.T) {
		text := shop
		for range rapid.IntRange(1, 4).Draw(r, "edits") {
			from := rapid.IntRange(0, len(text)).Draw(r, "from")
			to := min(len(text), from+rapid.SampledFrom([]int{0, 0, 1, 5, 40, 400}).Draw(r, "length"))
			text = strings.ToValidUTF8(text[:from]+rapid.SampledFrom(typed).Draw(r, "typed")+text[to:], "")
		}
		e.replace(app, text)
		for _, method := range aboutAPlace {
			at := position{rapid.IntRange(0, strings.Count(text, "\n")+1).Draw(r, "line"), rapid.IntRange(0, 60).Draw(r, "character")}
			err := e.ask(method, map[string]any{
				"textDocument": map[string]any{"uri": e.uri(app)}, "position": at, "newName": "other",
				"range": textRange{at, at}, "context": map[string]any{"includeDeclaration": true},
			}, nil)
			var known *jsonrpc2.Error
			if err != nil && (!errors.As(err, &known) || known.Code == jsonrpc2.CodeInternalError) {
				r.Fatalf("%s at %v: %v in\n%s", method, at, err, text)
			}
		}
	})
}

// TestEditsThatMakeNoSense are dropped; the document stays what it was.
func TestEditsThatMakeNoSense(t *testing.T) {
	e := start(t, nil)
	e.open(app, shop)
	for _, r := range []textRange{{position{5, 0}, position{2, 0}}, {position{-1, -1}, position{-5, 0}}, {position{1 << 30, 0}, position{1 << 30, 9}}} {
		e.change(app, map[string]any{"range": r, "text": ""})
	}
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.at(app, "token_limit", 0, 2), &h)
	if !strings.Contains(h.Contents.Value, "**token_limit**") {
		t.Errorf("got %q", h.Contents.Value)
	}
}
