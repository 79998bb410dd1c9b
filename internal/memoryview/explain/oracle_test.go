package explain

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// naive is a report that is made the simple way.
type naive struct{ Report }

func (r *naive) gap(e memory.Entry, events []memory.Event) {
	one := message{e.Seq, e.Turn, e.Message.Role, e.Tokens, 0, e.Status == store.Failed, e.Time}
	g := (&reader{Report: &r.Report, removals: &Removals{}}).gapOf(one)
	if ev, found := naiveRemoval(e, events, r.Turn); found {
		g.Kind, g.Turn, g.Reason = ev.Kind, ev.Turn, ev.Reason
	}
	r.addGap(g)
}

// naiveTurn is Turn with each message looked up in all events.
func naiveTurn(ctx context.Context, m *memory.Memory, session string, turn int64) (*Report, error) {
	events, err := collect(m.Events(ctx, session))
	if err != nil {
		return nil, err
	}
	entries, err := collect(m.History(ctx, session))
	if err != nil {
		return nil, err
	}
	var last int64
	for _, e := range entries {
		last = max(last, e.Turn)
	}
	for _, e := range events {
		if isRevision(e.Kind) {
			last = max(last, e.Turn)
		}
	}
	if turn == 0 {
		turn = last
	}
	if turn < 1 || turn > last {
		return nil, &NoTurnError{Session: session, Turn: turn, Last: last}
	}
	r := &naive{Report{Turn: turn, Sent: []Message{}, Missing: []Gap{}}}
	var sent memory.Event
	for _, e := range events {
		switch {
		case e.Turn == turn && e.Kind == store.EventSent:
			sent, r.Call, r.Messages, r.Tokens = e, e.Call, e.Messages, e.Tokens
		case e.Turn == turn && e.Kind == store.EventFailed:
			r.Failed = e.Reason
		case e.Turn == turn && isRevision(e.Kind):
			r.Change, r.Time = e.Reason, e.Time
		}
	}
	r.addAll(entries, sent, events)
	return &r.Report, nil
}

// addAll adds the entries to Sent or Missing; the texts of edited messages are
// not listed separately.
func (r *naive) addAll(entries []memory.Entry, sent memory.Event, events []memory.Event) {
	texts, edited := editsBefore(r.Turn, events)
	messages := slices.DeleteFunc(slices.Clone(entries), func(e memory.Entry) bool { return texts[e.Seq] })
	evicted := evictedBefore(sent, messages, events)
	for _, e := range messages {
		text := edited[e.Seq].By
		if text > 0 && text <= int64(len(entries)) {
			e.Tokens = entries[text-1].Tokens
		}
		r.add(e, sent, events, evicted[e.Seq].Kind != "")
		if n := len(r.Sent); n > 0 && r.Sent[n-1].Seq == e.Seq {
			r.Sent[n-1].Text, r.Sent[n-1].Pinned = text, pinnedBefore(r.Turn, events)(e.Seq)
		}
	}
}

// evictedBefore returns the events by which messages within a call's range had left the
// window before it: those between others that stayed.
func evictedBefore(sent memory.Event, entries []memory.Entry, events []memory.Event) map[int64]memory.Event {
	evicted := map[int64]memory.Event{}
	for _, e := range entries {
		if ev, found := naiveRemoval(e, events, sent.Turn-1); found && e.Status != store.Failed && e.Seq >= sent.From && e.Seq <= sent.To {
			evicted[e.Seq] = ev
		}
	}
	return evicted
}

func collect[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// add adds an entry to Sent or Missing; evicted entries left the window before.
func (r *naive) add(e memory.Entry, sent memory.Event, events []memory.Event, evicted bool) {
	if e.Turn == r.Turn {
		r.Time = e.Time
	}
	if r.Call == nil || e.Turn > r.Turn || e.Message.Role == chat.System {
		return
	}
	ofTurn := e.Turn == r.Turn
	seen := ofTurn || e.Seq <= r.Call.Seen && e.Status != store.Failed
	switch omitted := r.Call.WasOmitted()(e.Seq); {
	case omitted && ofTurn:
		r.addGap(Gap{From: e.Seq, To: e.Seq, Messages: 1, Tokens: e.Tokens, Kind: limit, Turn: r.Turn, Reason: "over the policy's limit in this call; the question of the turn stays"})
	case omitted:
		r.gap(e, events)
	case seen && !evicted && e.Seq >= sent.From && e.Seq <= sent.To && sent.From > 0:
		r.Sent = append(r.Sent, Message{Seq: e.Seq, Turn: e.Turn, Role: e.Message.Role, Tokens: e.Tokens})
	case ofTurn && e.Seq > sent.To:
		// added after the last call, such as its answer
	default:
		r.gap(e, events)
	}
}

// naiveRemoval returns the newest event by which a message left the window, up to a turn,
// and that no rewind undid.
func naiveRemoval(e memory.Entry, events []memory.Event, turn int64) (ev memory.Event, found bool) {
	for i, one := range events {
		covers := one.From <= e.Seq && e.Seq <= one.To && one.Turn <= turn && isRemoval(one.Kind)
		if !covers || (one.Kind == store.EventFailed) != (e.Status == store.Failed) {
			continue
		}
		if one.Kind == store.EventRewind {
			return one, true // for good
		}
		if !slices.ContainsFunc(events[i:], func(later memory.Event) bool { return later.Turn <= turn && undoes(later, one) }) {
			ev, found = one, true
		}
	}
	return ev, found
}
