package memory

import (
	"context"
	"fmt"
	"iter"
)

// Window returns what the next call of a model receives, as committed. It reads
// nothing of the history beyond the window.
func (m *Memory) Window(ctx context.Context, session string) (Window, error) {
	return m.Read(ctx, session, ReadOptions{})
}

// Read is Window with other limits for this read. Only round_window supports
// them: the other policies do not keep what other limits would show.
func (m *Memory) Read(ctx context.Context, session string, o ReadOptions) (Window, error) {
	space, _ := m.views.Get().(*view)
	if space == nil {
		space = &view{}
	}
	defer func() {
		*space = view{}
		m.views.Put(space)
	}()
	if err := m.record(ctx, AuditRecord{Operation: AuditRead, Session: m.Conversation(session)}); err != nil {
		return Window{}, err
	}
	v, p, err := m.committed(ctx, session, space)
	if err != nil {
		return Window{}, err
	}
	if o.changesLimits() {
		r, ok := p.(rereader)
		if !ok {
			return Window{}, fmt.Errorf("memory %s: policy %s cannot be read with other limits", m.id, m.kind.Name)
		}
		if p, err = r.withOptions(o); err != nil {
			return Window{}, fmt.Errorf("memory %s: %w", m.id, err)
		}
	}
	if v, err = m.extendBack(ctx, m.key(session), v, p); err != nil {
		return Window{}, err
	}
	return m.window(p, v), nil
}

// ReadText is Read as plain text (Window.Text), o.Empty for an empty window.
func (m *Memory) ReadText(ctx context.Context, session string, o ReadOptions) (string, error) {
	w, err := m.Read(ctx, session, o)
	if err != nil {
		return "", err
	}
	if len(w.Entries) == 0 {
		return o.Empty, nil
	}
	return w.Text(), nil
}

// ReadJSON is Read as a JSON array of messages in OpenAI's form.
func (m *Memory) ReadJSON(ctx context.Context, session string, o ReadOptions) ([]byte, error) {
	w, err := m.Read(ctx, session, o)
	if err != nil {
		return nil, err
	}
	return w.JSON(), nil
}

// History yields all messages of the session in order, and reads them while the
// range continues. Messages that are added after it began are not part of it.
func (m *Memory) History(ctx context.Context, session string) iter.Seq2[Entry, error] {
	return m.HistoryRange(ctx, session, 1, 0)
}

// HistoryRange is History for the positions from..to; 0 for to is the end.
func (m *Memory) HistoryRange(ctx context.Context, session string, from, to int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		key := m.key(session)
		if err := m.record(ctx, AuditRecord{Operation: AuditRead, Session: key.Session}); err != nil {
			yield(Entry{}, err)
			return
		}
		head, err := m.store.Head(ctx, key)
		var gaps, rewound seqRanges
		if err == nil {
			gaps, rewound, err = head.State.ranges()
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if head.State.Last == 0 || m.expired(head.State) {
			return
		}
		if to <= 0 || to > head.State.Last {
			to = head.State.Last
		}
		for e, err := range m.store.Entries(ctx, key, Query{From: from, To: to}) {
			if err == nil {
				err = checkDecrypted(key, e)
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			out := *e
			out.Status = head.State.status(e, gaps, rewound)
			if !yield(out, nil) {
				return
			}
		}
	}
}

// Events yields the events of the session in order.
func (m *Memory) Events(ctx context.Context, session string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		builders := policyBuilders()
		for e, err := range m.store.Events(ctx, m.key(session)) {
			if reason := builders[e.Rule].reason; err == nil && e.Reason == "" && reason != nil {
				e.Reason = reason(e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Sessions lists the sessions of this memory, ordered by id.
func (m *Memory) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var out []SessionInfo
	for l, err := range m.store.Sessions(ctx, m.id) {
		if err != nil {
			return nil, err
		}
		if m.expired(l.Head.State) {
			continue
		}
		info, err := m.infoOf(l.Session, l.Head.State)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// Info describes one session; the zero SessionInfo for an unknown or expired one.
func (m *Memory) Info(ctx context.Context, session string) (SessionInfo, error) {
	head, err := m.Head(ctx, session)
	if err != nil || head.Version == 0 {
		return SessionInfo{}, err
	}
	return m.infoOf(session, head.State)
}

// infoOf describes a session without reading it: a system message that counts is left out.
func (m *Memory) infoOf(session string, s State) (SessionInfo, error) {
	p, err := m.policyOf(session)
	if err != nil {
		return SessionInfo{}, err
	}
	used, limit, unit := p.usage(s.InWindow, s.Tokens)
	if unit == InCharacters {
		used = s.Used
	}
	return SessionInfo{Session: session, Messages: s.Last, InWindow: s.InWindow, Tokens: s.Tokens,
		Used: used, Limit: limit, Unit: unit, LastSaid: s.LastSaid, Flushes: s.Flushes, Turns: s.Turns}, nil
}

// Variables returns the session's variables as committed, by name.
func (m *Memory) Variables(ctx context.Context, session string) ([]Variable, error) {
	head, err := m.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	return sortedByName(variablesOf(head.Values)), nil
}

// window returns what is sent of a view.
func (m *Memory) window(p evictionPolicy, v *view) Window {
	sel := p.selectForCall(v)
	w := m.arrange(v, sel.entries(v))
	w.Cut = sel.note
	for i := range sel.cut {
		w.Entries[i].Tokens = tokensOf(m.counter, &w.Entries[i].Message) // they are copies
	}
	messages, tokens := len(w.Entries), v.tokens
	if sel.left.size()+len(sel.cut) > 0 {
		tokens = sumTokens(w.Entries)
	}
	if p.countsSystem() {
		messages, tokens = messages+v.systemCount(), tokens+v.systemTokens()
	}
	w.Tokens = tokens
	w.Used, w.Limit, w.Unit = p.usage(messages, tokens)
	if w.Unit == InCharacters {
		w.Used = sel.used
	}
	return w
}
