package lsp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"pgregory.net/rapid"
)

// requestMethods are the requests about a document or a position.
var requestMethods = []string{
	"textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references",
	"textDocument/documentHighlight", "textDocument/prepareRename", "textDocument/rename", "textDocument/documentSymbol",
	"textDocument/semanticTokens/full", "textDocument/formatting", "textDocument/codeAction", "textDocument/diagnostic",
}

// TestServer_AnyText edits documents at random and sends all requests: each must
// return a result or an error, and never panic.
func TestServer_AnyText(t *testing.T) {
	e := start(t, map[string]string{"m.yaml": "- id: m\n"})
	e.open(app, shopDocument)
	done := make(chan struct{})
	defer close(done)
	go func() { // discards published diagnostics
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
		text := shopDocument
		for range rapid.IntRange(1, 4).Draw(r, "edits") {
			from := rapid.IntRange(0, len(text)).Draw(r, "from")
			to := min(len(text), from+rapid.SampledFrom([]int{0, 0, 1, 5, 40, 400}).Draw(r, "length"))
			text = strings.ToValidUTF8(text[:from]+rapid.SampledFrom(typed).Draw(r, "typed")+text[to:], "")
		}
		e.replace(app, text)
		for _, method := range requestMethods {
			at := position{rapid.IntRange(0, strings.Count(text, "\n")+1).Draw(r, "line"), rapid.IntRange(0, 60).Draw(r, "character")}
			err := e.tryCall(method, map[string]any{
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

// TestServer_InvalidEdits checks that invalid edits do not change the document.
func TestServer_InvalidEdits(t *testing.T) {
	e := start(t, nil)
	e.open(app, shopDocument)
	for _, r := range []textRange{{position{5, 0}, position{2, 0}}, {position{-1, -1}, position{-5, 0}}, {position{1 << 30, 0}, position{1 << 30, 9}}} {
		e.change(app, map[string]any{"range": r, "text": ""})
	}
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.positionOf(app, "token_limit", 0, 2), &h)
	if !strings.Contains(h.Contents.Value, "**token_limit**") {
		t.Errorf("got %q", h.Contents.Value)
	}
}
