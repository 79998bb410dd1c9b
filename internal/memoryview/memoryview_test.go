package memoryview_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// testApp is an application with memories in one store.
type testApp map[string]*memory.Memory

// characters counts a token for each byte.
type characters struct{}

func (characters) Count(text string) int { return len(text) }

func newApp(t *testing.T, ids ...string) testApp {
	app, store := testApp{}, memory.NewInProcess()
	for _, id := range ids {
		m, err := memory.New(memory.Config{ID: id, Policy: spec.PolicyUnbounded, Counter: characters{}}, store)
		testkit.Must(t, err)
		app[id] = m
	}
	return app
}

func (a testApp) Memory(id string) *memory.Memory { return a[id] }

func (a testApp) StoreLocation(string) string { return "RAM" }

func (a testApp) Spec() *spec.Application {
	app := &spec.Application{ID: "shop"}
	for id := range a {
		m := &spec.Memory{}
		m.ID = id
		app.Memories = append(app.Memories, m)
	}
	return app
}

func (a testApp) add(t *testing.T, id, session, text string) {
	t.Helper()
	testkit.Must(t, a[id].Append(t.Context(), session, chat.Text(chat.User, text)))
}

func TestSelection_Conversation(t *testing.T) {
	app := newApp(t, "chats")
	ada := memory.UserSession("ada", "s1")
	app.add(t, "chats", ada, "hello")
	app.add(t, "chats", "c-1", "hello")
	for _, test := range []struct {
		s    memoryview.Selection
		want string // the stored id, or a part of the error
		ok   bool
	}{
		{memoryview.Selection{Session: "c-1"}, "c-1", true},
		{memoryview.Selection{Session: "s1", User: "ada"}, ada, true},
		{memoryview.Selection{User: "ada"}, ada, true},
		{memoryview.Selection{User: "bob"}, `no conversations of user "bob" in RAM`, false},
		{memoryview.Selection{}, "which session? pass --session; qtype memory list shows all 2", false},
		{memoryview.Selection{Session: "c-2"}, `no session "c-2"`, false},
		{memoryview.Selection{Memory: "chat"}, `no memory has the id "chat"; there are: chats`, false},
	} {
		_, session, err := test.s.Conversation(t.Context(), app)
		if test.ok && (err != nil || session != test.want) || !test.ok && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: got %q, %v; want %s", test.s, session, err, test.want)
		}
	}
	two := newApp(t, "a", "b")
	var usage *terminal.UsageError
	if _, err := new(memoryview.Selection).Open(two); !errors.As(err, &usage) || !strings.Contains(err.Error(), "which memory?") {
		t.Errorf("got %v", err)
	}
}

// TestView_Change changes a session and compares what is written.
func TestView_Change(t *testing.T) {
	app := newApp(t, "chats")
	for _, text := range []string{"one", "two", "three"} {
		app.add(t, "chats", "c-1", text)
	}
	var out strings.Builder
	v := &memoryview.View{Out: &out}
	ctx, m := t.Context(), memoryview.Of(app, "chats")
	first := memoryview.Message{Memory: m, Session: "c-1", ID: "1"}
	testkit.Must(t, v.Pin(ctx, first))
	testkit.Must(t, v.Unpin(ctx, first))
	testkit.Must(t, v.Edit(ctx, first, func(old chat.Message) (chat.Message, error) {
		old.Blocks = chat.Text(old.Role, "ONE").Blocks
		return old, nil
	}))
	testkit.Must(t, v.Delete(ctx, memoryview.Message{Memory: m, Session: "c-1", ID: "2"}))
	testkit.Must(t, v.Fork(ctx, m, "c-1", "c-2", 0))
	testkit.Must(t, v.Rewind(ctx, m, "c-2", 1))
	testkit.Must(t, v.Prune(ctx, app, app.Spec().Memories))
	testkit.Must(t, v.Clear(ctx, m, "c-1", "none"))
	testkit.Must(t, v.ClearAll(ctx, m, func(string) error { return nil }))
	want := `memory chats, session c-1: message 1 pinned
memory chats, session c-1: message 1 unpinned
memory chats, session c-1: message 1 edited
memory chats, session c-1: message 2 deleted
memory chats: session c-1 forked to c-2
memory chats: session c-2 rewound to turn 1
memory chats has no ttl: its sessions do not expire
memory chats: session c-1 deleted
memory chats: 1 session deleted
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if err := v.Clear(ctx, m, "c-1"); err == nil {
		t.Error("a session that does not exist was cleared")
	}
	if err := v.Pin(ctx, first); err == nil {
		t.Error("a message of a session that does not exist was pinned")
	}
}
