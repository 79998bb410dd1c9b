package conversation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// tally counts what the conversations of a test did.
type tally struct {
	conversations, turns, failed, requests, starts, replicas, kills, waits, fallbacks, handoffs, issued, returned, dropped, evicted, edits int
}

// TestConversations: whatever happens between the requests of a conversation, the provider gets back all items that it
// sent, unchanged, in their order, and no other provider gets them; a request begins as the one before it, or an event
// says why it does not. -rapid.checks is the number of conversations.
func TestConversations(t *testing.T) {
	server := conformance.New(t)
	all := candidates()
	folder := testkit.FolderInRAM(t)
	sum := &tally{}
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt, tally: sum, server: server, session: "s", base: map[string]conformance.Verdict{}, doc: drawDocument(rt, all),
			secret: rapid.IntRange(0, 3).Draw(rt, "encrypted") == 0, stream: rapid.Bool().Draw(rt, "stream")}
		sum.conversations++
		w.converse(folder)
	})
	t.Logf("%+v", *sum)
	if !t.Failed() && (sum.kills == 0 || sum.waits == 0 || sum.fallbacks == 0 || sum.returned == 0 || sum.replicas == 0 || sum.handoffs == 0 || sum.dropped == 0 || sum.evicted == 0) {
		t.Error("too few for a test")
	}
}

// converse has a conversation of some turns.
func (w *world) converse(parent string) {
	w.folder = filepath.Join(parent, fmt.Sprint("c", w.tally.conversations))
	testkit.Must(w.t, os.MkdirAll(w.folder, 0o700))
	defer w.remove()
	var err error
	w.key, err = encrypted.ParseKey(strings.Repeat("0f", 32))
	testkit.Must(w.t, err)
	w.path = filepath.Join(w.folder, "app.qtype.yaml")
	testkit.Must(w.t, os.WriteFile(w.path, []byte(w.doc.yaml(w.server.Scenario("random"))), 0o600))
	w.start()
	for turn := range rapid.IntRange(2, 6).Draw(w.t, "turns") {
		if turn > 0 {
			w.between()
		}
		if rapid.IntRange(0, 3).Draw(w.t, "replica") == 0 {
			w.tally.replicas++
			w.elsewhere()
		}
		w.turn(fmt.Sprintf("Question %d: where are my orders?", turn+1), true)
	}
	w.turn("The last question: where is it?", false)
}

// turn asks a question until it is answered, in one process or several.
func (w *world) turn(question string, faults bool) {
	w.runs++
	durable := faults && rapid.Bool().Draw(w.t, "durable")
	var answered *clienttool.Suspension
	done := outcome{events: map[steps.EventKind][]string{}, count: map[steps.EventKind]int{}}
	for attempt := range 30 {
		f := fault{kind: "none"}
		if faults && attempt < 4 {
			f = drawFault(w.t)
		}
		if w.waiting = answered; durable && answered == nil {
			w.waiting = w.suspension(question)
		}
		answered = nil
		w.server.Reset()
		o := w.attempt(question, f)
		w.note("%s (durable %v, fault %s %d): %v %v", question, durable, f.kind, f.at, o.err, o.count)
		w.judge(o)
		done.add(o)
		switch {
		case w.current.ended():
			w.tally.kills++
			done.requests = nil // nobody has seen what they were
			clear(w.base)       // the turn may be stored, with what left the window
			w.restart()
		case errors.Is(o.err, memory.ErrSuspended):
			w.tally.waits++
			answered = w.answer(question)
		case o.err != nil:
			w.tally.failed++
			if f.kind == "none" && !isExpected(o.err) {
				w.fail("the turn failed: %v", o.err)
			}
			return
		default:
			w.tally.turns++
			w.compare(done)
			return
		}
	}
	w.fail("the turn has no end")
}

// answer answers the approvals that the run waits for, and lets another process continue it.
func (w *world) answer(question string) *clienttool.Suspension {
	s := w.suspension(question)
	for _, n := range slices.Sorted(maps.Keys(s.Waiting())) {
		testkit.Must(w.t, s.Answer(n, rapid.SampledFrom([]string{"yes", "no", "it is too early"}).Draw(w.t, "approval")))
	}
	switch rapid.SampledFrom([]string{"here", "here", "new process", "replica"}).Draw(w.t, "continued") {
	case "new process":
		w.restart()
	case "replica":
		w.tally.replicas++
		w.elsewhere()
	}
	return s
}

// isExpected reports whether an error is what the document, or the model, asks for.
func isExpected(err error) bool {
	for _, text := range []string{"but the limit is", "does not match type", "paused the answer"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// isJoined reports whether an answer was joined from several, without what came with its beginning.
func isJoined(o outcome) bool {
	return slices.ContainsFunc(o.events[steps.EventDropped], func(text string) bool { return strings.Contains(text, "the beginning of an answer") })
}

// mayRetry reports whether a client may send a request that a rule refuses, and then another form of it.
func mayRetry(id string) bool {
	rules := conformance.Rules().Rules
	i := slices.IndexFunc(rules, func(r conformance.Rule) bool { return r.ID == id })
	return slices.ContainsFunc(rules[i].Cases, func(c conformance.Case) bool { return c.Retries })
}

// judge examines the requests of an attempt: what came back.
func (w *world) judge(o outcome) {
	w.tally.fallbacks += o.count[steps.EventFallback]
	for _, text := range o.events[steps.EventToolResult] {
		if strings.HasPrefix(text, "The conversation was transferred") {
			w.tally.handoffs++
		}
	}
	w.tally.dropped += o.count[steps.EventDropped]
	w.tally.evicted += o.count[steps.EventTurn]
	w.joined = w.joined || isJoined(o)
	reported := o.count[steps.EventDropped] > 0 || o.err != nil // the answer that reports it may not have come
	for i, v := range o.requests {
		w.tally.requests++
		w.tally.issued += v.Issued
		w.tally.returned += v.Returned
		for _, f := range v.Violations {
			if mayRetry(f.Rule) || !f.Refused && (reported || w.joined) {
				continue
			}
			w.fail("request %d to %s %s breaks rule %s: %s at %s (refused %v)\n%s", i, v.Server, v.Model, f.Rule, f.Text, f.At, f.Refused, v.Body)
		}
		for _, f := range v.Changes {
			if f.Kind != "lost" || !reported && !f.Earlier {
				w.fail("request %d to %s %s: an item is %s: %s at %s\n%s", i, v.Server, v.Model, f.Kind, f.Item, f.At, v.Body)
			}
		}
	}
}

// compare checks that each request of a turn begins as the one before it to the same server. If the turn has reported
// that messages left, or that the conversation was repaired, it may not.
func (w *world) compare(o outcome) {
	continued := slices.ContainsFunc(o.events[steps.EventDropped], func(text string) bool { return strings.Contains(text, "the beginning of an answer") })
	if w.variables && strings.Contains(w.doc.memory, "variables") {
		clear(w.base) // they are sent before the newest question, and no longer before the one of the former turn
	}
	if continued || o.count[steps.EventTurn]+o.count[steps.EventShortened]+o.count[steps.EventRepaired] > 0 {
		clear(w.base)
		return
	}
	for i, v := range o.requests {
		to := strings.Join([]string{v.Server, v.Wire, v.Model}, " ")
		former := w.base[to]
		if !bytes.Contains(v.Body, []byte("Finds an order.")) && (o.count[steps.EventFallback] > 0 || slices.ContainsFunc(o.events[steps.EventDropped], func(text string) bool { return strings.HasPrefix(text, "the descriptions of tools") })) {
			continue // at the limit of calls, to a model that cannot be told not to call, or that failed then
		}
		if !begins(v.Prefix, former.Prefix) {
			w.fail("request %d to %s %s begins otherwise than the former one: %d of %d parts are equal\n%s\nthe former one:\n%s", i, v.Server, v.Model, common(v.Prefix, former.Prefix), len(former.Prefix), v.Body, former.Body)
		}
		if !isTemporary(v) {
			w.base[to] = v
		}
	}
}

// isTemporary reports whether the end of a request is not stored as it is: it asks for a correction or for the rest of an
// answer, or is an answer that the provider has paused.
func isTemporary(v conformance.Verdict) bool {
	var body struct{ Messages []struct{ Role string } }
	if err := json.Unmarshal(v.Body, &body); err == nil && len(body.Messages) > 0 && body.Messages[len(body.Messages)-1].Role == "assistant" {
		return true
	}
	return bytes.Contains(v.Body, []byte("Answer again, with the JSON object only")) || bytes.Contains(v.Body, []byte("Continue it exactly where it ended"))
}

// begins reports whether a list begins with another one.
func begins(list, start []string) bool {
	return len(list) >= len(start) && slices.Equal(list[:len(start)], start)
}

// common counts the equal elements at the beginning of both.
func common(a, b []string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// between is what happens between two turns.
func (w *world) between() {
	m, ctx := w.memory(), context.Background()
	switch kind := rapid.SampledFrom([]string{"nothing", "nothing", "restart", "restart", "edit", "delete", "rewind", "fork", "variable"}).Draw(w.t, "between"); kind {
	case "restart":
		w.restart()
	case "edit", "delete":
		w.revise(ctx, m, kind)
	case "rewind", "fork":
		info, err := m.Info(ctx, w.session)
		testkit.Must(w.t, err)
		if info.Turns == 0 {
			return
		}
		turn := int64(rapid.IntRange(1, int(info.Turns)).Draw(w.t, "of turn"))
		w.note("%s %d", kind, turn)
		if clear(w.base); kind == "rewind" {
			testkit.Must(w.t, m.Rewind(ctx, w.session, turn))
			return
		}
		to := w.session + "x"
		testkit.Must(w.t, m.Fork(ctx, w.session, to, turn))
		w.session = to
	case "variable":
		w.note("variable")
		w.variables = true
		clear(w.base)
		testkit.Must(w.t, m.SetVariables(ctx, w.session, memory.Variable{Name: "city", Value: []byte(`"Rome"`)}))
	}
}

// revise edits or deletes a message of the user or the model.
func (w *world) revise(ctx context.Context, m *memory.Memory, kind string) {
	var entries []store.Entry
	for e, err := range m.Messages(ctx, w.session) {
		testkit.Must(w.t, err)
		if _, err := m.Find(ctx, w.session, e.Message.ID); err != nil {
			continue // its turn failed, or it was rewound
		}
		if e.Message.Role == chat.User || e.Message.Role == chat.Assistant && !e.Message.HasCalls() {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return
	}
	e := rapid.SampledFrom(entries).Draw(w.t, "message")
	w.tally.edits++
	w.note("%s of %d: %v", kind, e.Seq, e.Message.Role)
	clear(w.base)
	if kind == "delete" {
		testkit.Must(w.t, m.Delete(ctx, w.session, e.Seq))
		return
	}
	testkit.Must(w.t, m.Edit(ctx, w.session, e.Seq, chat.Text(e.Message.Role, "This is another text.")))
}
