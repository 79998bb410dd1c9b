package memory_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// runes counts characters, so that sizes can be checked by eye.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

// difference is gocmp.Diff, which is slow where nothing differs.
func difference(want, got any, options ...gocmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return gocmp.Diff(want, got, options...)
}

// flushModel is the policy flush written for clarity, without regard to speed.
type flushModel struct {
	cap, flush int
	system     *chat.Message
	window     []chat.Message
	round      bool // the last flush found a user message to stop at
}

func (s *flushModel) tokens() int {
	n := 0
	for _, m := range s.window {
		n += memory.Tokens(runes{}, m)
	}
	return n
}

// add adds messages at the end; own is how many of the last ones must stay
// together with what precedes them in their round.
func (s *flushModel) add(msgs []chat.Message) {
	before := len(s.window)
	for _, m := range msgs {
		if m.Role == chat.System {
			s.system = &m
			continue
		}
		s.window = append(s.window, m)
	}
	if own := len(s.window) - before; own > 0 {
		s.fit(own)
	}
}

func (s *flushModel) fit(own int) {
	for s.tokens() > s.cap {
		newest := s.newestRound(own)
		left, gone := 0, 0
		for left < newest && (left == 0 || gone < s.flush) {
			gone += memory.Tokens(runes{}, s.window[left])
			left++
		}
		for left < newest && s.window[left].Role != chat.User {
			left++
		}
		if left == 0 {
			return
		}
		s.window = slices.Clone(s.window[left:])
		s.round = s.window[0].Role == chat.User
	}
}

// newestRound returns the number of messages before the newest round.
func (s *flushModel) newestRound(own int) int {
	from := max(len(s.window)-own, 0)
	for i := from; i >= 0; i-- {
		if s.window[i].Role == chat.User {
			return i
		}
	}
	for i := from; i < len(s.window); i++ {
		if s.window[i].Role == chat.User {
			return i
		}
	}
	for i := from; i >= 0 && s.window[i].Role == chat.Tool; i-- {
		if i > 0 && len(s.window[i-1].Calls()) > 0 {
			return i - 1
		}
	}
	return from
}

// machine makes the same calls on a memory and a flushModel.
type machine struct {
	session string
	cfg     memory.Config
	store   memory.Store
	reopen  func() memory.Store
	memory  *memory.Memory
	model   flushModel
	added   []string // the ids of the messages of turns that did not fail
	failed  int
	open    []chat.ToolCall // calls that wait for results
	n       int
}

func newMachine(t *rapid.T, store memory.Store, session string) *machine {
	limit := rapid.IntRange(1, 300).Draw(t, "token_limit")
	share := float64(rapid.IntRange(1, 100).Draw(t, "percent")) / 100
	flush := rapid.IntRange(1, 150).Draw(t, "token_flush_size")
	m := &machine{session: session, store: store, cfg: memory.Config{ID: "m", Limits: memory.Limits{"token_limit": float64(limit), "chat_history_token_ratio": float64(share), "token_flush_size": float64(flush)}, Counter: runes{},
		Live: rapid.IntRange(0, 2).Draw(t, "live")}}
	limitCap := limit * int(share*100+0.5) / 100
	m.model = flushModel{cap: limitCap, flush: min(flush, limitCap)}
	m.start(t)
	return m
}

func (m *machine) start(t *rapid.T) {
	var err error
	if m.memory, err = memory.New(m.cfg, m.store); err != nil {
		t.Fatal(err)
	}
}

// draw returns the next message of a transcript in which results follow their calls.
func (m *machine) draw(t *rapid.T) chat.Message {
	m.n++
	text := fmt.Sprintf("%d%*s", m.n, rapid.IntRange(0, 40).Draw(t, "size"), "")
	if len(m.open) > 0 {
		msg := chat.Text(chat.Tool, text)
		msg.ToolCallID = m.open[0].ID
		m.open = m.open[1:]
		return msg
	}
	roles := []chat.Role{chat.User, chat.User, chat.Assistant, chat.Assistant, chat.System, chat.Developer}
	msg := chat.Text(rapid.SampledFrom(roles).Draw(t, "role"), text)
	if msg.Role == chat.Assistant {
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			msg = msg.With(chat.ToolCall{ID: fmt.Sprint(m.n, "-", i), Name: "f", Arguments: "{}"})
		}
		m.open = msg.Calls()
	}
	return msg
}

func (m *machine) drawSome(t *rapid.T) []chat.Message {
	var msgs []chat.Message
	for range rapid.IntRange(1, 6).Draw(t, "messages") {
		msgs = append(msgs, m.draw(t))
	}
	return msgs
}

func (m *machine) recordAdded(msgs ...chat.Message) {
	for _, msg := range msgs {
		m.added = append(m.added, msg.ID)
	}
}

func (m *machine) appendOne(t *rapid.T) {
	msg := m.draw(t)
	testkit.Must(t, m.memory.Append(context.Background(), m.session, msg))
	m.model.add([]chat.Message{msg})
	m.recordAdded(msg)
}

func (m *machine) appendSome(t *rapid.T) {
	msgs := m.drawSome(t)
	testkit.Must(t, m.memory.Append(context.Background(), m.session, msgs...))
	for _, msg := range msgs {
		m.model.add([]chat.Message{msg})
	}
	m.recordAdded(msgs...)
}

// turn adds several messages in one turn; what the turn's window shows before
// the commit is what the memory holds after it.
func (m *machine) turn(t *rapid.T) {
	turn, err := m.memory.Begin(context.Background(), m.session)
	testkit.Must(t, err)
	msgs := m.drawSome(t)
	for _, msg := range msgs {
		testkit.Must(t, turn.Add(msg))
		if rapid.Bool().Draw(t, "look") {
			_, err := turn.Window()
			testkit.Must(t, err)
		}
	}
	sent, err := turn.Window()
	testkit.Must(t, err)
	testkit.Must(t, turn.Commit(context.Background()))
	m.model.add(msgs)
	m.recordAdded(msgs...)
	want, _ := chat.Balance(m.modelWindow()) // a call may be the turn's last message
	if d := difference(want, sent); d != "" {
		t.Fatalf("what the turn sent: %s", d)
	}
}

// fail aborts a turn, which must not change the window.
func (m *machine) fail(t *rapid.T) {
	before := m.window(t)
	turn, err := m.memory.Begin(context.Background(), m.session)
	testkit.Must(t, err)
	open := m.open
	msgs := m.drawSome(t)
	m.open = open
	testkit.Must(t, turn.Add(msgs...))
	testkit.Must(t, turn.Abort(context.Background(), errors.New("no\nanswer")))
	m.failed += len(msgs)
	if d := difference(before, m.window(t)); d != "" {
		t.Fatalf("a failed turn changed the window: %s", d)
	}
}

// stop stops a turn: the window keeps what was said, with a result for each call and an answer at
// the end, and nothing of a turn in which nothing was said.
func (m *machine) stop(t *rapid.T) {
	if len(m.open) > 0 {
		t.Skip("calls of an earlier turn wait for their results")
	}
	before := m.window(t)
	turn, err := m.memory.Begin(context.Background(), m.session)
	testkit.Must(t, err)
	msgs := m.drawSome(t)
	partial := rapid.SampledFrom([]string{"", " \n", "the beginning of"}).Draw(t, "partial")
	testkit.Must(t, turn.Add(msgs...))
	testkit.Must(t, turn.Stop(context.Background(), partial))
	said := slices.ContainsFunc(msgs, func(m chat.Message) bool { return m.Role == chat.Assistant })
	if written := strings.TrimSpace(partial) != ""; !said && !written {
		m.failed += len(msgs)
		if d := difference(before, m.window(t)); d != "" {
			t.Fatalf("a turn in which nothing was said changed the window: %s", d)
		}
		return
	}
	added := m.newest(t, len(m.added)+m.failed)
	if d := difference(msgs, added[:len(msgs)]); d != "" {
		t.Fatalf("the messages of the turn: %s", d)
	}
	checkBalanced(t, added)
	last := added[len(added)-1]
	switch {
	case strings.TrimSpace(partial) != "" && (last.Text() != partial || !last.Stopped):
		t.Fatalf("the answer is %+v", last)
	case last.Role == chat.Tool:
		t.Fatal("no answer follows the results")
	case len(added) > len(msgs) && !last.Stopped:
		t.Fatalf("%+v is not marked", last)
	}
	m.open = nil
	m.model.add(added)
	m.recordAdded(added...)
}

// newest returns the messages of the history after the first n.
func (m *machine) newest(t *rapid.T, n int) (all []chat.Message) {
	for e, err := range m.memory.HistoryRange(context.Background(), m.session, int64(n+1), 1<<50) {
		testkit.Must(t, err)
		all = append(all, e.Message)
	}
	return all
}

// again adds a message that the session has already.
func (m *machine) again(t *rapid.T) {
	if len(m.added) == 0 {
		t.Skip("the session is empty")
	}
	before := m.window(t)
	msg := chat.Text(chat.User, "again")
	msg.ID = rapid.SampledFrom(m.added).Draw(t, "id")
	testkit.Must(t, m.memory.Append(context.Background(), m.session, msg, msg))
	if d := difference(before, m.window(t)); d != "" {
		t.Fatalf("a duplicate message changed the window: %s", d)
	}
}

// other uses another session, so that this one may leave the cache.
func (m *machine) other(t *rapid.T) {
	testkit.Must(t, m.memory.Append(context.Background(), "other", chat.Text(chat.User, "hello")))
}

func (m *machine) restart(t *rapid.T) {
	before := m.window(t)
	if m.reopen != nil {
		m.store = m.reopen()
	}
	m.start(t)
	if d := difference(before, m.window(t), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("the window after a restart: %s", d)
	}
}

func (m *machine) window(t *rapid.T) memory.Window {
	w, err := m.memory.Window(context.Background(), m.session)
	testkit.Must(t, err)
	return w
}

func (m *machine) modelWindow() []chat.Message {
	var out []chat.Message
	if m.model.system != nil {
		out = append(out, *m.model.system)
	}
	return append(out, m.model.window...)
}

// check compares with the model, and checks what does not depend on it.
func (m *machine) check(t *rapid.T) {
	w := m.window(t)
	var got []chat.Message
	if w.System != nil {
		got = append(got, w.System.Message)
	}
	sum := 0
	for _, e := range w.Entries {
		got = append(got, e.Message)
		sum += e.Tokens
	}
	if d := difference(m.modelWindow(), got); d != "" {
		t.Fatalf("the window: %s", d)
	}
	if sum != w.Tokens || w.Limit != m.model.cap {
		t.Fatalf("%d of %d tokens, want %d of %d", w.Tokens, w.Limit, sum, m.model.cap)
	}
	m.checkShape(t, w)
	m.checkHistory(t, w)
}

// checkToolResults checks that the window has no result without its call.
func checkToolResults(t *rapid.T, w memory.Window) {
	calls := map[string]bool{}
	for _, e := range w.Entries {
		for _, c := range e.Message.Calls() {
			calls[c.ID] = true
		}
		if e.Message.Role == chat.Tool && !calls[e.Message.ToolCallID] {
			t.Fatalf("the result of %s is there without its call", e.Message.ToolCallID)
		}
	}
}

func (m *machine) checkShape(t *rapid.T, w memory.Window) {
	checkToolResults(t, w)
	if m.model.round && w.Entries[0].Message.Role != chat.User {
		t.Fatalf("after a flush the window begins with %s", w.Entries[0].Message.Role)
	}
}

// checkHistory checks that every message is there once, in order, with its status.
func (m *machine) checkHistory(t *rapid.T, w memory.Window) {
	var ids []string
	inWindow, failed, seq := 0, 0, int64(0)
	for e, err := range m.memory.History(context.Background(), m.session) {
		testkit.Must(t, err)
		if seq++; e.Seq != seq {
			t.Fatalf("entry %d follows entry %d", e.Seq, seq-1)
		}
		if e.Status == store.Failed {
			failed++
			continue
		}
		ids = append(ids, e.Message.ID)
		if e.Status == store.InWindow && e.Message.Role != chat.System {
			if e.Message.ID != w.Entries[inWindow].Message.ID {
				t.Fatalf("entry %d is marked as in the window at %d", e.Seq, inWindow)
			}
			inWindow++
		}
	}
	if !slices.Equal(ids, m.added) || failed != m.failed || inWindow != len(w.Entries) {
		t.Fatalf("the history has %d messages, %d of them in the window, and %d failed; want %d, %d, %d",
			len(ids), inWindow, failed, len(m.added), len(w.Entries), m.failed)
	}
	m.checkEvents(t)
}

// checkEvents checks that nothing was flushed without need, and the order of events.
func (m *machine) checkEvents(t *rapid.T) {
	var events []memory.Event
	for e, err := range m.memory.Events(context.Background(), m.session) {
		testkit.Must(t, err)
		events = append(events, e)
		if e.Kind == store.EventFlush && (e.Before <= e.Limit || e.Tokens <= 0 || e.Reason == "") {
			t.Fatalf("a flush without need: %+v", e)
		}
	}
	if !slices.IsSortedFunc(events, func(a, b memory.Event) int { return cmp.Compare(a.Turn, b.Turn) }) {
		t.Fatal("events are out of order")
	}
}

// replayed checks that the history, added again turn by turn, gives the same window.
func (m *machine) replayed(t *rapid.T) {
	fresh, err := memory.New(m.cfg, memory.NewInProcess())
	testkit.Must(t, err)
	turns := map[int64][]chat.Message{}
	var order []int64
	for e, err := range m.memory.History(context.Background(), m.session) {
		testkit.Must(t, err)
		if e.Status == store.Failed {
			continue
		}
		if turns[e.Turn] == nil {
			order = append(order, e.Turn)
		}
		turns[e.Turn] = append(turns[e.Turn], e.Message)
	}
	for _, n := range order {
		turn, err := fresh.Begin(context.Background(), m.session)
		testkit.Must(t, err)
		testkit.Must(t, turn.Add(turns[n]...))
		testkit.Must(t, turn.Commit(context.Background()))
	}
	was, err := fresh.Window(context.Background(), m.session)
	testkit.Must(t, err)
	now := m.window(t)
	ids := func(w memory.Window) (out []string) {
		for _, e := range w.Entries {
			out = append(out, e.Message.ID)
		}
		return out
	}
	if !slices.Equal(ids(was), ids(now)) {
		t.Fatalf("the history added again gives the window %v, not %v", ids(was), ids(now))
	}
}

func (m *machine) run(t *rapid.T, several bool) {
	actions := map[string]func(*rapid.T){"append": m.appendOne, "turn": m.turn, "fail": m.fail, "stop": m.stop, "again": m.again,
		"other": m.other, "restart": m.restart, "": m.check}
	if several {
		actions["append some"] = m.appendSome
	} else {
		actions["replay"] = m.replayed
	}
	t.Repeat(actions)
}

func TestFlush_MatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newMachine(t, memory.NewInProcess(), "s").run(t, true) })
}

func TestFlush_WindowFollowsFromHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newMachine(t, memory.NewInProcess(), "s").run(t, false) })
}

// TestFlush_MatchesModelInSQLite keeps all sessions in one file, because creating
// and opening files takes time: not every restart reopens it.
func TestFlush_MatchesModelInSQLite(t *testing.T) {
	testkit.SkipWithRace(t)
	t.Parallel()
	open := func(t rapid.TB, path string) memory.Store {
		s, err := sqlite.Open(path)
		testkit.Must(t, err)
		return s
	}
	path := filepath.Join(testkit.FolderInRAM(t), "memory.db")
	store, n := open(t, path), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := newMachine(t, store, fmt.Sprint("s", n))
		m.reopen = func() memory.Store {
			if rapid.IntRange(0, 9).Draw(t, "reopen") == 0 {
				testkit.Must(t, store.Close())
				store = open(t, path)
			}
			return store
		}
		m.run(t, true)
	})
	testkit.Must(t, store.Close())
}
