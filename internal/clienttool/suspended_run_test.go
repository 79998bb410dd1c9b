package clienttool_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// TestRunInput checks that only the same input continues a run, and that its requests are listed
// and answered by their numbers.
func TestRunInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wait.json")
	in := clienttool.RunInput{Document: "app.qtype.yaml", Input: "hi", Session: "c-1", User: "ada"}
	app := &spec.Application{ID: "shop", Flows: []*spec.Flow{{ID: "talk"}}}
	run, err := in.Describe(app)
	testkit.Must(t, err)
	if run.App != "shop" || run.Flow != "talk" || run.Session != "c-1" || run.User != "ada" {
		t.Errorf("got %+v", run)
	}
	s, err := clienttool.OpenSuspension(file, run, nil)
	testkit.Must(t, err)
	ctx, stop := s.Context(t.Context())
	defer stop(nil)
	call := tool.Request{Args: json.RawMessage(`{"order":7}`)}
	call.Tool.ID, call.Caller.Step = "refund", "agent"
	if _, _, err := s.Approve(ctx, call); !errors.Is(err, memory.ErrSuspended) {
		t.Fatalf("got %v", err)
	}
	var out strings.Builder
	want := "approval 1: step agent wants to call refund {\"order\":7}\nto continue, repeat the command with --answer 1=yes, or =no, or =REASON\n"
	if !s.WriteWaiting(&out) || out.String() != want {
		t.Errorf("got %q", out.String())
	}
	for _, wrong := range []string{"yes", "x=yes", "2=yes"} {
		var usage *terminal.UsageError
		if err := s.AnswerAll([]string{wrong}); !errors.As(err, &usage) {
			t.Errorf("%s: got %v", wrong, err)
		}
	}
	testkit.Must(t, s.AnswerAll([]string{"1=no"}))
	if s.WriteWaiting(&out) {
		t.Error("it waits after the answer")
	}
	in.Input = "other"
	other, err := in.Describe(app)
	testkit.Must(t, err)
	if _, err := clienttool.OpenSuspension(file, other, nil); err == nil {
		t.Error("another input continues the run")
	}
}

// TestSuspension_EqualCalls: an answer is for one call, not for a later one with the same arguments.
func TestSuspension_EqualCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wait.json")
	open := func(key string) (s *clienttool.Suspension, approved bool, err error) {
		s, err = clienttool.OpenSuspension(file, clienttool.SuspendedRun{Run: "r"}, nil)
		testkit.Must(t, err)
		ctx, stop := s.Context(t.Context())
		defer stop(nil)
		call := tool.Request{Args: json.RawMessage(`{"order":7}`)}
		call.Tool.ID, call.Caller.Step, call.Caller.Key = "refund", "agent", key
		approved, _, err = s.Approve(ctx, call)
		return s, approved, err
	}
	s, _, _ := open("first")
	testkit.Must(t, s.AnswerAll([]string{"1=yes"}))
	testkit.Must(t, s.Record(t.Context(), "first", []byte(`"paid"`))) // the next process does not ask again
	s, approved, err := open("second")
	if approved || !errors.Is(err, memory.ErrSuspended) || len(s.Waiting()) != 1 {
		t.Errorf("approved %v, %v, waiting for %v", approved, err, s.Waiting())
	}
	if _, approved, err := open("first"); !approved || err != nil {
		t.Errorf("approved %v, %v", approved, err)
	}
}
