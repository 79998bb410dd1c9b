package explain

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// message is what a report needs of a message.
type message struct {
	seq, turn int64
	role      chat.Role
	tokens    int
	text      int64 // position of its text, if it had been edited; 0 otherwise
	failed    bool
	time      time.Time
}

// reader reads what a report needs of a session. It reads neither messages that an
// eviction counted already nor what other turns sent.
type reader struct {
	*Report
	memory   *memory.Memory
	session  string
	last     int64          // position of the newest message of the session
	sent     memory.Event   // the last call of the turn
	events   []memory.Event // the events but those of other calls
	removals *Removals
	texts    map[int64]bool         // positions of the texts of edited messages
	edited   map[int64]memory.Event // edits that held before the turn, by the positions of the messages
	edits    []int64                // the keys of edited, sorted
}

// Turn reports on one turn; 0 is the newest one.
func Turn(ctx context.Context, m *memory.Memory, session string, turn int64) (*Report, error) {
	info, err := m.Info(ctx, session)
	if err != nil {
		return nil, err
	}
	if turn == 0 {
		turn = info.Turns
	}
	if turn < 1 || turn > info.Turns {
		return nil, &NoTurnError{Session: session, Turn: turn, Last: info.Turns}
	}
	r := &reader{Report: &Report{Turn: turn, Sent: []Message{}, Missing: []Gap{}}, memory: m, session: session, last: info.Messages}
	if err := r.readEvents(ctx); err != nil {
		return nil, err
	}
	end := r.last
	if turn < info.Turns {
		if end, err = r.firstOf(ctx, turn+1); err != nil {
			return nil, err
		}
		end--
	}
	first := r.sent.From
	if first == 0 {
		if first, err = r.firstOf(ctx, turn); err != nil {
			return nil, err
		}
	}
	if r.Call != nil {
		if err := r.addOlder(ctx, first-1); err != nil {
			return nil, err
		}
	}
	messages, err := r.read(ctx, m.HistoryRange, first, end)
	if err != nil {
		return nil, err
	}
	r.addNewer(messages)
	r.addPrefix()
	return r.Report, nil
}

// readEvents reads the events, and adds those of the turn to the report.
func (r *reader) readEvents(ctx context.Context) error {
	reasons := map[string]string{} // most events have one of a few reasons
	for e, err := range r.memory.Events(ctx, r.session) {
		if err != nil {
			return err
		}
		if reason, found := reasons[e.Reason]; found {
			e.Reason = reason
		} else {
			reasons[e.Reason] = e.Reason
		}
		if e.Kind != store.EventSent {
			r.events = append(r.events, e)
		}
		switch {
		case e.Turn != r.Turn:
		case e.Kind == store.EventSent:
			r.sent, r.Call, r.Messages, r.Tokens = e, e.Call, e.Messages, e.Tokens
		case e.Kind == store.EventFailed:
			r.Failed = e.Reason
		case isRevision(e.Kind):
			r.Change, r.Time = e.Reason, e.Time
		}
	}
	r.removals = NewRemovals(r.events, r.Turn, r.last)
	r.texts, r.edited = editsBefore(r.Turn, r.events)
	r.edits = slices.Sorted(maps.Keys(r.edited))
	return nil
}

// firstOf returns the position of the first message of a turn or a later one, the one after
// the newest message if there is none.
func (r *reader) firstOf(ctx context.Context, turn int64) (int64, error) {
	var failed error
	n := sort.Search(int(r.last), func(i int) bool {
		for e, err := range r.memory.Scan(ctx, r.session, int64(i+1), int64(i+1)) {
			if err != nil {
				failed = err
				return true
			}
			return e.Turn >= turn
		}
		return true // deleted meanwhile
	})
	return int64(n) + 1, failed
}

// addOlder adds the messages up to a position to Missing.
func (r *reader) addOlder(ctx context.Context, last int64) error {
	for seq := int64(1); seq <= last; {
		if ev, found := r.counted(seq, last); found {
			r.addGap(Gap{From: ev.From, To: ev.To, Messages: ev.Messages, Tokens: ev.Tokens, Kind: ev.Kind, Turn: ev.Turn, Reason: ev.Reason})
			seq = ev.To + 1
			continue
		}
		from := seq
		for seq++; seq <= last; seq++ {
			if _, found := r.counted(seq, last); found {
				break
			}
		}
		messages, err := r.read(ctx, r.memory.Scan, from, seq-1)
		if err != nil {
			return err
		}
		for _, e := range messages {
			r.add(e, false)
		}
	}
	return nil
}

// counted returns the eviction that begins at a position if it counted the messages.
func (r *reader) counted(seq, last int64) (memory.Event, bool) {
	ev, found := r.removals.evictedWhole(seq, last)
	if found && len(r.edits) > 0 { // the texts of edited messages have other sizes
		i, _ := slices.BinarySearch(r.edits, ev.From)
		found = i == len(r.edits) || r.edits[i] > ev.To
	}
	return ev, found
}

// addNewer adds the messages from the first one that was sent on.
func (r *reader) addNewer(messages []message) {
	var before *Removals // what had left before the call, if something had
	inRange := 0
	for _, e := range messages {
		if e.seq <= r.sent.To && (!e.failed || e.turn == r.Turn) && e.role != chat.System {
			inRange++
		}
	}
	if r.sent.From > 0 && inRange > r.sent.Messages {
		before = NewRemovals(r.events, r.sent.Turn-1, r.last)
	}
	omitted, shortened := none, none
	if r.Call != nil {
		omitted, shortened = r.Call.WasOmitted(), r.Call.WasShortened()
	}
	pinned := pinnedBefore(r.Turn, r.events)
	for _, e := range messages {
		evicted := false
		if omitted(e.seq) && e.turn < r.Turn { // between pinned messages
			r.addGap(r.gapOf(e))
			continue
		}
		if omitted(e.seq) {
			r.addGap(Gap{From: e.seq, To: e.seq, Messages: 1, Tokens: e.tokens, Kind: limit, Turn: r.Turn,
				Reason: "over the policy's limit in this call; the question of the turn stays"})
			continue
		}
		if before != nil && !e.failed {
			_, evicted = before.at(e.seq, false)
		}
		r.add(e, evicted)
		if n := len(r.Sent); n > 0 && r.Sent[n-1].Seq == e.seq {
			r.Sent[n-1].Shortened, r.Sent[n-1].Pinned = shortened(e.seq), pinned(e.seq)
		}
	}
}

// none reports false for each position.
func none(int64) bool { return false }

// scan is a method of a memory that yields the messages of a range.
type scan func(ctx context.Context, session string, from, to int64) iter.Seq2[memory.Entry, error]

// read reads a range of messages, without the texts of edited ones.
func (r *reader) read(ctx context.Context, scan scan, from, to int64) ([]message, error) {
	var all []message
	if from > to {
		return nil, nil
	}
	for e, err := range scan(ctx, r.session, from, to) {
		if err != nil {
			return nil, err
		}
		if r.texts[e.Seq] {
			continue
		}
		all = append(all, message{e.Seq, e.Turn, e.Message.Role, e.Tokens, r.edited[e.Seq].By, e.Status == store.Failed, e.Time})
	}
	for i, e := range all {
		if e.text < 1 || e.text > r.last {
			continue
		}
		for text, err := range r.memory.Scan(ctx, r.session, e.text, e.text) {
			if err != nil {
				return nil, err
			}
			all[i].tokens = text.Tokens
		}
	}
	return all, nil
}

// add adds a message to Sent or Missing; evicted ones left the window before.
func (r *reader) add(e message, evicted bool) {
	if e.turn == r.Turn {
		r.Time = e.time
	}
	if r.Call == nil || e.turn > r.Turn || e.role == chat.System {
		return
	}
	ofTurn := e.turn == r.Turn
	seen := ofTurn || e.seq <= r.Call.Seen && !e.failed
	switch {
	case seen && !evicted && e.seq >= r.sent.From && e.seq <= r.sent.To && r.sent.From > 0:
		r.Sent = append(r.Sent, Message{Seq: e.seq, Turn: e.turn, Role: e.role, Tokens: e.tokens, Text: e.text})
	case ofTurn && e.seq > r.sent.To:
		// added after the last call, such as its answer
	default:
		r.addGap(r.gapOf(e))
	}
}

// gapOf returns why a message was not sent.
func (r *reader) gapOf(e message) Gap {
	gap := Gap{From: e.seq, To: e.seq, Messages: 1, Tokens: e.tokens, Kind: budget, Turn: r.Turn,
		Reason: fmt.Sprintf("over the context window of %s in this call", textfmt.Thousands(r.Call.ContextWindow))}
	if r.Call.ContextWindow == 0 {
		gap.Reason = "the provider rejected the request as too long"
	}
	switch {
	case r.Call.Left > 0:
	case e.seq <= r.Call.Seen:
		gap.Kind = limit
		gap.Reason = "over the policy's limit in this call; not evicted, because the turn failed"
	default:
		gap.Reason = "added by another process during this turn"
	}
	if ev, found := r.removals.at(e.seq, e.failed); found {
		gap.Kind, gap.Turn, gap.Reason = ev.Kind, ev.Turn, ev.Reason
	}
	return gap
}

// Removals has the event by which each message of a session left the window.
type Removals struct {
	events []memory.Event
	kept   []int32 // of messages that did not fail: index of the event by position, plus 1; 0 for none
	failed []int32 // of failed messages
}

// NewRemovals reads the events of a session with last messages, up to a turn.
func NewRemovals(events []memory.Event, turn, last int64) *Removals {
	r := &Removals{events: events, kept: make([]int32, last+1), failed: make([]int32, last+1)}
	rewound := make([]bool, last+1) // for good: a later event may span them
	undone := undoneBy(events, turn)
	for i, e := range events {
		if e.Turn > turn || undone[i] || !isRemoval(e.Kind) {
			continue
		}
		of := r.kept
		if e.Kind == store.EventFailed {
			of = r.failed
		}
		for seq := max(e.From, 1); seq <= min(e.To, last); seq++ {
			if !rewound[seq] {
				of[seq] = int32(i + 1)
			}
			rewound[seq] = rewound[seq] || e.Kind == store.EventRewind
		}
	}
	return r
}

// undoneBy reports for each event whether a later rewind, up to a turn, undoes it. What was
// rewound does not return.
func undoneBy(events []memory.Event, turn int64) []bool {
	undone := make([]bool, len(events))
	for i, rewind := range events {
		if rewind.Kind != store.EventRewind || rewind.Turn > turn {
			continue
		}
		for j, e := range events[:i] {
			undone[j] = undone[j] || e.Kind != store.EventRewind && undoes(rewind, e)
		}
	}
	return undone
}

// Of returns the newest event by which a message left the window and did not return. found is false if there is none.
func (r *Removals) Of(e memory.Entry) (ev memory.Event, found bool) {
	return r.at(e.Seq, e.Status == store.Failed)
}

func (r *Removals) at(seq int64, failed bool) (ev memory.Event, found bool) {
	of := r.kept
	if failed {
		of = r.failed
	}
	if seq < 1 || seq >= int64(len(of)) || of[seq] == 0 {
		return memory.Event{}, false
	}
	return r.events[of[seq]-1], true
}

// evictedWhole returns the eviction that begins at a position if it removed all messages of
// its range, and none of them failed or left for another reason.
func (r *Removals) evictedWhole(seq, last int64) (ev memory.Event, found bool) {
	i := r.kept[seq]
	if i == 0 {
		return ev, false
	}
	ev = r.events[i-1]
	if ev.Kind != store.EventFlush || ev.From != seq || ev.To > last || int64(ev.Messages) != ev.To-ev.From+1 {
		return ev, false
	}
	other := func(one int32) bool { return one != i }
	return ev, !slices.ContainsFunc(r.kept[ev.From:ev.To+1], other)
}
