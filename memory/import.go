package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Import creates a session with the content of a transcript, in one change. The window
// follows from the events, so it is the window of the exported session. Entries without
// turns are appended instead: each user message begins a turn, and the policy applies.
// Tokens are counted again. Import returns a *SessionExistsError if the session exists,
// and a *TranscriptError for an invalid transcript: among others for a tool call without
// result, and the reverse.
func (m *Memory) Import(ctx context.Context, session string, in Transcript) error {
	in.Variables = slices.Clone(in.Variables)
	err := in.Check(m.id)
	if err == nil {
		in.Values, err = m.importedValues(in.Values)
	}
	if err != nil {
		return err
	}
	return m.create(ctx, session, func(p window.Policy, n *change.Transition) error {
		scratch := m.clone()
		scratch.reader.Store = NewInProcess()
		err := (&importing{scratch, p, scratch.key(session), in}).prepare(ctx, n)
		if err == nil && len(in.Variables) > 0 {
			n.WriteVariables(in.Variables, nil)
		}
		if err == nil {
			for name, value := range in.Values {
				n.SetValue(name, value)
			}
		}
		return err
	})
}

// importing is an import of a checked transcript, by way of a memory without other sessions.
type importing struct {
	scratch    *Memory
	policy     window.Policy
	key        store.Key // of the session
	transcript Transcript
}

// prepare makes t the transition that creates the session.
func (i *importing) prepare(ctx context.Context, t *change.Transition) error {
	switch in := i.transcript; {
	case len(in.Entries) == 0:
		i.empty(t)
		return nil
	case in.Entries[0].Turn == 0:
		return i.bare(ctx, t)
	}
	return i.whole(ctx, t)
}

// importedValues checks the values of a transcript.
func (m *Memory) importedValues(values map[string][]byte) (map[string][]byte, error) {
	portable, ok := m.context.(PortableContext)
	checked := map[string][]byte{}
	for i, name := range slices.Sorted(maps.Keys(values)) {
		err := fmt.Errorf("the memory has no context block for %s", name)
		if ok {
			checked[name], err = portable.Imported(name, values[name])
		}
		if err != nil {
			return nil, &TranscriptError{Part: "value", Index: i, Problem: err.Error()}
		}
	}
	return checked, nil
}

// empty creates a session without messages: what several sessions share, or what was set
// before the first message.
func (i *importing) empty(t *change.Transition) {
	t.Begin(i.scratch.reader.NewView(), i.scratch.moment())
	t.Next.State.LastSaid = t.Now
	t.Change.Events = i.transcript.Events
}

// bare appends the entries to a scratch memory, and copies its session.
func (i *importing) bare(ctx context.Context, t *change.Transition) error {
	in, scratch, key := i.transcript, i.scratch, i.key
	var round []chat.Message
	for at, e := range in.Entries {
		if e.Message.Role == chat.User && len(round) > 0 {
			if err := scratch.Append(ctx, key.Session, round...); err != nil {
				return err
			}
			round = nil
		}
		round = append(round, in.Entries[at].Message)
	}
	if err := scratch.Append(ctx, key.Session, round...); err != nil {
		return err
	}
	return scratch.copyTo(ctx, i.policy, t, key.Session, 0)
}

// whole puts the entries into a scratch memory, and restores the window there.
func (i *importing) whole(ctx context.Context, t *change.Transition) error {
	in, scratch := i.transcript, i.scratch
	base := scratch.reader.NewView()
	st := &base.State
	t.Begin(base, scratch.moment())
	for at, e := range in.Entries {
		entry := window.NewEntry(scratch.reader.Counter, e.Message)
		entry.Seq, entry.Turn, entry.Time = int64(at+1), e.Turn, e.Time
		if entry.Time.IsZero() {
			entry.Time = t.Now
		}
		if e.Status == store.Failed {
			entry.Status = store.Failed
		}
		t.Change.Entries = append(t.Change.Entries, entry)
		st.Last, st.Turns, st.LastSaid = entry.Seq, e.Turn, t.Now
	}
	l := &change.Timeline{Returned: true}
	for _, e := range in.Events {
		if !e.Kind.IsEarly() {
			st.Turns = max(st.Turns, e.Turn)
		}
		l.Add(e, e.Turn)
	}
	if err := scratch.reader.Store.Apply(ctx, i.key, store.Change{Next: 1, State: *st, Entries: t.Change.Entries}); err != nil {
		return err
	}
	past, err := scratch.reader.Restore(ctx, i.policy, base, l, i.key, st.Last, st.Last)
	if err != nil {
		return err
	}
	if _, problem := change.Unbalanced(past.Entries); problem != "" {
		return &TranscriptError{Part: "event", Index: -1, Problem: "of the events, some divide a tool call from its results"}
	}
	past.State.Flushes = l.Flushes
	t.Next = *past
	t.Change.Events = in.Events
	t.Settle(i.policy)
	return nil
}
