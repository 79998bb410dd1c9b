package servers_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// call is an append of a text, or a read of the history if the text is empty.
type call struct{ text string }

// historyModel is a session as the number of its texts: an append, whose output is the
// position that its text has at the end, is possible at that length, and so is a read.
var historyModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		length := state.(int)
		if input.(call).text == "" {
			return output.(int) == length, length
		}
		return output.(int) == length, length + 1
	},
}

// TestMemory_Linearizable checks that the appends and reads of 16 writers on one session,
// each with a memory as in its own process, are those of a list in some order that agrees with
// their times, while connections break.
func TestMemory_Linearizable(t *testing.T) {
	pg, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, pg.Close()) }()
	rd, err := servertest.Redis("--appendfsync", "always")
	servertest.Need(t, err)
	defer func() { testkit.Must(t, rd.Close()) }()
	for name, server := range map[string]struct {
		*servertest.Server
		open func() (memory.Store, error)
	}{
		"postgres": {pg, func() (memory.Store, error) { return postgres.Open(pg.URL() + "&pool_max_conns=1") }},
		"redis":    {rd, func() (memory.Store, error) { return redis.Open("redis://" + rd.Address() + "?pool_size=1") }},
	} {
		t.Run(name, func(t *testing.T) {
			redis.Quiet()
			const writers, each = 16, 8
			var mu sync.Mutex
			var all []porcupine.Operation
			var group sync.WaitGroup
			began := time.Now()
			progress := make(chan struct{}, writers*each)
			for w := range writers {
				store, err := server.open()
				testkit.Must(t, err)
				m := newMemory(t, store)
				group.Go(func() {
					defer func() { _ = store.Close() }()
					for i := range each {
						op := recordCall(t, m, w, i, began)
						mu.Lock()
						all = append(all, op)
						mu.Unlock()
						progress <- struct{}{}
					}
				})
			}
			for range writers * each / 3 {
				<-progress
			}
			testkit.Must(t, server.Kill())
			testkit.Must(t, server.Restart())
			group.Wait()
			store, err := server.open()
			testkit.Must(t, err)
			all = withPositions(t, all, historyTexts(t, newMemory(t, store)), time.Since(began))
			testkit.Must(t, store.Close())
			if result := porcupine.CheckOperationsTimeout(historyModel, all, time.Minute); result != porcupine.Ok {
				t.Errorf("%d calls are not linearizable: %s", len(all), result)
			}
			t.Logf("%d calls", len(all))
		})
	}
}

// newMemory returns a memory whose window is small.
func newMemory(t testing.TB, store memory.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "chat_memory", Limits: memory.Limits{"token_limit": 200, "chat_history_token_ratio": 0.5, "token_flush_size": 20}, Counter: chars4{}}, store)
	testkit.Must(t, err)
	return m
}

// recordCall appends a text, every third time it reads the history.
func recordCall(t *testing.T, m *memory.Memory, writer, i int, began time.Time) porcupine.Operation {
	op := porcupine.Operation{ClientId: writer, Call: time.Since(began).Nanoseconds()}
	if i%3 == 2 {
		op.Input, op.Output = call{}, historyTexts(t, m)
	} else {
		text := fmt.Sprintf("%d.%d", writer, i)
		err := m.Append(t.Context(), "s", chat.Text(chat.User, text))
		op.Input, op.Output = call{text: text}, err == nil
	}
	op.Return = time.Since(began).Nanoseconds()
	return op
}

// historyTexts returns the history.
func historyTexts(t *testing.T, m *memory.Memory) (all []string) {
	for e, err := range m.History(t.Context(), "s") {
		if err != nil {
			t.Error(err)
			break
		}
		all = append(all, e.Message.Text())
	}
	return all
}

// withPositions returns calls with the outputs of the model. final is the history at the end:
// each read is a part of it from its beginning, and it has each acknowledged append once. An
// append whose outcome is unknown may have happened until the end, or never.
func withPositions(t *testing.T, calls []porcupine.Operation, final []string, end time.Duration) (known []porcupine.Operation) {
	t.Helper()
	for _, op := range calls {
		if read, ok := op.Output.([]string); ok {
			if !slices.Equal(read, final[:min(len(read), len(final))]) {
				t.Errorf("a read returned %q, the history is %q", read, final)
			}
			op.Output = len(read)
			known = append(known, op)
			continue
		}
		text := op.Input.(call).text
		at := slices.Index(final, text)
		switch {
		case at < 0 && op.Output == true:
			t.Errorf("the append of %s was lost", text)
		case at >= 0 && slices.Contains(final[at+1:], text):
			t.Errorf("%s was appended twice", text)
		case at >= 0:
			if op.Output == false {
				op.Return = end.Nanoseconds()
			}
			op.Output = at
			known = append(known, op)
		}
	}
	return known
}

// TestHistoryModel checks that the model rejects appends in an order that their times exclude.
func TestHistoryModel(t *testing.T) {
	ops := []porcupine.Operation{
		{ClientId: 0, Input: call{text: "a"}, Call: 0, Output: 1, Return: 1},
		{ClientId: 1, Input: call{text: "b"}, Call: 0, Output: 0, Return: 2},
		{ClientId: 0, Input: call{}, Call: 3, Output: 2, Return: 4},
	}
	if !porcupine.CheckOperations(historyModel, ops) {
		t.Error("two appends at the same time are rejected")
	}
	for name, change := range map[string]func([]porcupine.Operation){
		"an old read":     func(ops []porcupine.Operation) { ops[2].Output = 1 },
		"appends in turn": func(ops []porcupine.Operation) { ops[1].Call = 2; ops[1].Return = 3 },
	} {
		wrong := slices.Clone(ops)
		change(wrong)
		if porcupine.CheckOperations(historyModel, wrong) {
			t.Errorf("%s is accepted", name)
		}
	}
}
