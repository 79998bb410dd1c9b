package memory_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// newMemory has a chat share of 100 letters and flushes 20 at a time.
func newMemory(t testing.TB, store memory.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "chat_memory", Limits: memory.Limits{"token_limit": 200, "chat_history_token_ratio": 0.5, "token_flush_size": 20}, Counter: runes{}}, store)
	testkit.Must(t, err)
	return m
}

func texts(msgs []chat.Message) string {
	var out []string
	for _, m := range msgs {
		out = append(out, string(m.Role)+":"+m.Text())
	}
	return strings.Join(out, " ")
}

func windowTexts(t testing.TB, m *memory.Memory, session string) string {
	t.Helper()
	w, err := m.Window(t.Context(), session)
	testkit.Must(t, err)
	var msgs []chat.Message
	if w.System != nil {
		msgs = append(msgs, w.System.Message)
	}
	for _, e := range w.Entries {
		msgs = append(msgs, e.Message)
	}
	return texts(msgs)
}

func begin(t testing.TB, m *memory.Memory) *memory.Turn {
	t.Helper()
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	return turn
}

func sent(t testing.TB, turn *memory.Turn) string {
	t.Helper()
	msgs, err := turn.Window()
	testkit.Must(t, err)
	return texts(msgs)
}

// TestTurn_Conversation is what a step does: system message, input, call, result,
// answer; and the next step of the same memory, which is handed the answer.
func TestTurn_Conversation(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	question, answer := chat.Text(chat.User, "q"), chat.Text(chat.Assistant, "a")
	turn := begin(t, m)
	turn.System("be brief")
	testkit.Must(t, turn.Add(question))
	if got := sent(t, turn); got != "system:be brief user:q" {
		t.Errorf("sent %s", got)
	}
	testkit.Must(t, turn.Add(answer, answer))
	testkit.Must(t, turn.Commit(t.Context()))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("too late")))

	label := begin(t, m)
	testkit.Must(t, label.Add(question, answer, chat.Text(chat.User, "label it")))
	if got := sent(t, label); got != "user:q assistant:a user:label it" {
		t.Errorf("the second step sent %s", got)
	}
	testkit.Must(t, label.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "system:be brief user:q assistant:a user:label it" {
		t.Errorf("the window is %s", got)
	}
	if got := windowTexts(t, m, "other"); got != "" {
		t.Errorf("another session sees %s", got)
	}
	if err := turn.Add(question); err == nil {
		t.Error("a turn that has ended takes messages")
	}
}

// TestTurn_SystemMessage checks that an added system message is first, is not counted, never
// leaves, and goes before a step's; a new one takes its place.
func TestTurn_SystemMessage(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q"), chat.Text(chat.System, strings.Repeat("x", 500))))
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	if w.Tokens != memory.Tokens(runes{}, w.Entries[0].Message) || w.System.Tokens != 3+6+500 {
		t.Errorf("%d tokens, system message %d", w.Tokens, w.System.Tokens)
	}
	turn := begin(t, m)
	turn.System("the step's")
	testkit.Must(t, turn.Add(chat.Text(chat.System, "new")))
	if got := sent(t, turn); got != "system:new user:q" {
		t.Errorf("sent %s", got)
	}
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "system:new user:q" {
		t.Errorf("the window is %s", got)
	}
	var statuses []string
	for e, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		statuses = append(statuses, e.Status.String())
	}
	if got := strings.Join(statuses, ", "); got != "in window, replaced, in window" {
		t.Errorf("the history is %s", got)
	}
}

// TestTurn_Abort checks that the history has the failed messages and the reason,
// and that a retry can add the same message.
func TestTurn_Abort(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "before")))
	question := chat.Text(chat.User, "q")
	turn := begin(t, m)
	testkit.Must(t, turn.Add(question))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("model answered\n500")))
	if got := windowTexts(t, m, "s"); got != "user:before" {
		t.Errorf("the window is %s", got)
	}
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		if e.Kind != store.EventFailed || e.Reason != "model answered 500" || e.From != 2 || e.To != 2 || e.Turn != 2 {
			t.Errorf("event %+v", e)
		}
	}
	retry := begin(t, m)
	testkit.Must(t, retry.Add(question))
	testkit.Must(t, retry.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "user:before user:q" {
		t.Errorf("after the retry the window is %s", got)
	}
}

// TestFlush_KeepsNewestRound checks that the newest round stays even if it exceeds the limit,
// during the turn and after it.
func TestFlush_KeepsNewestRound(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "old"), chat.Text(chat.Assistant, "old answer")))
	turn := begin(t, m)
	call := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "f", Arguments: "{}"})
	result := chat.Text(chat.Tool, strings.Repeat("r", 100))
	result.ToolCallID = "1"
	testkit.Must(t, turn.Add(chat.Text(chat.User, "q"), call, result))
	during := sent(t, turn)
	if want := "user:q assistant: tool:" + strings.Repeat("r", 100); during != want {
		t.Errorf("sent %s", during)
	}
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != during {
		t.Errorf("the window is %s", got)
	}
}

// TestAdd_Many: of many messages that are added at once, those whose ids the turn or the window has are left out.
func TestAdd_Many(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 50_000}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	message := func(id, text string) chat.Message {
		msg := chat.Text(chat.User, text)
		msg.ID = id
		return msg
	}
	testkit.Must(t, m.Append(t.Context(), "s", message("stored", "a")))
	turn := begin(t, m)
	testkit.Must(t, turn.Add(message("staged", "b")))
	many := []chat.Message{message("stored", "A"), message("staged", "B"), message("twice", "c"), message("twice", "C")}
	for range 14 {
		many = append(many, chat.Text(chat.User, "d")) // without ids
	}
	testkit.Must(t, turn.Add(many...))
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "user:a user:b user:c"+strings.Repeat(" user:d", 14) {
		t.Errorf("the window is %q", got)
	}
}

// TestFlush_Reason checks the text that explains a flush.
func TestFlush_Reason(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 50_000, "chat_history_token_ratio": 0.7, "token_flush_size": 3000}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	for i := range 40 {
		testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 990)))))
	}
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		if e.Kind != store.EventFlush || e.Messages != 3 || e.Tokens != 3000 || e.Before != 36000 || e.From%3 != 1 ||
			e.Reason != "36,000 tokens exceeded the chat share of 35,000 (token_limit 50,000 × chat_history_token_ratio 0.7); at least 3,000 had to leave, 3,000 left, to the start of a round" {
			t.Errorf("event %+v", e)
		}
	}
}

// TestTurns_Queue checks that turns of one session run in the order in which they
// came; one that gives up waiting leaves the others in their places.
func TestTurns_Queue(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	first := begin(t, m)
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := make(chan struct{})
		wg.Go(func() {
			turn, err := m.Begin(notify{ctx, waiting}, "s")
			if i == 2 {
				if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `session "s"`) {
					t.Errorf("giving up: %v", err)
				}
				return
			}
			testkit.Must(t, err)
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			testkit.Must(t, turn.Commit(t.Context()))
		})
		<-waiting // it is in the queue
		if i == 2 {
			cancel()
		}
	}
	if err := m.Append(t.Context(), "another", chat.Text(chat.User, "not kept waiting")); err != nil {
		t.Error(err)
	}
	testkit.Must(t, first.Commit(t.Context()))
	wg.Wait()
	if !slices.Equal(order, []int{0, 1, 3, 4}) {
		t.Errorf("order %v", order)
	}
}

// notify closes waiting when a caller begins to wait for the end of the context,
// as a turn in the queue does.
type notify struct {
	context.Context
	waiting chan struct{}
}

func (n notify) Done() <-chan struct{} {
	close(n.waiting)
	return n.Context.Done()
}

// failingStore fails a number of calls of Apply, before or after the change was made.
type failingStore struct {
	memory.Store
	before, after int
}

func (f *failingStore) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	if f.before > 0 {
		f.before--
		return &memory.StoreError{Location: "test", Problem: store.Full, Message: "no room"}
	}
	err := f.Store.Apply(ctx, key, c)
	if err == nil && f.after > 0 {
		f.after--
		return errors.New("connection lost")
	}
	return err
}

// TestCommit_LostResponse checks a change that was made although Apply returned an
// error: a second commit adds nothing, and an abort does not mark it as failed.
func TestCommit_LostResponse(t *testing.T) {
	for name, finish := range map[string]func(*memory.Turn) error{
		"commit again": func(turn *memory.Turn) error { return turn.Commit(t.Context()) },
		"abort":        func(turn *memory.Turn) error { return turn.Abort(t.Context(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t, &failingStore{Store: memory.NewInProcess(), after: 1})
			turn := begin(t, m)
			testkit.Must(t, turn.Add(chat.Text(chat.User, "q")))
			if err := turn.Commit(t.Context()); err == nil {
				t.Fatal("the error was ignored")
			}
			testkit.Must(t, finish(turn))
			n := 0
			for e, err := range m.History(t.Context(), "s") {
				testkit.Must(t, err)
				if n++; e.Status != store.InWindow {
					t.Errorf("%s is %s", e.Message.Text(), e.Status)
				}
			}
			if n != 1 || windowTexts(t, m, "s") != "user:q" {
				t.Errorf("%d messages, window %s", n, windowTexts(t, m, "s"))
			}
		})
	}
}

// TestCommit_FullStore checks that a commit that fails leaves the turn open and the window as it
// was; when there is room again, it goes through.
func TestCommit_FullStore(t *testing.T) {
	m := newMemory(t, &failingStore{Store: memory.NewInProcess(), before: 1})
	turn := begin(t, m)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "q")))
	var failure *memory.StoreError
	if err := turn.Commit(t.Context()); !errors.As(err, &failure) || failure.Problem != store.Full {
		t.Fatalf("got %v", err)
	}
	if got := windowTexts(t, m, "s"); got != "" {
		t.Errorf("the window is %s", got)
	}
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "user:q" {
		t.Errorf("the window is %s", got)
	}
}

// TestCommit_OtherWriter checks that messages of another process during the turn are kept.
func TestCommit_OtherWriter(t *testing.T) {
	store := memory.NewInProcess()
	here, there := newMemory(t, store), newMemory(t, store)
	testkit.Must(t, here.Append(t.Context(), "s", chat.Text(chat.User, "0")))
	testkit.Must(t, there.Append(t.Context(), "s", chat.Text(chat.User, "1")))
	turn := begin(t, here)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "3")))
	if got := sent(t, turn); got != "user:0 user:1 user:3" {
		t.Errorf("sent %s", got)
	}
	testkit.Must(t, there.Append(t.Context(), "s", chat.Text(chat.User, "2")))
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, here, "s"); got != "user:0 user:1 user:2 user:3" {
		t.Errorf("the window is %s", got)
	}
	testkit.Must(t, there.Clear(t.Context(), "s"))
	testkit.Must(t, here.Append(t.Context(), "s", chat.Text(chat.User, "again")))
	if got := windowTexts(t, there, "s"); got != "user:again" {
		t.Errorf("after the other cleared it the window is %s", got)
	}
}

// TestMemory_ReadsNoHistory checks that neither an append nor a read of the window reads what
// left it.
func TestMemory_ReadsNoHistory(t *testing.T) {
	watch := &watched{Store: memory.NewInProcess()}
	m := newMemory(t, watch)
	for i := range 200 {
		testkit.Must(t, m.Append(t.Context(), "s", chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: fmt.Sprint("question ", i)}}}))
	}
	if watch.read != 0 {
		t.Errorf("appends read %d entries", watch.read)
	}
	w, err := newMemory(t, watch).Window(t.Context(), "s")
	testkit.Must(t, err)
	if watch.read != len(w.Entries) {
		t.Errorf("a window of %d messages read %d", len(w.Entries), watch.read)
	}
}

// watched counts the entries that are read.
type watched struct {
	memory.Store
	read int
}

func (w *watched) Entries(ctx context.Context, key memory.Key, q store.Query) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		for e, err := range w.Store.Entries(ctx, key, q) {
			w.read++
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestTurn_InvalidMessages checks that messages which a store cannot keep are rejected.
func TestTurn_InvalidMessages(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	for want, msg := range map[string]chat.Message{
		`unknown role ""`:                                             {Blocks: []chat.Block{{Type: "text"}}},
		`unknown role "usr", did you mean "user"?`:                    {Role: "usr"},
		`blocks[0]: unknown block type "thinking"`:                    {Role: chat.User, Blocks: []chat.Block{{Type: "thinking"}}},
		`blocks[0]: a block of type text cannot hold bytes`:           {Role: chat.User, Blocks: []chat.Block{{Type: "text", Data: []byte("x")}}},
		`blocks[1]: unknown block type "imag", did you mean "image"?`: {Role: chat.User, Blocks: []chat.Block{{Type: "text"}, {Type: "imag"}}},
	} {
		err := m.Append(t.Context(), "s", chat.Text(chat.User, "good"), msg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if got := windowTexts(t, m, "s"); got != "" {
		t.Errorf("half of an append was kept: %s", got)
	}
	bad := chat.Text(chat.User, "a\xffb")
	testkit.Must(t, m.Append(t.Context(), "s", bad))
	if got := windowTexts(t, m, "s"); got != "user:a\uFFFDb" || bad.Blocks[0].Text != "a\xffb" {
		t.Errorf("the window is %q, the caller's message %q", got, bad.Blocks[0].Text)
	}
}

func TestMemory_SetAndClear(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	kept := chat.Text(chat.User, "kept")
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.System, "sys"), chat.Text(chat.User, "gone"), kept))
	testkit.Must(t, m.Set(t.Context(), "s", kept, chat.Text(chat.Assistant, "a")))
	if got := windowTexts(t, m, "s"); got != "user:kept assistant:a" {
		t.Errorf("the window is %s", got)
	}
	sessions, err := m.Sessions(t.Context())
	testkit.Must(t, err)
	if s := sessions[0]; len(sessions) != 1 || s.Session != "s" || s.Messages != 5 || s.InWindow != 2 || s.Limit != 100 || s.LastSaid.IsZero() {
		t.Errorf("sessions %+v", sessions)
	}
	testkit.Must(t, m.Set(t.Context(), "s"))
	if got := windowTexts(t, m, "s"); got != "" {
		t.Errorf("the window is %s", got)
	}
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "on")))
	if got := windowTexts(t, newMemory(t, memory.NewInProcess()), "s"); got != "" {
		t.Errorf("another store knows %s", got)
	}
	testkit.Must(t, m.Clear(t.Context(), "s"))
	for e := range m.History(t.Context(), "s") {
		t.Errorf("left over: %v", e)
	}
	if d := gocmp.Diff(memory.Window{Limit: 100, Unit: store.InTokens}, must2(m.Window(t.Context(), "s"))(t)); d != "" {
		t.Error(d)
	}
}

func must2[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		testkit.Must(t, err)
		return v
	}
}
