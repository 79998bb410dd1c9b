package memory_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// policyModel is a policy written for clarity: a list of messages, processed
// from its beginning at every step.
type policyModel interface {
	add(msgs []chat.Message, each bool)
	set(msgs []chat.Message)
	limit(memory.Limits)
	read() []chat.Message // what is sent
}

// window is section 3 of the memory reference.
type window struct {
	limits      memory.Limits
	systemFirst bool
	list        []chat.Message
	open        bool // the newest call left, and its results may still come
}

func (w *window) limit(l memory.Limits) { w.limits = l }

func (w *window) size(list []chat.Message) (size, limit int) {
	if most := w.limits["max_messages"]; most > 0 {
		return len(list), int(most)
	}
	for _, m := range list {
		size += memory.Tokens(runes{}, m)
	}
	return size, int(w.limits["max_tokens"])
}

// put adds a message, and reports whether it changed anything: an equal system
// message does not, so that it writes nothing and evicts nothing (section 3.3).
func (w *window) put(m chat.Message) bool {
	if m.Role != chat.System {
		if w.open && m.Role == chat.Tool {
			return true
		}
		w.open = false
		w.list = append(w.list, m)
		return true
	}
	if i := slices.IndexFunc(w.list, isSystem); i >= 0 {
		if w.list[i].Text() == m.Text() {
			return false
		}
		w.list = slices.Delete(w.list, i, i+1)
	}
	if w.systemFirst {
		w.list = slices.Insert(w.list, 0, m)
		return true
	}
	w.list = append(w.list, m)
	return true
}

func isSystem(m chat.Message) bool { return m.Role == chat.System }

// fit evicts from a list; calls reports whether the last eviction reached the end
// with a call or a result.
func (w *window) fit(list []chat.Message) (rest []chat.Message, calls bool) {
	list = slices.Clone(list)
	for {
		size, limit := w.size(list)
		i := slices.IndexFunc(list, func(m chat.Message) bool { return m.Role != chat.System })
		if size <= limit || i < 0 {
			return list, calls
		}
		call := len(list[i].Calls()) > 0
		list = slices.Delete(list, i, i+1)
		for call {
			if i < len(list) && list[i].Role == chat.System {
				i++
			}
			if i == len(list) || list[i].Role != chat.Tool {
				break
			}
			list = slices.Delete(list, i, i+1)
		}
		calls = call && !slices.ContainsFunc(list, func(m chat.Message) bool { return m.Role != chat.System })
	}
}

func (w *window) add(msgs []chat.Message, each bool) {
	any := false
	for _, m := range msgs {
		changed := w.put(m)
		if changed && each {
			w.settle()
		}
		any = any || changed
	}
	if any && !each {
		w.settle()
	}
}

func (w *window) settle() {
	rest, open := w.fit(w.list)
	w.list, w.open = rest, w.open || open
}

func (w *window) set(msgs []chat.Message) {
	w.list, w.open = nil, false
	w.add(msgs, false)
}

func (w *window) read() []chat.Message {
	rest, _ := w.fit(w.list)
	return rest
}

// conversation is section 5: everything is kept, and cut when it is read.
type conversation struct {
	limits memory.Limits
	system *chat.Message
	all    []chat.Message
}

func (c *conversation) limit(l memory.Limits) { c.limits = l }
func (c *conversation) set(msgs []chat.Message) {
	c.all, c.system = nil, nil
	c.add(msgs, false)
}

func (c *conversation) add(msgs []chat.Message, _ bool) {
	for _, m := range msgs {
		if m.Role == chat.System {
			c.system = &m
			continue
		}
		c.all = append(c.all, m)
	}
}

func (c *conversation) read() []chat.Message {
	out := recent(c.all, int(c.limits["n_rounds"]), int(c.limits["max_context"]), "Notice: Chat history truncated due to maximum context window. ")
	if c.system != nil {
		out = slices.Insert(out, 0, *c.system)
	}
	return out
}

func split(all []chat.Message, begins func(i int) bool) [][]chat.Message {
	var out [][]chat.Message
	for i, m := range all {
		if i == 0 || begins(i) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

func letters(parts ...[]chat.Message) int {
	n := 0
	for _, m := range slices.Concat(parts...) {
		n += len([]rune(m.Text()))
	}
	return n
}

func recent(all []chat.Message, most, max int, notice string) []chat.Message {
	rounds := split(all, func(i int) bool { return all[i].Role == chat.User })
	rounds = rounds[len(rounds)-min(most, len(rounds)):]
	if letters(rounds...) <= max {
		return slices.Concat(rounds...)
	}
	budget := max - len([]rune(notice))
	if budget < 1 {
		budget, notice = max, ""
	}
	for len(rounds) > 1 && letters(rounds...) > budget {
		rounds = rounds[1:]
	}
	kept := slices.Concat(rounds...)
	if letters(kept) > budget {
		units := split(kept, func(i int) bool {
			j := i
			for j > 0 && kept[j].Role == chat.Tool {
				j--
			}
			return j == i || len(kept[j].Calls()) == 0
		})
		for len(units) > 1 && letters(units...) > budget {
			units = units[1:]
		}
		kept = slices.Concat(units...)
		for i := range kept {
			if over := letters(kept) - budget; over > 0 {
				text := []rune(kept[i].Text())
				kept[i] = kept[i].WithText(string(text[min(over, len(text)):]))
			}
		}
	}
	kept[0] = kept[0].WithText(notice + kept[0].Text())
	return kept
}

// pair makes the same calls on a memory and a policyModel.
type pair struct {
	machine
	kind     spec.Policy
	expected policyModel
	limits   memory.Limits
	orders   bool // limits were changed: the history alone does not give the window
}

func (p *pair) drawLimits(t *rapid.T) memory.Limits {
	switch p.kind {
	case spec.PolicyMessageWindow:
		return memory.Limits{"max_messages": float64(rapid.IntRange(1, 12).Draw(t, "max_messages"))}
	case spec.PolicyTokenWindow:
		return memory.Limits{"max_tokens": float64(rapid.IntRange(1, 400).Draw(t, "max_tokens"))}
	}
	return memory.Limits{"n_rounds": float64(rapid.IntRange(1, 6).Draw(t, "n_rounds")), "max_context": float64(rapid.IntRange(1, 300).Draw(t, "max_context"))}
}

func newPair(t *rapid.T, kind spec.Policy, store memory.Store, session string) *pair {
	p := &pair{kind: kind}
	p.session, p.store = session, store
	p.limits = p.drawLimits(t)
	first := kind != spec.PolicyRoundWindow && rapid.Bool().Draw(t, "keep_system_first")
	p.cfg = memory.Config{ID: "m", Policy: kind, KeepSystemFirst: first, Counter: runes{}, Live: rapid.IntRange(0, 2).Draw(t, "live"),
		LimitsOf: func(string) memory.Limits { return p.limits }}
	p.expected = &window{systemFirst: first}
	if kind == spec.PolicyRoundWindow {
		p.expected = &conversation{}
	}
	p.expected.limit(p.limits)
	p.start(t)
	return p
}

// drawMore is a few messages, some of them long, some system messages equal.
func (p *pair) drawMore(t *rapid.T) []chat.Message {
	msgs := p.drawSome(t)
	for i := range msgs {
		switch {
		case msgs[i].Role == chat.System:
			text := strings.Repeat("s", rapid.IntRange(1, 3).Draw(t, "system"))
			msgs[i] = msgs[i].WithText(text)
		case rapid.IntRange(0, 15).Draw(t, "long") == 0:
			msgs[i].Blocks[0].Text += strings.Repeat("ü", rapid.IntRange(50, 400).Draw(t, "length"))
		case rapid.IntRange(0, 15).Draw(t, "empty") == 0:
			msgs[i].Blocks = slices.DeleteFunc(msgs[i].Blocks, func(b chat.Block) bool { return b.IsText() })
		}
	}
	return msgs
}

func (p *pair) append(t *rapid.T) {
	msgs := p.drawMore(t)
	testkit.Must(t, p.memory.Append(context.Background(), p.session, msgs...))
	p.expected.add(msgs, true)
}

func (p *pair) turn(t *rapid.T) {
	turn, err := p.memory.Begin(context.Background(), p.session)
	testkit.Must(t, err)
	msgs := p.drawMore(t)
	testkit.Must(t, turn.Add(msgs...))
	sent, err := turn.Window()
	var nothing *memory.EmptyWindowError
	var small *memory.TurnSizeError
	if err != nil && !errors.As(err, &nothing) && !errors.As(err, &small) {
		t.Fatal(err)
	}
	testkit.Must(t, turn.Commit(context.Background()))
	p.expected.add(msgs, false)
	want, _ := chat.Balance(p.expected.read()) // a call may be the last message
	if !keepsQuestion(want, msgs) {
		return // the turn sent its question in place of later messages: TestTurn_KeepsQuestion
	}
	if d := difference(written(want), written(sent)); d != "" && err == nil {
		t.Fatalf("what the turn sent: %s", d)
	}
}

// keepsQuestion reports whether a window has the last user messages of a turn.
func keepsQuestion(window, turn []chat.Message) bool {
	n := len(turn)
	for n > 0 && turn[n-1].Role != chat.User {
		n--
	}
	for ; n > 0 && turn[n-1].Role == chat.User; n-- {
		if !slices.ContainsFunc(window, func(m chat.Message) bool { return m.ID == turn[n-1].ID }) {
			return false
		}
	}
	return true
}

func (p *pair) set(t *rapid.T) {
	p.open = nil
	msgs := p.drawMore(t)
	testkit.Must(t, p.memory.Set(context.Background(), p.session, msgs...))
	p.expected.set(msgs)
}

func (p *pair) changeLimits(t *rapid.T) {
	p.limits = p.drawLimits(t)
	p.expected.limit(p.limits)
	p.orders = true
}

// other reads with other limits, which changes nothing.
func (p *pair) readOtherwise(t *rapid.T) {
	c, ok := p.expected.(*conversation)
	if !ok {
		t.Skip("only rounds can be read so")
	}
	drawn := p.drawLimits(t)
	rounds, characters := int(drawn["n_rounds"]), int(drawn["max_context"])
	w, err := p.memory.Read(context.Background(), p.session, memory.ReadOptions{NRounds: rounds, MaxContext: characters, Notice: "Cut. "})
	testkit.Must(t, err)
	want := recent(c.all, rounds, characters, "Cut. ")
	if c.system != nil {
		want = slices.Insert(want, 0, *c.system)
	}
	if d := difference(written(want), written(w.Messages())); d != "" {
		t.Fatalf("read with %d rounds, %d characters: %s", rounds, characters, d)
	}
}

// written is messages as a reader of a failed test wants them.
func written(msgs []chat.Message) []string {
	out := []string{}
	for _, m := range msgs {
		out = append(out, fmt.Sprintf("%s %q %d calls, answers %s", m.Role, m.Text(), len(m.Calls()), m.ToolCallID))
	}
	return out
}

func (p *pair) check(t *rapid.T) {
	w := p.window(t)
	if d := difference(written(p.expected.read()), written(w.Messages())); d != "" {
		t.Fatalf("limits %+v, the window: %s", p.limits, d)
	}
	used, limit := 0, 0
	switch c := p.expected.(type) {
	case *window:
		used, limit = c.size(w.Messages())
	case *conversation:
		used, limit = letters(w.Messages()), int(c.limits["max_context"])
		if w.System != nil {
			used -= letters([]chat.Message{w.System.Message})
		}
	}
	alone := w.System != nil && len(w.Entries) == 0
	if used != w.Used || limit != w.Limit || used > limit && !alone {
		t.Fatalf("%d of %d %s, want %d of %d", w.Used, w.Limit, w.Unit, used, limit)
	}
	checkToolResults(t, w)
	p.checkPlaces(t, w)
}

// checkPlaces: the window is a part of the history, in its order, and marked so.
func (p *pair) checkPlaces(t *rapid.T, w memory.Window) {
	at, marked := 0, 0
	for e, err := range p.memory.History(context.Background(), p.session) {
		testkit.Must(t, err)
		if at < len(w.Entries) && e.Seq == w.Entries[at].Seq && e.Message.ID == w.Entries[at].Message.ID {
			at++
		}
		if e.Status == store.InWindow && e.Message.Role != chat.System {
			marked++
		}
	}
	if at != len(w.Entries) || !p.orders && marked != at {
		t.Fatalf("of %d messages of the window %d are in the history, %d are marked so", len(w.Entries), at, marked)
	}
}

func (p *pair) run(t *rapid.T) {
	actions := map[string]func(*rapid.T){"append": p.append, "turn": p.turn, "fail": p.fail,
		"restart": p.restart, "set": p.set, "read otherwise": p.readOtherwise, "": p.check}
	if rapid.Bool().Draw(t, "limits change") {
		actions["limits"] = p.changeLimits
	}
	t.Repeat(actions)
}

// TestPolicies_MatchModel compares each policy with its model.
func TestPolicies_MatchModel(t *testing.T) {
	for _, kind := range []spec.Policy{spec.PolicyMessageWindow, spec.PolicyTokenWindow, spec.PolicyRoundWindow} {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { newPair(t, kind, memory.NewInProcess(), "s").run(t) })
		})
	}
}

// TestPolicies_MatchModelInSQLite does the same in one file that is reopened from time to time.
func TestPolicies_MatchModelInSQLite(t *testing.T) {
	testkit.SkipWithRace(t)
	t.Parallel()
	path := filepath.Join(testkit.FolderInRAM(t), "memory.db")
	open := func(t rapid.TB) memory.Store {
		s, err := sqlite.Open(path)
		testkit.Must(t, err)
		return s
	}
	store, n := open(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		kinds := []spec.Policy{spec.PolicyMessageWindow, spec.PolicyTokenWindow, spec.PolicyRoundWindow}
		p := newPair(t, rapid.SampledFrom(kinds).Draw(t, "policy"), store, fmt.Sprint("s", n))
		p.cfg.ID = string(p.kind)
		p.start(t)
		p.reopen = func() memory.Store {
			if rapid.IntRange(0, 9).Draw(t, "reopen") == 0 {
				testkit.Must(t, store.Close())
				store = open(t)
			}
			return store
		}
		p.run(t)
	})
	testkit.Must(t, store.Close())
}
