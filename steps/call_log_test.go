package steps_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/steps"
)

// mapLog is a CallLog in a map.
type mapLog struct {
	mu      sync.Mutex
	results map[string][]byte
}

func (l *mapLog) Recorded(key string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.results[key]
}

func (l *mapLog) Record(_ context.Context, key string, result []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results[key] = result
	return nil
}

// A run that is repeated with its log calls neither the model nor the tools again, and
// ends with the same row.
func TestCallLog_ReplaysCalls(t *testing.T) {
	log := &mapLog{results: map[string][]byte{}}
	svc := newShop(t)
	s := newLLM(t, func(n int, _ request) reply {
		if n == 1 {
			return reply{deltas: []string{"Let me look."}, calls: [][3]string{
				{"c1", "find_order", `{"id": "8812"}`}, {"c2", "refund_order", `{"id": 8812, "amount": 5}`}}}
		}
		return textReply("It is due ", "on Monday.")
	})
	l := declare(t, nil, "say: text", "answer: text")
	var rows []string
	for range 2 {
		w := newTestEnv(t, s, l, memory.Config{})
		r := build(t, w.agent(l, svc.tools(t), true), w.env)
		heard := &listen{}
		ctx := steps.WithEvents(steps.WithCallLog(t.Context(), log), heard.hear)
		rows = append(rows, show(l, driveCtx(ctx, t, r, l.row(map[string]any{"say": "Where is my parcel?"}))[0]))
		if got := strings.Join(heard.lines, "\n"); !strings.Contains(got, "It is due ") || strings.Count(got, "tool-result") != 2 {
			t.Errorf("events:\n%s", got)
		}
	}
	if rows[0] != rows[1] {
		t.Errorf("the repeated run returned %s, the first one %s", rows[1], rows[0])
	}
	if n := len(s.requests()); n != 2 {
		t.Errorf("the model got %d requests", n)
	}
	if n := len(svc.asked); n != 2 {
		t.Errorf("the tools got %d requests: %q", n, svc.asked)
	}
}

// Results that come while the run ends are recorded: the calls are not repeated.
func TestCallLog_EndedRun(t *testing.T) {
	svc := newShop(t)
	s := newLLM(t, func(int, request) reply {
		return reply{calls: [][3]string{{"c1", "find_order", `{"id": "8812"}`}, {"c2", "refund_order", `{"id": 8812, "amount": 5}`}}}
	})
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, s, l, memory.Config{})
	r := build(t, w.agent(l, svc.tools(t), true), w.env)
	ctx, cancel := context.WithCancelCause(t.Context())
	log := &endingLog{mapLog{results: map[string][]byte{}}, cancel}
	row := l.row(map[string]any{"say": "Pay back."})
	if driveCtx(steps.WithCallLog(ctx, log), t, r, row); row.Err == nil || len(log.results) != 2 || len(svc.asked) != 1 {
		t.Errorf("%v, %d results recorded, the tools got %q", row.Err, len(log.results), svc.asked)
	}
}

// endingLog ends the run when a result of a tool is to be recorded.
type endingLog struct {
	mapLog
	cancel context.CancelCauseFunc
}

func (l *endingLog) Record(ctx context.Context, key string, result []byte) error {
	if strings.Contains(string(result), "in transit") {
		l.cancel(memory.ErrSuspended)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.mapLog.Record(ctx, key, result)
}
