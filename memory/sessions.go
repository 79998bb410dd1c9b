package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Append adds messages, each of them as an append in itself: the window is
// fitted to the policy after every one. All are stored, or none. It waits while
// a turn of the session is active.
func (m *Memory) Append(ctx context.Context, session string, msgs ...chat.Message) error {
	return m.AppendOnce(ctx, session, "", msgs...)
}

// cached is the session as this process knows it. Where another process wrote
// since, the store answers with a conflict, and only then is anything read.
func (m *Memory) cached(ctx context.Context, key Key) (*view, error) {
	if v := m.live.get(key); v != nil {
		return v, nil
	}
	return m.load(ctx, key)
}

// drop ends a turn of which nothing is to be kept.
func (t *Turn) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.end()
	}
}

// Set replaces the whole window, system message included, by msgs and fits it
// once. What the window held stays in the history, to which msgs are added;
// those that the session holds already get ids of their own.
func (m *Memory) Set(ctx context.Context, session string, msgs ...chat.Message) error {
	if err := checkMessage(msgs); err != nil {
		return err
	}
	t, err := m.open(ctx, session, m.reload)
	if err != nil {
		return err
	}
	defer t.drop()
	held, err := m.knownIDs(ctx, t.key, ids(msgs))
	if err != nil {
		return err
	}
	if held == nil {
		held = map[string]bool{}
	}
	entries := make([]*Entry, len(msgs))
	for i, msg := range msgs {
		if held[msg.ID] {
			msg.ID = ""
		}
		entries[i] = m.entry(msg)
		held[entries[i].Message.ID] = true
	}
	return m.applyWithRetry(ctx, t.key, t.base, func(base *view) (*transition, error) {
		return m.replaceWindow(t.policy, base, entries), nil
	})
}

// Clear removes everything that the session has: window, history and context. It waits
// for the session's turn.
func (m *Memory) Clear(ctx context.Context, session string) error {
	if err := m.lanes.lock(ctx, session); err != nil {
		return waitTurn(m, session, err)
	}
	defer m.lanes.unlock(session)
	m.live.drop(m.key(session))
	if err := m.deleteVectors(ctx, m.key(session)); err != nil {
		return err
	}
	return m.store.Delete(ctx, m.key(session))
}

// Window is what the next call is sent, as committed by now. It reads nothing
// of the history beyond the window.
func (m *Memory) Window(ctx context.Context, session string) (Window, error) {
	return m.read(ctx, session, ReadOptions{})
}

// Read is Window with other limits for this one read. Only a round_window can be
// read so; the others keep nothing at hand that other limits could bring back.
func (m *Memory) Read(ctx context.Context, session string, how ReadOptions) (Window, error) {
	if how == (ReadOptions{Empty: how.Empty}) {
		return m.Window(ctx, session)
	}
	return m.read(ctx, session, how)
}

func (m *Memory) read(ctx context.Context, session string, how ReadOptions) (Window, error) {
	p, err := m.policyOf(session)
	if err != nil {
		return Window{}, err
	}
	if how != (ReadOptions{Empty: how.Empty}) {
		r, ok := p.(*rounds)
		if !ok {
			return Window{}, fmt.Errorf("memory %s: only policy round_window can be read with other limits, not %s", m.id, m.kind)
		}
		if p, err = how.apply(r); err != nil {
			return Window{}, fmt.Errorf("memory %s: %w", m.id, err)
		}
	}
	v, err := m.reload(ctx, m.key(session))
	if err != nil {
		return Window{}, err
	}
	if m.expired(v.state) {
		v = m.emptyView()
	}
	if v, err = m.extendBack(ctx, m.key(session), v, p); err != nil {
		return Window{}, err
	}
	return m.buildWindow(p, v), nil
}

// ReadText is Read as plain text (Window.Text), how.Empty where nothing was said.
func (m *Memory) ReadText(ctx context.Context, session string, how ReadOptions) (string, error) {
	w, err := m.Read(ctx, session, how)
	if err != nil {
		return "", err
	}
	if len(w.Entries) == 0 {
		return how.Empty, nil
	}
	return w.Text(), nil
}

// ReadJSON is Read as a JSON array of messages in OpenAI's form.
func (m *Memory) ReadJSON(ctx context.Context, session string, how ReadOptions) ([]byte, error) {
	w, err := m.Read(ctx, session, how)
	if err != nil {
		return nil, err
	}
	return w.JSON(), nil
}

// buildWindow is what a policy sends of a view.
func (m *Memory) buildWindow(p evictionPolicy, v *view) Window {
	sel := p.selectForCall(v)
	entries := sel.entries(v)
	for _, e := range entries[:len(sel.cut)] {
		e.Tokens = Tokens(m.counter, e.Message) // they are copies with less text
	}
	w := m.window(v, entries)
	w.Cut = sel.note
	w.Tokens = v.tokens
	if sel.from > 0 || len(sel.cut) > 0 {
		w.Tokens = 0
		for _, e := range entries {
			w.Tokens += e.Tokens
		}
	}
	messages := len(entries)
	if p.countsSystem() {
		messages += v.systems()
		w.Tokens += v.systemTokens()
	}
	w.Used, w.Limit, w.Unit = p.usage(messages, w.Tokens)
	if v.sized {
		w.Used = sel.used
	}
	return w
}

// window puts the system message where it stands among the entries.
func (m *Memory) window(v *view, entries []*Entry) Window {
	if len(entries) == 0 {
		entries = nil // so that an empty window is the same, whichever way it came to be empty
	}
	w := Window{Entries: entries, System: v.systemEntry()}
	windowed := m.kind == spec.PolicyMessageWindow || m.kind == spec.PolicyTokenWindow
	switch {
	case v.system == nil || m.systemFirst || !windowed:
		return w
	case v.unsaid:
		w.SystemAt = max(len(entries)-v.tail, 0)
		return w
	}
	w.SystemAt = sort.Search(len(entries), func(i int) bool { return entries[i].Seq == 0 || entries[i].Seq > v.system.Seq })
	return w
}

// History yields everything that was said in the session, in order, reading as
// the range goes on. What is said after the range began is not part of it.
func (m *Memory) History(ctx context.Context, session string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		key := m.key(session)
		head, err := m.store.Head(ctx, key)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if head.State.Last == 0 || m.expired(head.State) {
			return
		}
		for e, err := range m.store.Entries(ctx, key, Query{To: head.State.Last}) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if err := m.checkDecrypted(key, e); err != nil {
				yield(Entry{}, err)
				return
			}
			out := *e
			out.Status = head.State.status(e)
			if !yield(out, nil) {
				return
			}
		}
	}
}

// status tells where an entry stands.
func (s State) status(e *Entry) Status {
	switch {
	case e.Status == Failed:
		return Failed
	case e.Message.Role == chat.System && e.Seq != s.System:
		return Replaced
	case e.Message.Role != chat.System && e.Seq < s.First:
		return Flushed
	}
	return InWindow
}

// Events yields what happened to the session's window, in order.
func (m *Memory) Events(ctx context.Context, session string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range m.store.Events(ctx, m.key(session)) {
			if err == nil && e.Reason == "" {
				e.Reason = evictionReason(e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// evictionReason is one line on why an eviction happened, where the numbers of the
// event tell it; policies that evict at every append do not write it down.
func evictionReason(e Event) string {
	switch e.Rule {
	case spec.PolicyMessageWindow:
		return messageReason(e)
	case spec.PolicyTokenWindow:
		return tokenReason(e)
	case spec.PolicyRoundWindow:
		return roundReason(e)
	}
	return ""
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
		info, err := m.info(l)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// info is a session as its state tells it, without reading it: where the system
// message counts, it is left out here.
func (m *Memory) info(l SessionHead) (SessionInfo, error) {
	p, err := m.policyOf(l.Session)
	if err != nil {
		return SessionInfo{}, err
	}
	s := l.Head.State
	_, limit, unit := p.usage(0, 0)
	used := map[Unit]int{InTokens: s.Tokens, InMessages: s.InWindow, InCharacters: s.Used}[unit]
	return SessionInfo{Session: l.Session, Messages: s.Last, InWindow: s.InWindow, Tokens: s.Tokens,
		Used: used, Limit: limit, Unit: unit, LastSaid: s.LastSaid, Flushes: s.Flushes}, nil
}

// knownIDs tells which of the ids the session holds in turns that did not fail.
func (m *Memory) knownIDs(ctx context.Context, key Key, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	held := map[string]bool{}
	for e, err := range m.store.Entries(ctx, key, Query{Live: true, IDs: ids}) {
		if err != nil {
			return nil, err
		}
		held[e.Message.ID] = true
	}
	return held, nil
}

func ids(msgs []chat.Message) []string {
	var out []string
	for _, m := range msgs {
		if m.ID != "" {
			out = append(out, m.ID)
		}
	}
	return out
}

func checkMessage(msgs []chat.Message) error {
	for i := range msgs {
		if isPlain(&msgs[i]) {
			continue
		}
		if err := msgs[i].Check(); err != nil {
			return fmt.Errorf("this message cannot be remembered: %w", err)
		}
	}
	return nil
}

// isPlain tells whether a message is a text of one of the frequent roles, which
// can always be remembered.
func isPlain(msg *chat.Message) bool {
	switch msg.Role {
	case chat.User, chat.Assistant, chat.Tool, chat.System:
	default:
		return false
	}
	return len(msg.Blocks) == 1 && msg.Blocks[0].Type == "text" && msg.Blocks[0].Data == nil
}

// entry is a message with an id and its count, as every store can keep it.
func (m *Memory) entry(msg chat.Message) *Entry {
	if msg.ID == "" {
		msg.ID = chat.NewID()
	}
	e := &Entry{}
	m.write(e, msg)
	return e
}

// write makes a fresh entry that of a message.
func (m *Memory) write(e *Entry, msg chat.Message) {
	e.Message = msg
	if !isValidUTF8(&e.Message) {
		e.Message = sanitizeUTF8(msg)
	}
	e.Tokens = tokensOf(m.counter, &e.Message)
}

// isValidUTF8 tells whether all texts of a message are valid UTF-8.
func isValidUTF8(msg *chat.Message) bool {
	for i := range msg.Blocks {
		if b := &msg.Blocks[i]; !utf8.ValidString(b.Text) || !utf8.ValidString(b.MimeType) {
			return false
		}
	}
	for _, c := range msg.ToolCalls {
		if !utf8.ValidString(c.ID) || !utf8.ValidString(c.Name) || !utf8.ValidString(c.Arguments) {
			return false
		}
	}
	return utf8.ValidString(msg.ID) && utf8.ValidString(msg.Name) && utf8.ValidString(msg.ToolCallID)
}

// sanitizeUTF8 is msg with valid UTF-8 in all texts: JSON can hold no other, and the
// window must be the same before and after a restart.
func sanitizeUTF8(msg chat.Message) chat.Message {
	bad := func(b chat.Block) bool { return !utf8.ValidString(b.Text) || !utf8.ValidString(b.MimeType) }
	if slices.ContainsFunc(msg.Blocks, bad) {
		msg.Blocks = slices.Clone(msg.Blocks)
		for i, b := range msg.Blocks {
			msg.Blocks[i].Text, msg.Blocks[i].MimeType = validText(b.Text), validText(b.MimeType)
		}
	}
	if len(msg.ToolCalls) > 0 {
		msg.ToolCalls = slices.Clone(msg.ToolCalls)
		for i, c := range msg.ToolCalls {
			msg.ToolCalls[i] = chat.ToolCall{ID: validText(c.ID), Name: validText(c.Name), Arguments: validText(c.Arguments)}
		}
	}
	msg.ID, msg.Name, msg.ToolCallID = validText(msg.ID), validText(msg.Name), validText(msg.ToolCallID)
	return msg
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
