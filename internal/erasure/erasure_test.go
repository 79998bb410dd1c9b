package erasure_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/erasure"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

type counter struct{}

func (counter) Count(text string) int { return len(text) }

type app struct {
	spec   *spec.Application
	memory *memory.Memory
	store  memory.Store
}

func (a *app) Spec() *spec.Application      { return a.spec }
func (a *app) Memory(string) *memory.Memory { return a.memory }
func (a *app) StoreLocation(string) string  { return "in the process" }
func (a *app) State() store.Application     { return store.NewApplication(a.store, "app") }

// put creates a record with one value.
func (a *app) put(t *testing.T, kind, id, name, value string) {
	t.Helper()
	testkit.Must(t, a.State().Records(kind).Write(t.Context(), id, store.RecordChange{Next: 1, Values: map[string][]byte{name: []byte(value)}}))
}

// left returns all sessions that the store has.
func (a *app) left(t *testing.T) []string {
	t.Helper()
	var all []string
	for l, err := range a.store.Sessions(t.Context(), "chat") {
		testkit.Must(t, err)
		all = append(all, "chat "+l.Session)
	}
	for _, kind := range appstate.Kinds() {
		for h, err := range a.State().Records(kind).List(t.Context(), store.RecordQuery{}) {
			testkit.Must(t, err)
			all = append(all, kind+" "+h.ID)
		}
	}
	return all
}

// TestUser deletes a user among others with names that are similar.
func TestUser(t *testing.T) {
	a := &app{store: memory.NewInProcess(), spec: &spec.Application{Memories: []*spec.Memory{{ID: "chat"}}, Flows: []*spec.Flow{{ID: "main"}}}}
	var err error
	a.memory, err = memory.New(memory.Config{ID: "chat", Policy: "unbounded", Counter: counter{}}, a.store)
	testkit.Must(t, err)
	for _, session := range []string{"ada/1", "ada/2", "ad/1", "adam/1", "ada%2F/1", "ada"} {
		testkit.Must(t, a.memory.Append(t.Context(), session, chat.Text(chat.User, "hi")))
	}
	testkit.Must(t, a.memory.SetVariables(t.Context(), memory.UserSession("ada", ""), memory.Variable{Name: "plan", Value: []byte("1")}))
	for _, user := range []string{"ada", "bob"} {
		a.put(t, appstate.Sessions, user+"/1", "session", "{}")
		a.put(t, appstate.Newest, user+"/0000000000000000/1", "session", "{}")
		a.put(t, appstate.Inputs, appstate.OfFlow(user+"/1", "main"), "x", "1")
		a.put(t, appstate.Responses, appstate.OfFlow(user+"/1", "main"), "newest", "1")
		a.put(t, appstate.Ratings, user+"/1", "chat:1", "{}")
		a.put(t, appstate.Runs, "run-of-"+user, "request", `{"id":"r","owner":"`+user+`","session":"`+user+`/1","created":"2026-01-01T00:00:00Z"}`)
		a.put(t, appstate.Unfinished, "run-of-"+user, "x", "1")
	}
	a.put(t, appstate.Runs, "run-by-session", "request", `{"id":"r","session":"ada/3","created":"2026-01-01T00:00:00Z"}`)
	folder := t.TempDir()
	for name, text := range map[string]string{"a.csv.qtype-journal": `"ada/1"`, "b.csv.qtype-journal": `"adam/1"`, "c.csv.qtype-journal": `{"user":"ada"}`, "ada.csv": `"ada/1"`,
		"a.csv.qtype-batches": "calls", "b.csv.qtype-batches": "calls", "c.csv.qtype-batches-wal": "calls"} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}

	receipt, err := erasure.User(t.Context(), erasure.Config{App: a, User: "ada", Journals: []string{folder}})
	testkit.Must(t, err)
	want := []string{"chat ad/1", "chat ada", "chat ada%2F/1", "chat adam/1", "session bob/1", "newest-session bob/0000000000000000/1",
		"input " + appstate.OfFlow("bob/1", "main"), "response " + appstate.OfFlow("bob/1", "main"), "feedback bob/1", "run run-of-bob", "unfinished-run run-of-bob"}
	if got := a.left(t); !slices.Equal(got, want) {
		t.Errorf("the store has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var kinds []string
	for _, one := range receipt.Deleted {
		kinds = append(kinds, one.Kind+" "+one.ID)
	}
	if want := []string{"session ada/2", "session ada/1", "shared ada/", "server session ada/1", "server newest-session ada/0000000000000000/1",
		"server input " + appstate.OfFlow("ada/1", "main"), "server response " + appstate.OfFlow("ada/1", "main"), "server feedback ada/1", "run run-by-session", "run run-of-ada"}; !slices.Equal(kinds, want) {
		t.Errorf("the receipt lists %q, want %q", kinds, want)
	}
	slices.Sort(receipt.Journals)
	if len(receipt.Journals) != 2 || filepath.Base(receipt.Journals[0]) != "a.csv.qtype-journal" || filepath.Base(receipt.Journals[1]) != "c.csv.qtype-journal" {
		t.Errorf("the deleted journals are %q", receipt.Journals)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*-batches*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != "b.csv.qtype-batches" {
		t.Errorf("calls in batches are left: %q, %v", left, err)
	}
	again, err := erasure.User(t.Context(), erasure.Config{App: a, User: "ada", Journals: []string{folder}})
	if err != nil || len(again.Deleted)+len(again.Journals) != 0 {
		t.Errorf("the second erasure returns %+v, %v", again, err)
	}
	if _, err := erasure.User(t.Context(), erasure.Config{App: a}); err == nil {
		t.Error("an erasure of no user is accepted")
	}
}
