package steps_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// unsteadyModel is a chat and an embedding model that fails with an error, unless it is nil, and counts its calls.
type unsteadyModel struct {
	fails error
	calls int
}

func (u *unsteadyModel) Info() model.Info { return model.Info{ID: "unsteady"} }

func (u *unsteadyModel) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	u.calls++
	return func(yield func(model.Event, error) bool) {
		if u.fails != nil {
			yield(model.Event{}, u.fails)
			return
		}
		yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, `{"changes": []}`)}}, nil)
	}
}

func (u *unsteadyModel) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	u.calls++
	return make([][]float32, len(texts)), model.Usage{}, u.fails
}

// A model of a context block that is down is not called for a while: each turn continues
// without waiting for it. The pauses become longer, up to a limit, and end with a call that succeeds.
func TestContextModels_PauseAfterFailure(t *testing.T) {
	for name, start := range map[string]func(*unsteadyModel) func(context.Context) error{
		"summary": func(u *unsteadyModel) func(context.Context) error {
			s := steps.ContextModel("unsteady", func() (model.Chat, error) { return u, nil })
			return func(ctx context.Context) error {
				_, err := s.Summarize(ctx, promptcontext.SummaryRequest{MaxTokens: 9})
				return err
			}
		},
		"facts": func(u *unsteadyModel) func(context.Context) error {
			x := steps.ContextModel("unsteady", func() (model.Chat, error) { return u, nil })
			return func(ctx context.Context) error {
				_, err := x.Extract(ctx, promptcontext.FactsRequest{})
				return err
			}
		},
		"retrieval": func(u *unsteadyModel) func(context.Context) error {
			e := steps.Embedder("unsteady", func() (model.Embedder, error) { return u, nil })
			return func(ctx context.Context) error {
				_, err := e.Embed(ctx, []string{"a"}, false)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkPauses(t, start) }) })
	}
}

func checkPauses(t *testing.T, start func(*unsteadyModel) func(context.Context) error) {
	down := &model.Error{Model: "unsteady", Status: 503, Message: "HTTP 503", Temporary: true}
	u := &unsteadyModel{fails: down}
	call := start(u)
	for i, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		if err := call(t.Context()); !errors.Is(err, down) || strings.Contains(err.Error(), "not called") || u.calls != i+1 {
			t.Fatalf("call %d: %v after %d calls", i+1, err, u.calls)
		}
		time.Sleep(pause - time.Millisecond)
		if err := call(t.Context()); !errors.Is(err, down) || !strings.Contains(err.Error(), "not called for "+pause.String()+" after a failure") || u.calls != i+1 {
			t.Fatalf("in pause %d: %v after %d calls", i+1, err, u.calls)
		}
		time.Sleep(time.Millisecond)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := call(canceled); err == nil || u.calls != 7 {
		t.Fatalf("canceled: %v after %d calls", err, u.calls)
	}
	u.fails = nil
	for range 2 { // the canceled call does not count, and the next one ends the pause
		testkit.Must(t, call(t.Context()))
	}
	// What a later call cannot have, such as a request that is refused, causes no pause.
	u.fails = &model.Error{Model: "unsteady", Status: 400, Message: "HTTP 400"}
	for range 2 {
		if err := call(t.Context()); err == nil || strings.Contains(err.Error(), "not called") {
			t.Errorf("got %v", err)
		}
	}
	if u.calls != 11 {
		t.Errorf("%d calls", u.calls)
	}
}
