package memory

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/history"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// Window returns what the next call of a model receives, as committed. It reads
// nothing of the history beyond the window.
func (m *Memory) Window(ctx context.Context, session string) (window.Window, error) {
	return m.Read(ctx, session, window.ReadOptions{})
}

// Read is Window with other limits for this read. Only round_window supports
// them: the other policies do not keep what other limits would show.
func (m *Memory) Read(ctx context.Context, session string, o window.ReadOptions) (window.Window, error) {
	space, _ := m.views.Get().(*window.View)
	if space == nil {
		space = &window.View{}
	}
	defer m.views.Put(space) // what it refers to is kept until the pool is emptied by the collector
	if err := m.record(ctx, AuditRecord{Operation: AuditRead, Session: m.Conversation(session)}); err != nil {
		return window.Window{}, err
	}
	v, p, err := m.committed(ctx, session, space)
	if err != nil {
		return window.Window{}, err
	}
	if o.ChangesLimits() {
		r, ok := p.(window.Rereader)
		if !ok {
			return window.Window{}, fmt.Errorf("memory %s: policy %s cannot be read with other limits", m.id, m.kind.Name)
		}
		if p, err = r.WithOptions(o); err != nil {
			return window.Window{}, fmt.Errorf("memory %s: %w", m.id, err)
		}
	}
	if v, err = m.reader.ExtendBack(ctx, m.key(session), v, p); err != nil {
		return window.Window{}, err
	}
	return m.window(p, v), nil
}

// ReadText is Read as plain text (Window.Text), o.Empty for an empty window.
func (m *Memory) ReadText(ctx context.Context, session string, o window.ReadOptions) (string, error) {
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
func (m *Memory) ReadJSON(ctx context.Context, session string, o window.ReadOptions) ([]byte, error) {
	w, err := m.Read(ctx, session, o)
	if err != nil {
		return nil, err
	}
	return w.JSON(), nil
}

// History yields all messages of the session in order, and reads them while the
// range continues. Messages that are added after it began are not part of it.
func (m *Memory) History(ctx context.Context, session string) iter.Seq2[store.Entry, error] {
	return m.HistoryRange(ctx, session, 1, 0)
}

// HistoryRange is History for the positions from..to; 0 for to is the end. After the
// messages it yields a *MissingEntriesError if the store does not have all of them.
func (m *Memory) HistoryRange(ctx context.Context, session string, from, to int64) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if err := m.record(ctx, AuditRecord{Operation: AuditRead, Session: m.Conversation(session)}); err != nil {
			yield(store.Entry{}, err)
			return
		}
		m.Scan(ctx, session, from, to)(yield)
	}
}

// Scan is HistoryRange for an index of the messages: it is not an access for audit logs. What
// a program shows of them must be read with another method.
func (m *Memory) Scan(ctx context.Context, session string, from, to int64) iter.Seq2[store.Entry, error] {
	return m.scan(ctx, session, func(s *history.Scan) iter.Seq2[store.Entry, error] { return s.Range(ctx, from, to) })
}

// Messages yields the messages of the session as they are now: without rewound and
// deleted ones. An edited one has its place and its id. Messages of failed turns are part
// of it. It reads them while the range continues.
func (m *Memory) Messages(ctx context.Context, session string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if err := m.record(ctx, AuditRecord{Operation: AuditRead, Session: m.Conversation(session)}); err != nil {
			yield(store.Entry{}, err)
			return
		}
		m.scan(ctx, session, func(s *history.Scan) iter.Seq2[store.Entry, error] { return s.Conversation(ctx) })(yield)
	}
}

// scan yields what read returns for a session, nothing for an unknown or expired one.
func (m *Memory) scan(ctx context.Context, session string, read func(*history.Scan) iter.Seq2[store.Entry, error]) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		switch head, err := m.Head(ctx, session); {
		case err != nil:
			yield(store.Entry{}, err)
		case head.State.Last > 0:
			read(&history.Scan{Reader: &m.reader, Key: m.key(session), Session: session, Head: head})(yield)
		}
	}
}

// Events yields the events of the session in order.
func (m *Memory) Events(ctx context.Context, session string) iter.Seq2[store.Event, error] {
	return withReasons(m.reader.Store.Events(ctx, m.key(session)))
}

// EventsReversed yields the events of the session, newest first, and reads them while the
// range continues.
func (m *Memory) EventsReversed(ctx context.Context, session string) iter.Seq2[store.Event, error] {
	return withReasons(store.EventsReversed(ctx, m.reader.Store, m.key(session)))
}

// withReasons adds the reasons of evictions, which are not stored.
func withReasons(events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		builders := window.Builders()
		for e, err := range events {
			if reason := builders[e.Rule].Reason; err == nil && e.Reason == "" && reason != nil {
				e.Reason = reason(e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// SessionInfo summarizes a session without its messages.
type SessionInfo struct {
	Session  string     // the session's id
	Messages int64      // messages of the history, those of failed turns included
	InWindow int        // messages of the window without the system message
	Tokens   int        // their tokens
	Used     int        // how much of Limit they use
	Limit    int        // the most that Used may be, 0 for no limit
	Unit     store.Unit // unit of Used and Limit
	LastSaid time.Time  // when the newest message was added, in UTC
	Flushes  int        // how often messages were evicted
	Turns    int64      // number of the newest turn
}

// Sessions lists the sessions of this memory, ordered by id.
func (m *Memory) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var out []SessionInfo
	for l, err := range m.reader.Store.Sessions(ctx, m.id) {
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

// SessionFilter selects sessions of a memory.
type SessionFilter struct {
	store.SessionQuery
	UsedBefore time.Time // only sessions whose newest message is older; zero: all
	UsedAfter  time.Time // only sessions whose newest message is newer; zero: all
}

// listed is how many heads of sessions are in memory at a time.
const listed = 1_000

// EachSession yields the sessions that f selects, ordered by id, without expired ones. It
// reads them in pages while the range continues.
func (m *Memory) EachSession(ctx context.Context, f SessionFilter) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		left := f.Limit
		q := f.SessionQuery
		q.Limit = listed
		if left > 0 {
			q.Limit = min(left, listed)
		}
		for ; ; q.Limit = min(2*q.Limit, listed) { // the filter may leave few of a page
			page, err := store.ListSessions(ctx, m.reader.Store, m.id, q)
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			for _, l := range page {
				q.After = l.Session
				used := l.Head.State.LastSaid
				if m.expired(l.Head.State) || !f.UsedBefore.IsZero() && !used.Before(f.UsedBefore) || !used.After(f.UsedAfter) && !f.UsedAfter.IsZero() {
					continue
				}
				info, err := m.infoOf(l.Session, l.Head.State)
				if !yield(info, err) || err != nil {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(page) < q.Limit {
				return
			}
		}
	}
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
func (m *Memory) infoOf(session string, s store.State) (SessionInfo, error) {
	p, err := m.policyOf(session)
	if err != nil {
		return SessionInfo{}, err
	}
	used, limit, unit := p.Usage(s.InWindow, s.Tokens)
	if unit == store.InCharacters {
		used = s.Used
	}
	return SessionInfo{Session: session, Messages: s.Last, InWindow: s.InWindow, Tokens: s.Tokens,
		Used: used, Limit: limit, Unit: unit, LastSaid: s.LastSaid, Flushes: s.Flushes, Turns: s.Turns}, nil
}

// Variables returns the session's variables as committed, by name.
func (m *Memory) Variables(ctx context.Context, session string) ([]change.Variable, error) {
	head, err := m.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	return change.SortedByName(change.VariablesOf(head.Values)), nil
}

// window returns what is sent of a view.
func (m *Memory) window(p window.Policy, v *window.View) window.Window {
	v = window.Compacted(p, v)
	sel := window.SelectExcept(p, v, v.Pinned())
	w := m.arrange(v, sel.Entries(v))
	w.Cut = sel.Note
	for i := range sel.Cut {
		w.Entries[i].Tokens = window.TokensOf(m.reader.Counter, &w.Entries[i].Message) // they are copies
	}
	messages, tokens := len(w.Entries), v.Tokens
	if sel.Left.Size()+len(sel.Cut) > 0 {
		tokens = window.SumTokens(w.Entries)
	}
	if p.CountsSystem() {
		messages, tokens = messages+v.SystemCount(), tokens+v.SystemTokens()
	}
	w.Tokens = tokens
	w.Used, w.Limit, w.Unit = p.Usage(messages, tokens)
	if w.Unit == store.InCharacters {
		w.Used = sel.Used
	}
	return w
}
