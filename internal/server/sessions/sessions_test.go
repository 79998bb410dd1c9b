package sessions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `id: shop
models: [{type: Model, id: echo, provider: mock, model_id: echo}]
memories:
  - {id: talk, policy: message_window, max_messages: 4}
  - {id: notes, policy: unbounded}
  - {id: other, policy: unbounded, ttl: 24h}
flows:
  - id: chat
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}, {id: note, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: reply, model: echo, memory: talk, inputs: [message], outputs: [answer]}
      - {type: LLMInference, id: keep, model: echo, memory: notes, inputs: [answer], outputs: [note]}
  - id: aside
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: aside_reply, model: echo, memory: other, inputs: [message], outputs: [answer]}]
`

// server is a Service with its application.
type server struct {
	*sessions.Service
	app   *runtime.App
	store memory.Store
	clock time.Time
	log   bytes.Buffer
}

func newServer(t testing.TB, store memory.Store, change ...func(*sessions.Options)) *server {
	t.Helper()
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", document), qtype.WithStore(store))
	testkit.Must(t, err)
	s := &server{app: app, store: store, clock: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	o := sessions.Options{App: func() sessions.App { return app }, State: app.State, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Now: func() time.Time { s.clock = s.clock.Add(time.Second); return s.clock }}
	for _, c := range change {
		c(&o)
	}
	s.Service = sessions.New(o)
	return s
}

func as(name string) context.Context {
	return access.WithPrincipal(context.Background(), access.Principal{Name: name})
}

// call makes a request and returns status and body.
func (s *server) call(caller, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(as(caller), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// must is call for a response with a status.
func (s *server) must(t testing.TB, caller, request, body string, status int) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	code, text := s.call(caller, method, path, body)
	if code != status {
		t.Fatalf("%s of %s: got %d %s\n%s", request, caller, code, text, s.log.String())
	}
	return text
}

// get is must for a JSON value.
func get[T any](t testing.TB, s *server, caller, request, body string, status int) T {
	t.Helper()
	var out T
	testkit.Must(t, json.Unmarshal([]byte(s.must(t, caller, request, body, status)), &out))
	return out
}

// say adds a turn of the flow chat, as a run does.
func (s *server) say(t testing.TB, caller, id, question string) {
	t.Helper()
	stored := access.Principal{Name: caller}.StoredSession(id)
	testkit.Must(t, s.Record(as(caller), "chat", stored, question))
	for _, m := range []string{"talk", "notes"} {
		testkit.Must(t, s.app.Memory(m).Turn(as(caller), stored, func(turn *memory.Turn) error {
			return turn.Add(chat.Text(chat.User, question), chat.Text(chat.Assistant, "re: "+question))
		}))
	}
}

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
	s := newServer(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.app.Close(context.Background())) }()
	for n := range 5 {
		s.say(t, "ada", fmt.Sprint("s", n), fmt.Sprintf("Question\n number %d", n))
	}
	s.say(t, "ada", "s3", "More")
	s.say(t, "bob", "s0", "Mine")
	testkit.Must(t, s.Record(as("ada"), "aside", "ada/long", strings.Repeat("word ", 40)))
	all := get[listed](t, s, "ada", "GET /sessions", "", 200)
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
		if d := cmp.Diff(want, get[listed](t, s, "ada", "GET /sessions"+query, "", 200).ids()); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	var paged []string
	for cursor := ""; ; {
		p := get[listed](t, s, "ada", "GET /sessions?limit=2&cursor="+cursor, "", 200)
		paged = append(paged, p.ids()...)
		if p.Next == nil {
			break
		}
		cursor = *p.Next
	}
	if d := cmp.Diff(all.ids(), paged); d != "" {
		t.Errorf("by pages: %s", d)
	}
	s.must(t, "ada", "PATCH /sessions/s3", `{"title": "  The\tparcel "}`, 200)
	if d := cmp.Diff([]string{"s3"}, get[listed](t, s, "ada", "GET /sessions?q=parcel", "", 200).ids()); d != "" {
		t.Errorf("by the new title: %s", d)
	}
	if d := cmp.Diff([]string{"s3"}, get[listed](t, s, "ada", "GET /sessions?q=number+3", "", 200).ids()); d != "" {
		t.Errorf("by the first message: %s", d)
	}
	s.clock = s.clock.Add(20 * time.Minute)
	s.say(t, "ada", "s1", "used again")
	s.say(t, "ada", "s1", "and again")
	if d := cmp.Diff([]string{"s1", "long", "s4", "s3", "s2", "s0"}, get[listed](t, s, "ada", "GET /sessions", "", 200).ids()); d != "" {
		t.Errorf("after another use: %s", d)
	}
	s.clock = s.clock.Add(2 * time.Hour)
	if d := cmp.Diff([]string{"s1", "s4", "s3", "s2", "s0"}, get[listed](t, s, "ada", "GET /sessions", "", 200).ids()); d != "" {
		t.Errorf("a session that was never used: %s", d)
	}
}

func TestSessions_ReadRenameDelete(t *testing.T) {
	runs := make(chan string, 1)
	s := newServer(t, memory.NewInProcess(), func(o *sessions.Options) {
		o.Running = func(ctx context.Context, _ string) (string, bool, error) {
			select {
			case running := <-runs:
				return running, running != "", nil
			case <-ctx.Done():
				return "", false, ctx.Err()
			}
		}
	})
	defer func() { testkit.Must(t, s.app.Close(context.Background())) }()
	id := "a b/ü%"
	path := "/sessions/a%20b%2F%C3%BC%25"
	for n := range 3 {
		s.say(t, "ada", id, fmt.Sprint("q", n))
	}
	runs <- ""
	got := get[one](t, s, "ada", "GET "+path, "", 200)
	if got.ID != id || got.Title != "q0" || got.Flow != "chat" || got.Run != nil || len(got.Memories) != 2 || got.Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	m := got.Memories[0]
	if m.ID != "talk" || m.Policy != "message_window" || m.Messages != 6 || m.InWindow != 4 || m.Used != 4 || m.Limit != 4 || m.Unit != "messages" || m.Flushes != 1 || m.Turns != 3 || m.Tokens == 0 {
		t.Errorf("got %+v", m)
	}
	runs <- "run_1"
	if got := get[one](t, s, "ada", "PATCH "+path, `{"title":"New"}`, 200); got.Title != "New" || got.Run == nil || *got.Run != "run_1" {
		t.Errorf("got %+v", got)
	}
	stop := make(chan struct{})
	go func() { defer close(stop); s.call("ada", "DELETE", path, "") }() // waits for the run
	runs <- "run_1"
	runs <- ""
	<-stop
	s.must(t, "ada", "GET "+path, "", 404)
	s.must(t, "ada", "DELETE "+path, "", 404)
	if l := get[listed](t, s, "ada", "GET /sessions", "", 200); len(l.Sessions) != 0 {
		t.Errorf("listed after deletion: %+v", l)
	}
	state := s.app.State()
	for _, name := range []string{"shop/talk", "shop/notes", state.Records(appstate.Sessions).Memory(), state.Records(appstate.Newest).Memory(), state.Records(appstate.Inputs).Memory()} {
		left, err := store.ListSessions(t.Context(), s.store, name, store.SessionQuery{})
		testkit.Must(t, err)
		if len(left) != 0 {
			t.Errorf("%s has %v", name, left)
		}
	}
	s.say(t, "ada", id, "again") // within the time in which Record remembers it
	if got := get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 1 || got.Sessions[0].Title != "again" {
		t.Errorf("got %+v", got)
	}
	testkit.Must(t, s.app.Memory("talk").Append(t.Context(), "ada/import", chat.Text(chat.System, "s"), chat.Text(chat.User, "by a program")))
	runs <- ""
	if got := get[one](t, s, "ada", "GET /sessions/import", "", 200); got.ID != "import" || got.Title != "by a program" || got.Flow != "" {
		t.Errorf("got %+v", got)
	}
	runs <- ""
	if got := get[one](t, s, "ada", "PATCH /sessions/import", `{"title":"Known"}`, 200); got.Title != "Known" {
		t.Errorf("got %+v", got)
	}
	if got := get[listed](t, s, "ada", "GET /sessions?q=known", "", 200); len(got.Sessions) != 1 {
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
		s := newServer(t, memory.NewInProcess())
		s.say(t, "ada", "s", "my secret")
		testkit.Must(t, remove(t.Context(), s.app.Memory("talk")))
		if got := get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 1 {
			t.Errorf("%s: with a conversation in another memory: %+v", name, got)
		}
		testkit.Must(t, remove(t.Context(), s.app.Memory("notes")))
		if got := get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 0 {
			t.Errorf("%s: listed %+v", name, got)
		}
		s.must(t, "ada", "GET /sessions/s", "", 404)
		for _, kind := range []string{appstate.Sessions, appstate.Newest} {
			for h, err := range s.app.State().Records(kind).List(t.Context(), store.RecordQuery{}) {
				t.Errorf("%s: record %s %q, %v", name, kind, h.ID, err)
			}
		}
		testkit.Must(t, s.app.Close(context.Background()))
	}
}

// TestSessions_Expired checks that the record of an expired session is deleted.
func TestSessions_Expired(t *testing.T) {
	s := newServer(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.app.Close(context.Background())) }()
	for _, flow := range []string{"aside", "chat"} {
		testkit.Must(t, s.Record(as("ada"), flow, "ada/"+flow, "q"))
	}
	for _, want := range []int{2, 1} {
		const hours = 20
		s.clock = s.clock.Add(hours * time.Hour)
		if got := get[listed](t, s, "ada", "GET /sessions", "", 200); len(got.Sessions) != 0 {
			t.Errorf("after %d hours: %+v", hours, got)
		}
		left, err := store.ListSessions(t.Context(), s.store, s.app.State().Records(appstate.Sessions).Memory(), store.SessionQuery{})
		testkit.Must(t, err)
		if len(left) != want {
			t.Errorf("after %d hours there are %d records, want %d", hours, len(left), want)
		}
	}
}

func TestSessions_Messages(t *testing.T) {
	s := newServer(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.app.Close(context.Background())) }()
	m := s.app.Memory("talk")
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
	p := get[page](t, s, "", "GET /sessions/s/messages", "", 200)
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
		p := get[page](t, s, "", fmt.Sprintf("GET /sessions/s/messages?limit=2&before=%d", before), "", 200)
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
	if p := get[page](t, s, "", "GET /sessions/s/messages?before=1", "", 200); len(p.Messages) != 0 {
		t.Errorf("got %+v", p)
	}
}

// TestSessions_SharedFile checks that two processes with one SQLite file have the same list: a session that one
// has deleted is in it again once the other one uses it.
func TestSessions_SharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	var servers []*server
	for range 2 {
		store, err := sqlite.Open(path)
		testkit.Must(t, err)
		s := newServer(t, store)
		t.Cleanup(func() { testkit.Must(t, s.app.Close(context.Background())) })
		servers = append(servers, s)
	}
	first, second := servers[0], servers[1]
	titles := func() string {
		var all []string
		for _, s := range servers {
			for _, one := range get[listed](t, s, "ada", "GET /sessions", "", 200).Sessions {
				all = append(all, one.Title)
			}
		}
		return strings.Join(all, " ")
	}
	first.say(t, "ada", "s", "one")
	second.must(t, "ada", "DELETE /sessions/s", "", 204)
	if got := titles(); got != "" {
		t.Errorf("after it was deleted: %s", got)
	}
	first.say(t, "ada", "s", "two")
	if got := titles(); got != "two two" {
		t.Errorf("after it was used again: %s", got)
	}
}
