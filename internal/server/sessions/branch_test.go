package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestSessions_Branch checks that all memories of a session follow, though they
// count turns separately.
func TestSessions_Branch(t *testing.T) {
	forked := ""
	s := sessionstest.New(t, memory.NewInProcess(), func(o *sessions.Options) {
		o.OnFork = func(_ context.Context, from, to string) error { forked = from + " " + to; return nil }
	})
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	s.Say(t, "ada", "s", "q1")
	testkit.Must(t, s.App.Memory("notes").Append(t.Context(), "ada/s", chat.Text(chat.User, "a note")))
	for n := 2; n <= 4; n++ {
		s.Say(t, "ada", "s", fmt.Sprint("q", n))
	}
	made := sessionstest.Get[one](t, s, "ada", "POST /sessions/s/fork", `{"turn": 2, "id": "copy"}`, 201)
	if made.ID != "copy" || made.Title != "q1" || made.Flow != "chat" || forked != "ada/s ada/copy" {
		t.Errorf("made %+v, %s", made, forked)
	}
	if d := cmp.Diff([]string{"q1", "q2"}, s.Turns(t, "ada", "/sessions/copy", "talk")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"q1", "a note", "q2"}, s.Turns(t, "ada", "/sessions/copy", "notes")); d != "" {
		t.Error(d)
	}
	whole := sessionstest.Get[one](t, s, "ada", "POST /sessions/s/fork", `{"turn": 0}`, 201)
	if d := cmp.Diff([]string{"q1", "q2", "q3", "q4"}, s.Turns(t, "ada", "/sessions/"+whole.ID, "talk")); d != "" {
		t.Error(d)
	}
	rewound := sessionstest.Get[one](t, s, "ada", "POST /sessions/s/rewind", `{"turn": 3}`, 200)
	if rewound.Memories[0].InWindow != 4 || rewound.Memories[0].Messages != 8 {
		t.Errorf("got %+v", rewound)
	}
	for of, want := range map[string][]string{"talk": {"q1", "q2"}, "notes": {"q1", "a note", "q2"}} {
		if d := cmp.Diff(want, s.Turns(t, "ada", "/sessions/s", of)); d != "" {
			t.Errorf("%s: %s", of, d)
		}
	}
	if l := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(l.Sessions) != 3 {
		t.Errorf("listed %v", l.ids())
	}
}

func TestSessions_Transfer(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	for n := range 3 {
		s.Say(t, "ada", "s", fmt.Sprint("q", n))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(sessionstest.As("ada"), "GET", "/sessions/s/export", nil))
	lines := w.Body.String()
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/jsonl" || w.Header().Get("Content-Disposition") != "attachment; filename=session-s.jsonl" || strings.Count(lines, "\n") != 7 {
		t.Errorf("got %d, %v, %s", w.Code, w.Header(), lines)
	}
	made := sessionstest.Get[one](t, s, "bob", "POST /sessions/import?id=mine&flow=chat", lines, 201)
	if made.ID != "mine" || made.Title != "q0" || made.Flow != "chat" || len(made.Memories) != 1 || made.Memories[0].Messages != 6 {
		t.Errorf("got %+v", made)
	}
	if again := s.Must(t, "bob", "GET /sessions/mine/export?memory=talk", "", 200); again != lines {
		t.Errorf("exported again: %s", again)
	}
	if got := sessionstest.Get[one](t, s, "ada", "POST /sessions/import?flow=aside", `{"role":"user","content":"bare"}`, 201); got.Title != "bare" || got.Memories[0].ID != "other" {
		t.Errorf("got %+v", got)
	}
}

// TestSessions_Test makes a test of a session, of its owner only, where the server makes tests.
func TestSessions_Test(t *testing.T) {
	asked := ""
	s := sessionstest.New(t, memory.NewInProcess(), func(o *sessions.Options) {
		o.Test = func(_ context.Context, _ sessions.App, memory, session string, turn int64) (string, error) {
			if asked = fmt.Sprint(memory, " ", session, " ", turn); turn > 1 {
				return "", errors.New("the conversation has no turn 2")
			}
			return "tests: []\n", nil
		}
	})
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	s.Say(t, "ada", "s", "q")
	if text := s.Must(t, "ada", "GET /sessions/s/test?turn=1", "", 200); text != "tests: []\n" || !strings.HasPrefix(asked, "talk ") || !strings.HasSuffix(asked, "s 1") {
		t.Errorf("%q, asked for %s", text, asked)
	}
	asked = ""
	if s.Must(t, "bob", "GET /sessions/s/test", "", 404); asked != "" {
		t.Errorf("a session of another caller: asked for %s", asked)
	}
	if text := s.Must(t, "ada", "GET /sessions/s/test?turn=2", "", 409); !strings.Contains(text, "has no turn 2") {
		t.Error(text)
	}
	s.Must(t, "ada", "GET /sessions/s/test?turn=x", "", 400)
	none := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, none.App.Close(context.Background())) }()
	none.Say(t, "ada", "s", "q")
	if text := none.Must(t, "ada", "GET /sessions/s/test", "", 404); !strings.Contains(text, "no_tests") {
		t.Error(text)
	}
}

func TestSessions_Context(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	testkit.Must(t, s.App.Memory("talk").Append(t.Context(), "s", chat.Text(chat.System, "be brief"), chat.Text(chat.User, "q")))
	for range 2 {
		testkit.Must(t, s.App.Memory("talk").Turn(t.Context(), "s", func(turn *memory.Turn) error {
			testkit.Must(t, turn.Add(chat.Text(chat.User, "q")))
			_, err := turn.Fit(memory.Budget{Model: "small", ContextWindow: 8000})
			testkit.Must(t, turn.Add(chat.Text(chat.Assistant, "a")))
			return err
		}))
	}
	type block struct {
		Kind, Role, Text string
		Tokens, Units    int
	}
	got := sessionstest.Get[struct {
		Memory, Unit, Model string
		Used, Limit         int
		ContextWindow       int `json:"context_window"`
		Blocks              []block
		Flushes             []struct {
			Turn, From, To, Messages, Tokens int
			Reason                           string
			Time                             time.Time
		}
	}](t, s, "", "GET /sessions/s/context", "", 200)
	want := []block{{Kind: "system", Role: "system", Text: "be brief", Tokens: 6, Units: 1}, {Kind: "messages", Tokens: 15, Units: 3}}
	if d := cmp.Diff(want, got.Blocks); d != "" {
		t.Error(d)
	}
	if got.Memory != "talk" || got.Used != 4 || got.Limit != 4 || got.Unit != "messages" || got.Model != "small" || got.ContextWindow != 8000 {
		t.Errorf("got %+v", got)
	}
	if len(got.Flushes) != 1 || got.Flushes[0].From != 2 || got.Flushes[0].To != 3 || got.Flushes[0].Turn != 3 || got.Flushes[0].Reason == "" {
		t.Errorf("flushes %+v", got.Flushes)
	}
}

// TestSessions_Problems checks status, code and field of each error.
func TestSessions_Problems(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess(), func(o *sessions.Options) { o.Wait, o.Import = time.Second, 200 })
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	s.Say(t, "ada", "s", "q")
	s.Say(t, "ada", "t", "q")
	testkit.Must(t, s.Record(sessionstest.As("ada"), "chat", "ada/empty", ""))
	for _, c := range []struct {
		request, body string
		status        int
		code, field   string
	}{
		{"POST /sessions", "", 405, "method_not_allowed", ""},
		{"PUT /sessions/s", "", 405, "method_not_allowed", ""},
		{"PUT /sessions/import", "", 405, "method_not_allowed", ""},
		{"GET /sessions/s/none", "", 404, "not_found", ""},
		{"GET /sessions/unknown", "", 404, "unknown_session", ""},
		{"GET /sessions/" + strings.Repeat("x", 300), "", 404, "unknown_session", ""},
		{"GET /sessions/%00", "", 404, "unknown_session", ""},
		{"GET /sessions/..%2Fbob%2Fs", "", 404, "unknown_session", ""},
		{"PATCH /sessions/unknown", `{`, 404, "unknown_session", ""},
		{"DELETE /sessions/unknown", "", 404, "unknown_session", ""},
		{"POST /sessions/unknown/fork", `{"turn":1}`, 404, "unknown_session", ""},
		{"POST /sessions/unknown/rewind", `{"turn":1}`, 404, "unknown_session", ""},
		{"GET /sessions/unknown/messages", "", 404, "unknown_session", ""},
		{"GET /sessions/unknown/context", "", 404, "unknown_session", ""},
		{"GET /sessions/unknown/export", "", 404, "unknown_session", ""},
		{"GET /sessions?limit=0", "", 400, "invalid_parameter", "limit"},
		{"GET /sessions?limit=x", "", 400, "invalid_parameter", "limit"},
		{"GET /sessions?cursor=%21", "", 400, "invalid_parameter", "cursor"},
		{"GET /sessions?cursor=Ym9iLzAwMDAwMDAwMDAwMDAwMDAveA", "", 400, "invalid_parameter", "cursor"}, // of bob
		{"GET /sessions/s/messages?before=0", "", 400, "invalid_parameter", "before"},
		{"GET /sessions/s/messages?limit=201", "", 400, "invalid_parameter", "limit"},
		{"GET /sessions/s/messages?memory=other", "", 400, "invalid_parameter", "memory"},
		{"GET /sessions/s/context?memory=none", "", 400, "invalid_parameter", "memory"},
		{"GET /sessions/s/export?memory=none", "", 400, "invalid_parameter", "memory"},
		{"PATCH /sessions/s", "", 400, "malformed_json", ""},
		{"PATCH /sessions/s", `{"title":"x"}{}`, 400, "malformed_json", ""},
		{"PATCH /sessions/s", `{"title":5}`, 422, "invalid_value", "/title"},
		{"PATCH /sessions/s", `{"title":" "}`, 422, "invalid_value", "/title"},
		{"PATCH /sessions/s", `{"titel":"x"}`, 422, "invalid_value", "/titel"},
		{"PATCH /sessions/s", `{"title":"` + strings.Repeat("x", 201) + `"}`, 422, "invalid_value", "/title"},
		{"PATCH /sessions/s", `{"title":"` + strings.Repeat("x", 20000) + `"}`, 413, "body_too_large", ""},
		{"POST /sessions/s/fork", `{}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/fork", `{"turn":9}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/fork", `{"turn":-1}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/fork", `{"turn":1.5}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/fork", `{"turn":1,"id":""}`, 422, "invalid_value", "/id"},
		{"POST /sessions/s/fork", `{"turn":1,"id":"a\nb"}`, 422, "invalid_value", "/id"},
		{"POST /sessions/s/fork", `{"turn":1,"id":".."}`, 422, "invalid_value", "/id"},
		{"POST /sessions/s/fork", `{"turn":1,"id":"t"}`, 409, "session_exists", "/id"},
		{"POST /sessions/empty/fork", `{"turn":1}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/rewind", `{"turn":0}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/rewind", `{"turn":2}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/rewind", `{"turn":1,"id":"x"}`, 422, "invalid_value", "/id"},
		{"POST /sessions/s/rewind", `{}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/rewind", `{"keep":2}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/rewind", `{"keep":-1}`, 422, "invalid_value", "/turn"},
		{"POST /sessions/s/rewind", `{"keep":0,"turn":1}`, 422, "invalid_value", "/keep"},
		{"POST /sessions/s/fork", `{"keep":1}`, 422, "invalid_value", "/keep"},
		{"GET /sessions/s/messages/1", "", 405, "method_not_allowed", ""},
		{"PATCH /sessions/unknown/messages/1", `{`, 404, "unknown_session", ""},
		{"DELETE /sessions/unknown/messages/1", "", 404, "unknown_session", ""},
		{"PATCH /sessions/s/messages/1", `{}`, 422, "invalid_value", "/text"},
		{"PATCH /sessions/s/messages/1", `{"text":5}`, 422, "invalid_value", "/text"},
		{"PATCH /sessions/s/messages/9", `{"text":"x"}`, 404, "unknown_message", ""},
		{"PATCH /sessions/s/messages/1?memory=other", `{"text":"x"}`, 400, "invalid_parameter", "memory"},
		{"DELETE /sessions/s/messages/nothing", "", 404, "unknown_message", ""},
		{"DELETE /sessions/empty/messages/1", "", 404, "unknown_message", ""},
		{"POST /sessions/import", `{"role":"user","content":"q"}`, 400, "invalid_parameter", "flow"},
		{"POST /sessions/import?flow=none", "", 400, "invalid_parameter", "flow"},
		{"POST /sessions/import?flow=chat&memory=other", "", 400, "invalid_parameter", "memory"},
		{"POST /sessions/import?flow=chat&id=s", `{"role":"user","content":"q"}`, 409, "session_exists", "/id"},
		{"POST /sessions/import?flow=chat&id=%0A", `{"role":"user","content":"q"}`, 422, "invalid_value", "id"},
		{"POST /sessions/import?flow=chat", "\n[]", 422, "invalid_value", "line 2"},
		{"POST /sessions/import?flow=chat", `{"role":"tool","content":"q"}`, 422, "invalid_value", "line 1"},
		{"POST /sessions/import?flow=chat", `{"role":"user","content":"` + strings.Repeat("x", 300) + `"}`, 413, "body_too_large", ""},
	} {
		p := sessionstest.Get[struct {
			Status              int
			Code, Title, Detail string
			Errors              []struct{ Pointer, Detail string }
		}](t, s, "ada", c.request, c.body, c.status)
		field := ""
		if len(p.Errors) > 0 {
			field = p.Errors[0].Pointer
		}
		if p.Status != c.status || p.Code != c.code || field != c.field || p.Title == "" || p.Detail == "" {
			t.Errorf("%s: got %+v", c.request, p)
		}
	}
	turn, err := s.App.Memory("talk").Begin(t.Context(), "ada/s")
	testkit.Must(t, err)
	for _, request := range []string{"POST /sessions/s/rewind", "DELETE /sessions/s"} {
		if text := s.Must(t, "ada", request, `{"turn":1}`, 409); !strings.Contains(text, "session_busy") {
			t.Errorf("%s during a turn: %s", request, text)
		}
	}
	testkit.Must(t, turn.Abort(t.Context(), nil))
	if l := sessionstest.Get[listed](t, s, "ada", "GET /sessions", "", 200); len(l.Sessions) != 3 {
		t.Errorf("errors made sessions: %v", l.ids())
	}
	if s.Log.Len() > 0 {
		t.Errorf("logged: %s", s.Log.String())
	}
}

// TestSessions_StoreFails checks that a failure is logged, and that the response has none of its text.
func TestSessions_StoreFails(t *testing.T) {
	s := sessionstest.New(t, brokenStore{memory.NewInProcess()})
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	text := s.Must(t, "ada", "GET /sessions/s", "", 503)
	if strings.Contains(text, "secret") || !strings.Contains(text, "store_unavailable") || !strings.Contains(s.Log.String(), "secret-host") {
		t.Errorf("got %s, logged %s", text, s.Log.String())
	}
}

type brokenStore struct{ memory.Store }

func (brokenStore) Head(context.Context, memory.Key) (memory.Head, error) {
	return memory.Head{}, &memory.StoreError{Location: "secret-host", Problem: store.Unavailable, Message: "down"}
}

// TestSessions_Isolation makes random requests of two callers, one of which has a
// name that is a prefix of the other's, for the same ids. Neither sees anything of
// the other, and the responses do not depend on what the other has.
func TestSessions_Isolation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		shared := sessionstest.New(t, memory.NewInProcess())
		alone := map[string]*sessionstest.Server{}
		callers := []string{"a", "a/b", "a%2Fb"}
		for _, c := range callers {
			alone[c] = sessionstest.New(t, memory.NewInProcess())
		}
		defer func() {
			testkit.Must(t, shared.App.Close(context.Background()))
			for _, s := range alone {
				testkit.Must(t, s.App.Close(context.Background()))
			}
		}()
		ids := []string{"s", "b/s", "b%2Fs", "/s"}
		for n := range rapid.IntRange(1, 25).Draw(r, "requests") {
			caller := rapid.SampledFrom(callers).Draw(r, "caller")
			id := rapid.SampledFrom(ids).Draw(r, "id")
			path := "/sessions/" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(id)
			both := []*sessionstest.Server{shared, alone[caller]}
			if rapid.IntRange(0, 2).Draw(r, "speak") == 0 {
				for _, s := range both {
					s.Say(t, caller, id, fmt.Sprint(caller, " question ", n))
				}
				continue
			}
			request := rapid.SampledFrom([]string{"GET ", "DELETE ", "PATCH ", "POST /fork", "POST /rewind", "GET /messages", "GET /context", "GET /export", "GET list"}).Draw(r, "request")
			method, sub, _ := strings.Cut(request, " ")
			body := map[string]string{"PATCH ": `{"title":"title"}`, "POST /fork": fmt.Sprintf(`{"turn":1,"id":%q}`, rapid.SampledFrom(ids).Draw(r, "to")), "POST /rewind": `{"turn":1}`}[request]
			path += sub
			if sub == "list" {
				path = "/sessions"
			}
			status, got := shared.Call(caller, method, path, body)
			wantStatus, want := alone[caller].Call(caller, method, path, body)
			if status != wantStatus || masked(got) != masked(want) {
				r.Fatalf("%s %s of %s: %d %s\nalone: %d %s", method, path, caller, status, got, wantStatus, want)
			}
			for _, other := range callers {
				if other != caller && strings.Contains(got, `"`+other+" question") {
					r.Fatalf("%s sees %s", caller, got)
				}
			}
		}
	})
}

// TestSessions_Replicas checks that two servers over one file see what the other changes at once.
func TestSessions_Replicas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	sessionstest.Replicas(t, func() (memory.Store, error) { return sqlite.Open(path) })
}

var maskPatterns = []*regexp.Regexp{regexp.MustCompile(`2026-[-0-9T:.]*Z`), regexp.MustCompile(`[0-9a-f]{32}`)}

// masked returns a response without times and random ids.
func masked(text string) string {
	for _, pattern := range maskPatterns {
		text = pattern.ReplaceAllString(text, "…")
	}
	return text
}

// TestSessions_Running checks that no turn is undone while a run may add to it.
func TestSessions_Running(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess(), func(o *sessions.Options) {
		o.Wait = time.Millisecond
		o.Running = func(context.Context, string) (string, bool, error) { return "run_1", true, nil }
	})
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	s.Say(t, "ada", "s", "q")
	for _, request := range []string{"POST /sessions/s/rewind", "DELETE /sessions/s"} {
		if text := s.Must(t, "ada", request, `{"turn":1}`, 409); !strings.Contains(text, "session_busy") {
			t.Errorf("%s during a run: %s", request, text)
		}
	}
	s.Must(t, "ada", "POST /sessions/s/fork", `{"turn":1}`, 201)
}

// TestSessions_RewindAfterRun checks that the turn of a run that was active when the request
// arrived is undone in each memory.
func TestSessions_RewindAfterRun(t *testing.T) {
	for _, body := range []string{`{"keep":1}`, `{"turn":2}`} {
		calls := 0
		var s *sessionstest.Server
		s = sessionstest.New(t, memory.NewInProcess(), func(o *sessions.Options) {
			o.Running = func(context.Context, string) (string, bool, error) {
				if calls++; calls > 1 {
					return "", false, nil
				}
				s.Say(t, "ada", "s", "during")
				return "run_1", true, nil
			}
		})
		s.Say(t, "ada", "s", "first")
		if body == `{"turn":2}` {
			s.Say(t, "ada", "s", "second")
		}
		s.Must(t, "ada", "POST /sessions/s/rewind", body, 200)
		for _, m := range sessionstest.Get[one](t, s, "ada", "GET /sessions/s", "", 200).Memories {
			if m.InWindow != 2 {
				t.Errorf("%s: memory %s has %d messages in its window", body, m.ID, m.InWindow)
			}
		}
		testkit.Must(t, s.App.Close(context.Background()))
	}
}

// TestSessions_MediaType checks that a page of another site cannot send a body
// without the browser's permission.
func TestSessions_MediaType(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	s.Say(t, "ada", "s", "q")
	for request, types := range map[string]map[string]int{
		"POST /sessions/s/fork":             {"text/plain": 415, "application/json; charset=utf-8": 201, "": 201},
		"POST /sessions/import?flow=chat":   {"text/plain": 415, "multipart/form-data": 415, "application/x-ndjson": 422},
		"PATCH /sessions/s":                 {"application/x-www-form-urlencoded": 415, "application/json": 422},
		"POST /sessions/s/rewind?ignored=1": {"text/plain": 415},
	} {
		for kind, want := range types {
			method, path, _ := strings.Cut(request, " ")
			r := httptest.NewRequestWithContext(sessionstest.As("ada"), method, path, strings.NewReader(`{"turn":1}`))
			r.Header.Set("Content-Type", kind)
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s with %q: %d %s, want %d", request, kind, w.Code, w.Body, want)
			}
		}
	}
}
