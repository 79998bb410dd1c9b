package memory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// characterCounter counts characters.
type characterCounter struct{}

func (characterCounter) Count(text string) int { return len([]rune(text)) }

func newUnbounded(t *testing.T, store memory.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Policy: "unbounded", Counter: characterCounter{}}, store)
	testkit.Must(t, err)
	return m
}

// converse runs a turn and returns the number of messages that were sent; the
// provider counts factor times the estimate, plus 20.
func converse(t *testing.T, m *memory.Memory, factor int, b memory.Budget) (sent int) {
	t.Helper()
	testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("q", 23))))
		messages, err := turn.Fit(b)
		testkit.Must(t, err)
		turn.Calibrate(factor*30*len(messages) + 20)
		sent = len(messages)
		return turn.Add(chat.Text(chat.Assistant, strings.Repeat("a", 18)))
	}))
	return sent
}

// TestCalibrate: the window fits by the provider's count from the second turn on, also in
// another process and after a rewind, and no factor of one model applies to another.
func TestCalibrate(t *testing.T) {
	store := memory.NewInProcess()
	m := newUnbounded(t, store)
	b := memory.Budget{Model: "small", ContextWindow: 600, Answer: 100}
	for turn, want := range []int{1, 3, 5, 7, 7, 7} { // 7 messages have 2*30*7+20 = 440 of 500
		if turn == 3 {
			m = newUnbounded(t, store) // as in another process
		}
		if got := converse(t, m, 2, b); got != want {
			t.Fatalf("turn %d sent %d messages, want %d", turn+1, got, want)
		}
	}
	if got := converse(t, m, 1, memory.Budget{Model: "other", ContextWindow: 600, Answer: 100}); got != 13 {
		t.Errorf("another model got %d messages, want 13", got)
	}
	testkit.Must(t, m.Rewind(t.Context(), "s", 6))
	if got := converse(t, m, 1, b); got != 7 {
		t.Errorf("after a rewind, and a lower count: %d messages, want 7", got)
	}
	if got := converse(t, m, 1000, b); got != 7 {
		t.Errorf("sent %d messages, want 7", got)
	}
	if got := converse(t, m, 1, b); got != 3 { // (500-32)/4 = 117
		t.Errorf("after an impossible count: %d messages, want 3", got)
	}
}

// TestFitRejected leaves out whole rounds of a request that was too long, and never the
// newest one.
func TestFitRejected(t *testing.T) {
	for name, c := range map[string]struct {
		reported memory.TooLong
		budget   memory.Budget
		left     int
	}{
		"sizes":          {memory.TooLong{Requested: 600, Limit: 400}, memory.Budget{Model: "small"}, 4},
		"no sizes":       {memory.TooLong{}, memory.Budget{Model: "small"}, 4},
		"declared limit": {memory.TooLong{}, memory.Budget{Model: "small", ContextWindow: 1000}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := newUnbounded(t, memory.NewInProcess())
			for range 4 {
				testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, strings.Repeat("q", 23)), chat.Text(chat.Assistant, strings.Repeat("a", 18))))
			}
			turn, err := m.Begin(t.Context(), "s")
			testkit.Must(t, err)
			testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("q", 23))))
			all, err := turn.Fit(c.budget)
			testkit.Must(t, err)
			window, left, ok, err := turn.FitRejected(c.budget, c.reported)
			testkit.Must(t, err)
			if !ok || left != c.left || len(all)-left != len(window) || window[0].Role != chat.User {
				t.Errorf("%v, left %d of %d, first %s", ok, left, len(all), window[0].Role)
			}
			for ok {
				if _, _, ok, err = turn.FitRejected(c.budget, memory.TooLong{}); err != nil {
					var over *memory.BudgetError
					if !errors.As(err, &over) {
						t.Fatal(err)
					}
					break
				}
			}
			testkit.Must(t, turn.Abort(t.Context(), errors.New("too long")))
		})
	}
}

// TestFitRejected_WrongLimit: a context window that an error reported, and that is too small for any
// question, does not end the session: the newest round is sent, and an accepted one shows that it is wrong.
func TestFitRejected_WrongLimit(t *testing.T) {
	store := memory.NewInProcess()
	m := newUnbounded(t, store)
	b := memory.Budget{Model: "small", Answer: 5}
	for range 4 {
		testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, strings.Repeat("q", 23)), chat.Text(chat.Assistant, strings.Repeat("a", 18))))
	}
	turn := func(rejected memory.TooLong, counted, want int) {
		t.Helper()
		testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
			testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("q", 23))))
			window, err := turn.Fit(b)
			testkit.Must(t, err)
			if rejected.Limit > 0 {
				var ok bool
				if window, _, ok, err = turn.FitRejected(b, rejected); err != nil || !ok {
					t.Fatalf("%v, %v", ok, err)
				}
			}
			if len(window) != want {
				t.Errorf("sent %d messages, want %d", len(window), want)
			}
			turn.Calibrate(counted)
			return turn.Add(chat.Text(chat.Assistant, strings.Repeat("a", 18)))
		}))
	}
	turn(memory.TooLong{Limit: 12}, 10, 1)
	m = newUnbounded(t, store) // as in another process
	turn(memory.TooLong{}, 10, 1)
	turn(memory.TooLong{}, 30, 1)
	turn(memory.TooLong{}, 300, 15)
	b.ContextWindow = 20 // what the document declares holds for the newest round too
	testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("q", 23))))
		var over *memory.BudgetError
		if _, err := turn.Fit(b); !errors.As(err, &over) {
			t.Errorf("got %v", err)
		}
		return nil
	}))
}

// TestFit_Margin: messages that the provider has not counted take Margin times their
// tokens while older rounds can be left out; a newest round that fits without it is sent.
func TestFit_Margin(t *testing.T) {
	m := newUnbounded(t, memory.NewInProcess())
	for range 3 {
		testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, strings.Repeat("q", 23)), chat.Text(chat.Assistant, strings.Repeat("a", 18))))
	}
	b := memory.Budget{Model: "small", ContextWindow: 300, Margin: 2}
	if got := converse(t, m, 1, memory.Budget{Model: "exact", ContextWindow: 300}); got != 7 {
		t.Errorf("an exact count sent %d messages, want 7", got)
	}
	if got := converse(t, m, 1, b); got != 5 { // 2*30*5 = 300
		t.Errorf("before the first report: %d messages, want 5", got)
	}
	if got := converse(t, m, 1, b); got != 5 { // 30*5 + 30*2 for the last answer and the question, of 300-32
		t.Errorf("after a report: %d messages, want 5", got)
	}
	b.ContextWindow = 65
	if got := converse(t, m, 1, b); got != 1 { // 30 of 65-32
		t.Errorf("a newest round that fits: %d messages, want 1", got)
	}
}
