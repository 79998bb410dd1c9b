package server_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

// TestSources checks that each protocol sends the passage that an answer cites, with its
// file and page.
func TestSources(t *testing.T) {
	t.Setenv("RULES_INDEX", filepath.Join(t.TempDir(), "rules.db"))
	s := serveApp(t, openApp(t, "testdata/sources.qtype.yaml"), server.Options{})
	filled := s.post("/flows/fill", `{"rule": {"chunk_id": "c1", "document_id": "d1", "content": "A book is lent for a month.",
		"metadata": {"file_name": "rules.pdf", "file_path": "/library/rules.pdf", "page": 7}}}`)
	if filled.status != http.StatusOK {
		t.Fatalf("%d %s", filled.status, filled.body)
	}
	page := s.post("/flows/fill", `{"rule": {"chunk_id": "c2", "document_id": "d2", "content": "Loans of films end sooner: films are lent for a week.",
		"metadata": {"url": "https://library.example/films", "title": "Films"}}}`)
	if page.status != http.StatusOK {
		t.Fatalf("%d %s", page.status, page.body)
	}
	film := s.post("/v1/chat/completions", `{"model": "ask", "messages": [{"role": "user", "content": "films week"}]}`)
	if !strings.Contains(film.body, `"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":0,"title":"Films","url":"https://library.example/films"}}]`) {
		t.Errorf("chat completions: %s", film.body)
	}
	for name, c := range map[string]struct{ path, body string }{
		"REST":        {"/flows/ask", `{"question": "How long is a book lent?"}`},
		"UI messages": {"/flows/ask/stream", chatOf("c", "How long is a book lent?")},
		"responses":   {"/v1/responses", `{"model": "ask", "input": "How long is a book lent?"}`},
		"AG-UI": {"/flows/ask/agui", `{"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
			"messages": [{"id": "m", "role": "user", "content": "How long is a book lent?"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.post(c.path, c.body)
			for _, want := range []string{"within a month", "rules.pdf", "7"} {
				if got.status != http.StatusOK || !strings.Contains(got.body, want) {
					t.Errorf("%q is missing: %d %s", want, got.status, got.body)
				}
			}
		})
	}
}
