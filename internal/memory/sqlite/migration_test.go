package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// firstVersion is a file as the first version of this package wrote it. Never
// change it.
const firstVersion = `
PRAGMA application_id = 1903458672;
PRAGMA user_version = 1;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, memory TEXT NOT NULL, session TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, UNIQUE (memory, session));
CREATE TABLE entries (id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, turn INTEGER NOT NULL, tokens INTEGER NOT NULL, time INTEGER NOT NULL, failed INTEGER NOT NULL, message_id TEXT NOT NULL, message TEXT NOT NULL);
CREATE UNIQUE INDEX entries_by_message ON entries (session_id, message_id) WHERE failed = 0;
CREATE TABLE events (id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, event TEXT NOT NULL);
CREATE INDEX events_by_session ON events (session_id);
CREATE TABLE named (session_id INTEGER NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (session_id, name)) WITHOUT ROWID;
INSERT INTO sessions VALUES (1, 'm', 's', 2075817852832162630, '{"last":3,"turns":2,"first":3,"in_window":1,"tokens":5,"flushes":1,"last_said":"2026-11-01T22:33:56.342116Z"}');
INSERT INTO entries VALUES (68719476737, 1, 1, 9, 1793572436342116, 0, 'a', '{"id":"a","role":"user","blocks":[{"type":"text","content":"old question"}]}');
INSERT INTO entries VALUES (68719476738, 1, 1, 7, 1793572436342116, 0, 'b', '{"id":"b","role":"assistant","blocks":[{"type":"text","content":"old answer"}]}');
INSERT INTO entries VALUES (68719476739, 1, 2, 5, 1793572436342116, 0, 'c', '{"id":"c","role":"user","blocks":[{"type":"text","content":"and now?"}]}');
INSERT INTO events (session_id, event) VALUES (1, '{"kind":"flush","turn":2,"from":1,"to":2,"messages":2,"tokens":16,"rule":"flush","before":21,"limit":20,"unit":"tokens","reason":"over","time":"2026-11-01T22:33:56.342116Z"}');
INSERT INTO named VALUES (1, 'system', CAST('Be kind.' AS BLOB));
`

// joinTexts is a fake summarizer: it joins the texts.
type joinTexts struct{}

func (joinTexts) Summarize(_ context.Context, f promptcontext.SummaryRequest) (string, error) {
	var texts []string
	for _, m := range f.Messages {
		texts = append(texts, m.Text())
	}
	return strings.Join(texts, ", "), nil
}

// TestMigration_AddsContext checks that a session of the first version gets what
// later versions added: a summary and variables.
func TestMigration_AddsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(firstVersion); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	store := open(t, path)
	defer func() { _ = store.Close() }()
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 400, "chat_history_token_ratio": 0.05, "token_flush_size": 5}, Counter: runes{},
		Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Summary, Priority: 1, Summarizer: joinTexts{}}, promptcontext.Block{Kind: promptcontext.Variables, Priority: 2})}, store)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetVariables(t.Context(), "s", memory.Variable{Name: "plan", Value: []byte(`"Gold"`)}); err != nil {
		t.Fatal(err)
	}
	turn, err := m.Begin(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = turn.Abort(context.Background(), nil) }()
	if err := turn.Add(chat.Text(chat.User, "hello")); err != nil {
		t.Fatal(err)
	}
	sent, err := turn.Window()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, s := range sent {
		texts = append(texts, s.Text())
	}
	if all := strings.Join(texts, "\n"); !strings.Contains(all, "old question, old answer") || !strings.Contains(all, "- plan: Gold") || strings.Count(all, "and now?") != 1 {
		t.Errorf("sent %q", texts)
	}
}
