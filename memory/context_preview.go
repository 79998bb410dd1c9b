package memory

import (
	"context"
	"fmt"
)

// PreviewContext are what the next call would be sent beside the chat messages,
// as committed by now. No model is asked: the summary is the one that is there,
// and what retrieval finds depends on a message that was not said yet.
type ContextPreview struct {
	Parts   []ContextBlockReport // one for each block, in the document's order
	Tokens  int                  // what all of them take
	Room    int                  // what they may take: what the messages leave of token_limit
	Refused error                // a *ContextError where the next call would be refused; nil where all is well
}

// PreviewContext looks at the context of a session; nil where the memory has no
// context blocks.
func (m *Memory) PreviewContext(ctx context.Context, session string) (*ContextPreview, error) {
	if m.context == nil {
		return nil, nil
	}
	p, err := m.policyOf(session)
	if err != nil {
		return nil, err
	}
	base, err := m.reload(ctx, m.key(session))
	if err != nil {
		return nil, err
	}
	if m.expired(base.state) {
		base = m.emptyView()
	}
	t := &Turn{memory: m, key: m.key(session), ctx: ctx, base: base, policy: p}
	t.told = &turnContext{variables: variablesOf(base), problems: map[BlockKind]string{}}
	c := t.buildContext(base, base.entries)
	c.home = true // the next message will be a user's
	for i := range c.parts {
		c.parts[i].pending = c.parts[i].block.Kind == Retrieval
	}
	s := &ContextPreview{}
	if s.Room, s.Refused = t.room(c, base.entries); s.Refused == nil {
		c.shrinkTo(s.Room)
	}
	s.Parts, s.Tokens = c.report(), c.tokens()
	return s, nil
}

// SummaryOf is a session's running summary, empty where there is none.
func (m *Memory) SummaryOf(ctx context.Context, session string) (string, error) {
	v, err := m.reload(ctx, m.key(session))
	if err != nil || m.expired(v.state) {
		return "", err
	}
	return summaryOf(v).Text, nil
}

// deleteOrphanedVectors deletes vectors whose session is gone: what a process left that died
// while another one cleared the session. It tells how many sessions' they were.
func (m *Memory) deleteOrphanedVectors(ctx context.Context) (int, error) {
	if m.context == nil || m.context.retrieval == nil {
		return 0, nil
	}
	var over []SessionHead
	for l, err := range m.store.Sessions(ctx, m.id+vectorSessionSuffix) {
		if err != nil {
			return 0, err
		}
		head, err := m.store.Head(ctx, m.key(l.Session))
		if err != nil {
			return 0, fmt.Errorf("memory %s, session %q: %w", m.id, l.Session, err)
		}
		if head.Version == 0 {
			over = append(over, l)
		}
	}
	for i, l := range over {
		if err := m.store.Delete(ctx, vectorSession(m.key(l.Session))); err != nil {
			return i, err
		}
	}
	return len(over), nil
}
