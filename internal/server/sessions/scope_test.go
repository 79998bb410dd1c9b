package sessions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

const scopedDocument = `id: scoped
models: [{type: Model, id: writer, provider: mock}]
memories:
  - {id: talk, policy: unbounded}
  - {id: diary, policy: unbounded, scope: user}
  - {id: board, policy: unbounded, scope: app}
flows:
  - id: chat
    variables: [{id: message, type: ChatMessage}, {id: a, type: ChatMessage}, {id: b, type: ChatMessage}, {id: c, type: ChatMessage}]
    inputs: [message]
    outputs: [a, b, c]
    steps:
      - {type: LLMInference, id: one, model: writer, memory: talk, inputs: [message], outputs: [a]}
      - {type: LLMInference, id: two, model: writer, memory: diary, inputs: [message], outputs: [b]}
      - {type: LLMInference, id: three, model: writer, memory: board, inputs: [message], outputs: [c]}
`

// TestSessions_Shared checks that a request for one session changes no conversation that
// other sessions share.
func TestSessions_Shared(t *testing.T) {
	store := memory.NewInProcess()
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "scoped.qtype.yaml", scopedDocument), qtype.WithStore(store))
	testkit.Must(t, err)
	defer func() { testkit.Must(t, app.Close(context.Background())) }()
	s := sessionstest.New(t, store, func(o *sessions.Options) { o.App = func() sessions.App { return app } })
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	put := func(session string) {
		t.Helper()
		stored := access.Principal{Name: "ada"}.StoredSession(session)
		testkit.Must(t, s.Record(sessionstest.As("ada"), "chat", stored, session))
		for _, id := range []string{"talk", "diary", "board"} {
			testkit.Must(t, app.Memory(id).Append(t.Context(), stored, chat.Text(chat.User, "hi from "+session)))
		}
	}
	texts := func(memoryID, session string) string {
		t.Helper()
		var all []string
		for e, err := range app.Memory(memoryID).Messages(t.Context(), session) {
			testkit.Must(t, err)
			all = append(all, e.Message.Text())
		}
		return strings.Join(all, ", ")
	}
	put("s1")
	put("s2")
	if code, body := s.Call("ada", "GET", "/sessions/unknown", ""); code != 404 {
		t.Errorf("a session that does not exist, of a user with a shared conversation: %d %s", code, body)
	}
	if code, body := s.Call("bob", "GET", "/sessions/s1/messages?memory=board", ""); code != 404 {
		t.Errorf("the session of another user: %d %s", code, body)
	}
	if body := s.Must(t, "ada", "GET /sessions/s1/messages?memory=diary", "", 200); !strings.Contains(body, "hi from s2") {
		t.Errorf("the shared conversation is %s", body)
	}
	s.Must(t, "ada", "POST /sessions/s1/fork", `{"turn": 0, "id": "s3"}`, 201)
	s.Must(t, "ada", "PATCH /sessions/s1/messages/1?memory=board", `{"text": "changed"}`, 403)
	s.Must(t, "ada", "PATCH /sessions/s1/messages/1?memory=diary", `{"text": "changed"}`, 200)
	s.Must(t, "ada", "POST /sessions/s2/rewind", `{"turn": 1}`, 200)
	s.Must(t, "ada", "DELETE /sessions/s1", "", 204)
	for _, test := range [][3]string{
		{"talk", "ada/s1", ""}, {"talk", "ada/s2", ""}, {"talk", "ada/s3", "hi from s1"},
		{"diary", "ada/s1", "changed, hi from s2"}, {"board", "bob/x", "hi from s1, hi from s2"},
	} {
		if got := texts(test[0], test[1]); got != test[2] {
			t.Errorf("memory %s has %q in session %s, want %q", test[0], got, test[1], test[2])
		}
	}
}
