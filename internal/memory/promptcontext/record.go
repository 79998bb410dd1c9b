package promptcontext

import (
	"context"
	"iter"
	"maps"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// record is the session with the state of a block: the session of the turn, or the one
// that a user's sessions share.
type record struct {
	session memory.ContextSession
	scope   memory.Scope
	shared  bool
}

// recordOf returns the record of a block.
func (t *turnContext) recordOf(b *Block) record {
	return record{t.session, b.Scope, t.session.IsShared(b.Scope)}
}

func (r record) head() (memory.Head, error) {
	if r.shared {
		return r.session.Shared(r.scope)
	}
	return r.session.Head(), nil
}

// update sets a value of the record. The event is that of the session of the turn; a
// shared record has no turns.
func (r record) update(name string, change func(memory.Head) (value []byte, e memory.Event, ok bool)) error {
	if !r.shared {
		return r.session.Update(name, change)
	}
	return r.session.UpdateShared(r.scope, name, func(h memory.Head) ([]byte, bool) {
		value, _, ok := change(h)
		return value, ok
	})
}

// progress is how far a block has read the messages of a scope.
type progress struct {
	To   int64           `json:"to"`             // the session of the record: position of the newest message that was read
	Seen map[string]mark `json:"seen,omitempty"` // a shared record: the same for each session
	More bool            `json:"more,omitempty"` // sessions other than the last turn's have messages that were not read
}

// mark is how far one of several sessions was read.
type mark struct {
	Generation int64 `json:"life,omitempty"` // the session's version when it was read first; 0 after an import
	To         int64 `json:"to"`             // position of the newest message that was read
}

// of returns how far a session was read: 0 if it was deleted and created again since.
func (p *progress) of(session string, version int64) int64 {
	m, found := p.Seen[session]
	if !found || m.Generation > 0 && !(vectorMeta{Generation: m.Generation}).covers(version) {
		return 0
	}
	return m.To
}

// read returns how far a session was read.
func (p *progress) read(session string) int64 {
	if session == "" {
		return p.To
	}
	return p.Seen[session].To
}

// readOf returns how far the session of a batch was read.
func (p *progress) readOf(b evictedMessages) int64 {
	if b.session == "" {
		return p.To
	}
	return p.of(b.session, b.version)
}

// advance returns a copy of the progress after a batch was read.
func (p *progress) advance(b evictedMessages) progress {
	next := *p
	if b.session == "" {
		next.To = b.to
		return next
	}
	if next.Seen = maps.Clone(p.Seen); next.Seen == nil {
		next.Seen = map[string]mark{}
	}
	m := next.Seen[b.session]
	if m.Generation == 0 || p.of(b.session, b.version) == 0 {
		m.Generation = b.version
	}
	m.To = b.to
	next.Seen[b.session] = m
	return next
}

// withdraw makes the progress end before a position of a session.
func (p *progress) withdraw(session string, from int64) {
	if session == "" {
		p.To = min(p.To, from-1)
		return
	}
	if m, found := p.Seen[session]; found && m.To >= from {
		m.To = from - 1
		p.Seen[session] = m
	}
}

// unread returns the oldest messages that a block has not read, within a number of tokens
// but at least one; none if it has read all. Messages that left the window of the session
// come first. The others of a shared record are read when a session begins: what was written
// in the earlier ones is known in the new one.
func (t *turnContext) unread(r record, p *progress, maxTokens int) (evictedMessages, error) {
	if !r.shared {
		return t.pending(p.To, maxTokens)
	}
	key, head := t.session.Key(), t.session.Head()
	b, err := t.pending(p.of(key.Session, head.Version), maxTokens)
	if err != nil || len(b.messages) > 0 {
		b.session, b.version = key.Session, head.Version
		return b, err
	}
	if head.State.Turns > 0 && !p.More {
		return b, nil
	}
	for l, err := range t.session.Others(r.scope) {
		if err != nil {
			return b, err
		}
		after := p.of(l.Session, l.Head.Version)
		if l.Head.State.Last <= after {
			continue
		}
		b, err := readBatch(t.session.EntriesOf(l, after+1), after+1, maxTokens)
		b.session, b.version = l.Session, l.Head.Version
		if err != nil || len(b.messages) > 0 {
			return b, err
		}
	}
	return evictedMessages{}, nil
}

// moreMessages is the problem of a block that has not read all messages.
const moreMessages = "more messages will be read in the next turn"

// derive adds what the next call no longer sends to a block: the call waits for it, so that every message is in the
// window or was read. Each batch goes to a model once: read reads how far the block is, call calls the model and returns
// what stores its result. It returns why the block is incomplete, empty if it is complete.
func (t *turnContext) derive(b *Block, read func() (*progress, error),
	call func(p evictedMessages, last bool) (save func() error, err error)) (problem string, err error) {
	r := t.recordOf(b)
	for n := 1; ; n++ {
		known, err := read()
		if err != nil {
			return "", err
		}
		p, err := t.unread(r, known, b.InputTokens)
		if err != nil || len(p.messages) == 0 {
			return "", err
		}
		if n > maxSummaryCalls {
			return moreMessages, nil
		}
		save, err := call(p, r.shared && n == maxSummaryCalls)
		if problem, err := t.failed(b, err); problem != "" || err != nil {
			return problem, err
		}
		if err := save(); err != nil {
			return "", err
		}
	}
}

// failed returns the problem of a block whose model has failed, or the error of a turn that was canceled.
func (t *turnContext) failed(b *Block, err error) (problem string, canceled error) {
	if ctx := t.session.Context(); ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err == nil {
		return "", nil
	}
	return t.problemText(b.Kind, "update failed: "+textfmt.OneLine(strings.ToValidUTF8(err.Error(), "\uFFFD"))), nil
}

// add adds an entry to a batch.
func (p *evictedMessages) add(e *memory.Entry) {
	p.to = e.Seq
	if e.Message.Role != chat.System {
		p.messages, p.seqs = append(p.messages, e.Message), append(p.seqs, e.Seq)
		p.turns, p.times = append(p.turns, e.Turn), append(p.times, e.Time)
		p.tokens += e.Tokens
	}
}

// readBatch reads entries from a position on, oldest first, within a number of tokens,
// but at least one. It skips system messages.
func readBatch(entries iter.Seq2[*memory.Entry, error], from int64, maxTokens int) (evictedMessages, error) {
	p := evictedMessages{from: from, to: from - 1}
	for e, err := range entries {
		if err != nil {
			return p, err
		}
		if len(p.messages) > 0 && p.tokens+e.Tokens > maxTokens {
			p.more = true
			break
		}
		p.add(e)
	}
	return p, nil
}
