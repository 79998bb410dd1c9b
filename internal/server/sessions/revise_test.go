package sessions_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

// TestSessions_Revise checks editing and deleting messages by id and position, and
// rewinding to the last turn that stays.
func TestSessions_Revise(t *testing.T) {
	s := sessionstest.New(t, memory.NewInProcess())
	defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
	for n := 1; n <= 3; n++ {
		s.Say(t, "ada", "s", fmt.Sprint("q", n))
	}
	first := sessionstest.Get[page](t, s, "ada", "GET /sessions/s/messages", "", 200).Messages[0]
	s.Must(t, "ada", "PATCH /sessions/s/messages/"+first.ID, `{"text": "edited"}`, 200)
	s.Must(t, "bob", "PATCH /sessions/s/messages/"+first.ID, `{"text": "mine"}`, 404)
	if got := sessionstest.Get[one](t, s, "ada", "DELETE /sessions/s/messages/4", "", 200); got.Memories[0].InWindow != 3 || got.Memories[0].Turns != 5 {
		t.Errorf("got %+v", got)
	}
	s.Must(t, "ada", "DELETE /sessions/s/messages/4", "", 404)
	want := []string{"1 user edited evicted", "1 assistant re: q1 evicted", "2 user q2 in_window", "2 assistant re: q2 deleted", "3 user q3 in_window", "3 assistant re: q3 in_window"}
	all := sessionstest.Get[page](t, s, "ada", "GET /sessions/s/messages", "", 200)
	if d := cmp.Diff(want, all.texts()); d != "" {
		t.Error(d)
	}
	if got := all.Messages[0]; got.ID != first.ID || got.Seq != 1 {
		t.Errorf("got %+v", got)
	}
	if got := all.Messages[3].Reason; got != "message 4 was deleted" {
		t.Errorf("the reason is %q", got)
	}
	if d := cmp.Diff([]string{"q1", "q2", "q3"}, s.Turns(t, "ada", "/sessions/s", "notes")); d != "" {
		t.Errorf("the other memory: %s", d)
	}
	for _, c := range []struct {
		keep int
		want []string
	}{{5, []string{"edited", "q2", "q3"}}, {3, []string{"q1", "q2", "q3"}}, {1, []string{"q1"}}, {0, nil}} {
		s.Must(t, "ada", "POST /sessions/s/rewind", fmt.Sprintf(`{"keep": %d}`, c.keep), 200)
		if d := cmp.Diff(c.want, s.Turns(t, "ada", "/sessions/s", "talk")); d != "" {
			t.Errorf("keep %d: %s", c.keep, d)
		}
	}
}
