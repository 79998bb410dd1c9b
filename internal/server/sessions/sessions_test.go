package sessions_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type listed struct {
	Sessions []struct {
		ID, Title, Flow string
		Messages        int
		Updated         time.Time
		Memories        []string
	}
	Next *string
}

func (l listed) ids() (ids []string) {
	for _, s := range l.Sessions {
		ids = append(ids, s.ID)
	}
	return ids
}

type one struct {
	ID, Title, Flow string
	Created         time.Time
	Memories        []struct {
		ID, Policy, Unit                              string
		Messages, Turns, Used, Limit, Tokens, Flushes int
		InWindow                                      int `json:"in_window"`
	}
	Run *string
}

type page struct {
	Messages []struct {
		ID, Role, Status, Reason string
		Seq, Turn                int64
		Tokens                   int
		Parts                    []map[string]any
	}
	Previous *int64
}

// texts returns the messages of a page on a line each.
func (p page) texts() (all []string) {
	for _, m := range p.Messages {
		all = append(all, fmt.Sprint(m.Turn, " ", m.Role, " ", m.Parts[0]["text"], " ", m.Status))
	}
	return all
}

func TestSessions_List(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	for n := range 5 {
		s.Say(t, "ada", fmt.Sprint("s", n), fmt.Sprintf("Question\n number %d", n))
	}
	s.Say(t, "ada", "s3", "More")
	s.Say(t, "bob", "s0", "Mine")
	testkit.Must(t, s.Record(sessionstest.As("ada"), "aside", "ada/long", strings.Repeat("word ", 40)))
	all := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200)
	if d := cmp.Diff([]string{"long", "s4", "s3", "s2", "s1", "s0"}, all.ids()); d != "" {
		t.Error(d)
	}
	if got := all.Sessions[2]; got.Title != "Question number 3" || got.Flow != "chat" || got.Messages != 4 || strings.Join(got.Memories, " ") != "talk notes" {
		t.Errorf("got %+v", got)
	}
	if got := all.Sessions[0]; got.Title != strings.Repeat("word ", 15)+"word…" || got.Messages != 0 {
		t.Errorf("got %+v", got)
	}
	for query, want := range map[string][]string{
		"?limit=2": {"long", "s4"}, "?flow=aside": {"long"}, "?flow=none": nil, "?q=NUMBER%203": {"s3"}, "?q=x%20y": nil,
	} {
		if d := cmp.Diff(want, sessionstest.Get[listed](t, s, "ada", "GET /sessions"+query, "", 200).ids()); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	var paged []string
	for cursor := ""; ; {
		p := sessionstest.Get[listed](t, s, "ada", "GET /sessions?limit=2&cursor="+cursor, "", 200)
		paged = append(paged, p.ids()...)
		if p.Next == nil {
			break
		}
		cursor = *p.Next
	}
	if d := cmp.Diff(all.ids(), paged); d != "" {
		t.Errorf("by pages: %s", d)
	}
	s.Must(t, "ada", "PATCH /sessions/s3", `{"title": "  The\tparcel "}`, 200)
	if d := cmp.Diff([]string{"s3"}, sessionstest.Get[listed](t, s, "ada", "GET /sessions?q=parcel", "", 200).ids()); d != "" {
		t.Errorf("by the new title: %s", d)
	}
	if d := cmp.Diff([]string{"s3"}, sessionstest.Get[listed](t, s, "ada", "GET /sessions?q=number+3", "", 200).ids()); d != "" {
		t.Errorf("by the first message: %s", d)
	}
	s.Clock = s.Clock.Add(20 * time.Minute)
	s.Say(t, "ada", "s1", "used again")
	s.Say(t, "ada", "s1", "and again")
	if d := cmp.Diff([]string{"s1", "long", "s4", "s3", "s2", "s0"}, sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200).ids()); d != "" {
		t.Errorf("after another use: %s", d)
	}
	s.Clock = s.Clock.Add(2 * time.Hour)
	if d := cmp.Diff([]string{"s1", "s4", "s3", "s2", "s0"}, sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200).ids()); d != "" {
		t.Errorf("a session that was never used: %s", d)
	}
}

func TestSessions_ReadRenameDelete(t *testing.T) {
	runs := make(chan string, 1)
	s := sessionstest.New(t, memory.NewInProcess(), func(o *sessions.Options) {
		o.Running = func(ctx context.Context, _ string) (string, bool, error) {
			select {
			case running := <-runs:
				return running, running != "", nil
			case <-ctx.Done():
				return "", false, ctx.Err()
			}
		}
	})
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	id := "a b/ü%"
	path := "/sessions/a%20b%2F%C3%BC%25"
	for n := range 3 {
		s.Say(t, "ada", id, fmt.Sprint("q", n))
	}
	runs <- ""
	got := sessionstest.Get[one](t, s, "ada", "GET "+path, "", 200)
	if got.ID != id || got.Title != "q0" || got.Flow != "chat" || got.Run != nil || len(got.Memories) != 2 || got.Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	m := got.Memories[0]
	if m.ID != "talk" || m.Policy != "message_window" || m.Messages != 6 || m.InWindow != 4 || m.Used != 4 || m.Limit != 4 || m.Unit != "messages" || m.Flushes != 1 || m.Turns != 3 || m.Tokens == 0 {
		t.Errorf("got %+v", m)
	}
	runs <- "run_1"
	if got := sessionstest.Get[one](t, s, "ada", "PATCH "+path, `{"title":"New"}`, 200); got.Title != "New" || got.Run == nil || *got.Run != "run_1" {
		t.Errorf("got %+v", got)
	}
	stop := make(chan struct{})
	go func() { defer close(stop); s.Call("ada", "DELETE", path, "") }() // waits for the run
	runs <- "run_1"
	runs <- ""
	<-stop
	s.Must(t, "ada", "GET "+path, "", 404)
	s.Must(t, "ada", "DELETE "+path, "", 404)
	if l := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(l.Sessions) != 0 {
		t.Errorf("listed after deletion: %+v", l)
	}
	state := s.App.State()
	for _, name := range []string{"shop/talk", "shop/notes", state.Records(appstate.Sessions).Memory(), state.Records(appstate.Newest).Memory(), state.Records(appstate.Inputs).Memory()} {
		left, err := store.ListSessions(t.Context(), s.Store, name, store.SessionQuery{})
		testkit.Must(t, err)
		if len(left) != 0 {
			t.Errorf("%s has %v", name, left)
		}
	}
	s.Say(t, "ada", id, "again") // within the time in which Record remembers it
	if got := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 1 || got.Sessions[0].Title != "again" {
		t.Errorf("got %+v", got)
	}
	testkit.Must(t, s.App.Memory("talk").Append(t.Context(), "ada/import", chat.Text(chat.System, "s"), chat.Text(chat.User, "by a program")))
	runs <- ""
	if got := sessionstest.Get[one](t, s, "ada", "GET /sessions/import", "", 200); got.ID != "import" || got.Title != "by a program" || got.Flow != "" {
		t.Errorf("got %+v", got)
	}
	runs <- ""
	if got := sessionstest.Get[one](t, s, "ada", "PATCH /sessions/import", `{"title":"Known"}`, 200); got.Title != "Known" {
		t.Errorf("got %+v", got)
	}
	if got := sessionstest.Get[listed](t, s, "ada", "GET /sessions?q=known", "", 200); len(got.Sessions) != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestSessions_DeletedElsewhere checks that title and text of a session go with its last
// conversation, also if another program deletes that.
func TestSessions_DeletedElsewhere(t *testing.T) {
	for name, remove := range map[string]func(context.Context, *memory.Memory) error{
		"clear": func(ctx context.Context, m *memory.Memory) error { return m.Clear(ctx, "ada/s") },
		"prune": func(ctx context.Context, m *memory.Memory) error {
			_, err := m.PruneUnused(ctx, time.Now().Add(time.Hour))
			return err
		},
	} {
		s := sessionstest.New(t, memory.NewInProcess())
		s.Say(t, "ada", "s", "my secret")
		testkit.Must(t, remove(t.Context(), s.App.Memory("talk")))
		if got := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 1 {
			t.Errorf("%s: with a conversation in another memory: %+v", name, got)
		}
		testkit.Must(t, remove(t.Context(), s.App.Memory("notes")))
		if got := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 0 {
			t.Errorf("%s: listed %+v", name, got)
		}
		s.Must(t, "ada", "GET /sessions/s", "", 404)
		for _, kind := range []string{appstate.Sessions, appstate.Newest} {
			for h, err := range s.App.State().Records(kind).List(t.Context(), store.RecordQuery{}) {
				t.Errorf("%s: record %s %q, %v", name, kind, h.ID, err)
			}
		}
		testkit.Must(t, s.App.Close(context.Background()))
	}
}

// TestSessions_Expired checks that the record of an expired session is deleted.
func TestSessions_Expired(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	for _, flow := range []string{"aside", "chat"} {
		testkit.Must(t, s.Record(sessionstest.As("ada"), flow, "ada/"+flow, "q"))
	}
	for _, want := range []int{2, 1} {
		const hours = 20
		s.Clock = s.Clock.Add(hours * time.Hour)
		if got := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 0 {
			t.Errorf("after %d hours: %+v", hours, got)
		}
		left, err := store.ListSessions(t.Context(), s.Store, s.App.State().Records(appstate.Sessions).Memory(), store.SessionQuery{})
		testkit.Must(t, err)
		if len(left) != want {
			t.Errorf("after %d hours there are %d records, want %d", hours, len(left), want)
		}
	}
}

func TestSessions_Messages(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	m := s.App.Memory("talk")
	call := chat.Message{ID: "call", Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: "I look."}}}.With(
		chat.ToolCall{ID: "1", Name: "find", Arguments: `{"a": 1}`}, chat.ToolCall{ID: "2", Name: "read", Arguments: "not json"})
	result := func(id, name, text string) chat.Message {
		return chat.Message{Role: chat.Tool, Name: name, ToolCallID: id, Blocks: []chat.Block{{Type: "text", Text: text}}}
	}
	image := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "see"}, {Type: "image", Data: []byte{1}, MimeType: "image/gif"}, {Type: "file", Text: "https://x.example/a"}}}
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.System, "old"), chat.Text(chat.System, "new"), chat.Text(chat.User, "first")))
	_ = m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		testkit.Must(t, turn.Add(chat.Text(chat.User, "broken")))
		return fmt.Errorf("no answer")
	})
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "undone")))
	testkit.Must(t, m.Rewind(t.Context(), "s", 3))
	testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		return turn.Add(image, call, result("1", "find", `{"found": [1]}`), result("2", "read", "error: not found"), chat.Text(chat.Assistant, "done"))
	}))
	p := sessionstest.Get[page](t, s, "", "GET /sessions/s/messages", "", 200)
	want := []string{"1 system old replaced", "1 system new in_window", "1 user first evicted", "2 user broken failed", "3 user undone replaced",
		"5 user see evicted", "5 assistant I look. evicted", "5 assistant done in_window"}
	if d := cmp.Diff(want, p.texts()); d != "" || p.Previous != nil {
		t.Errorf("previous %v, %s", p.Previous, d)
	}
	var reasons []string
	for _, m := range p.Messages {
		reasons = append(reasons, m.Reason)
	}
	full := "7 messages in the window exceeded max_messages 4; 3 messages had to leave, 5 messages left"
	if d := cmp.Diff([]string{"a newer system message replaced it", "", full, "no answer", "turn 3 and later ones were rewound", full, full, ""}, reasons); d != "" {
		t.Error(d)
	}
	parts := map[string]any{}
	for i, part := range append(p.Messages[5].Parts[1:], p.Messages[6].Parts[1:]...) {
		parts[fmt.Sprint(i)] = part
	}
	wantParts := map[string]any{
		"0": map[string]any{"type": "file", "mediaType": "image/gif", "url": "data:image/gif;base64,AQ=="},
		"1": map[string]any{"type": "file", "mediaType": "application/octet-stream", "url": "https://x.example/a"},
		"2": map[string]any{"type": "tool-find", "toolCallId": "1", "state": "output-available", "input": map[string]any{"a": 1.0}, "output": map[string]any{"found": []any{1.0}}},
		"3": map[string]any{"type": "tool-read", "toolCallId": "2", "state": "output-error", "input": "not json", "errorText": "not found"},
	}
	if d := cmp.Diff(wantParts, parts); d != "" {
		t.Error(d)
	}
	var seqs []int64 // of pages of two messages: the results stay with their calls
	for before := int64(11); ; {
		p := sessionstest.Get[page](t, s, "", fmt.Sprintf("GET /sessions/s/messages?limit=2&before=%d", before), "", 200)
		for i := len(p.Messages) - 1; i >= 0; i-- {
			seqs = append(seqs, p.Messages[i].Seq)
		}
		if p.Previous == nil {
			break
		}
		before = *p.Previous
	}
	if d := cmp.Diff([]int64{10, 7, 6, 5, 4, 3, 2, 1}, seqs); d != "" {
		t.Errorf("by pages: %s", d)
	}
	if p := sessionstest.Get[page](t, s, "", "GET /sessions/s/messages?before=1", "", 200); len(p.Messages) != 0 {
		t.Errorf("got %+v", p)
	}
}

// TestSessions_SharedFile checks that two processes with one SQLite file have the same list: a session that one
// has deleted is in it again once the other one uses it.
func TestSessions_SharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	var servers []*sessionstest.Server
	for range 2 {
		store, err := sqlite.Open(path)
		testkit.Must(t, err)
		s := sessionstest.New(t, store)
		t.Cleanup(func() { testkit.Must(t, s.App.Close(context.Background())) })
		servers = append(servers, s)
	}
	first, second := servers[0], servers[1]
	titles := func() string {
		var all []string
		for _, s := range servers {
			for _, one := range sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200).Sessions {
				all = append(all, one.Title)
			}
		}
		return strings.Join(all, " ")
	}
	first.Say(t, "ada", "s", "one")
	second.Must(t, "ada", "DELETE /sessions/s", "", 204)
	if got := titles(); got != "" {
		t.Errorf("after it was deleted: %s", got)
	}
	first.Say(t, "ada", "s", "two")
	if got := titles(); got != "two two" {
		t.Errorf("after it was used again: %s", got)
	}
}
