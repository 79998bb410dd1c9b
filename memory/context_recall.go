package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/memory/internal/nearest"
)

// The vectors of a session's flushed messages are kept in the memory's own
// store, as the blocks of a companion session: so every store can keep them, one
// of a user's own too, and reading a session's head never reads its vectors.
//
// The companion has a head and a version of its own. Its head says how far the
// vectors reach, and moves in the same change in which they are added: no
// message is embedded twice or skipped, whoever is faster. It also says of which
// life of the session they are, because the two are not deleted in one step.

// companionMark ends the memory's id in a companion's key. No document can
// declare such an id.
const companionMark = "\x00vectors"

// companionState names the value of a companion that says what it holds.
const companionState = "vectors"

const (
	recallMessages = 256     // messages that one turn waits to have embedded; the rest comes with the next turn
	recallTokens   = 200_000 // their tokens
	pieceBytes     = 2_000   // of a message's text that get a vector of their own
	maxPieces      = 16      // of one message; what stands behind them is not searched
	maxVectors     = 8_192   // that are searched in a session: the newest ones
	shelfBytes     = 64 << 20
	// lifetime is how many changes one life of a session has at most: a version
	// further away is another life's, which begins at a random number.
	lifetime = 1 << 40
)

func companion(key Key) Key { return Key{Memory: key.Memory + companionMark, Session: key.Session} }

// shelf is what a companion holds. It never changes once it is published.
type shelf struct {
	version int64 // of the companion; 0: there is none
	last    int64 // its newest entry
	about   shelfAbout
	vectors nearest.Vectors
}

// shelfAbout is what a companion's head says.
type shelfAbout struct {
	Life  int64  `json:"life"`  // a version that the session had when the companion was begun
	Model string `json:"model"` // what made the vectors
	To    int64  `json:"to"`    // the newest message that was looked at
}

// shelves keep the shelves that were used last, within shelfBytes.
type shelves struct {
	mu    sync.Mutex
	byKey map[Key]*shelf
	order []Key // the one that was used last at the end
}

func (s *shelves) get(key Key) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

func (s *shelves) put(key Key, one *shelf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[Key]*shelf{}
	}
	s.byKey[key] = one
	s.order = append(slices.DeleteFunc(s.order, func(k Key) bool { return k == key }), key)
	total := 0
	for _, k := range slices.Backward(s.order) {
		total += s.byKey[k].vectors.Bytes()
	}
	for total > shelfBytes && len(s.order) > 1 {
		total -= s.byKey[s.order[0]].vectors.Bytes()
		delete(s.byKey, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *shelves) drop(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
	s.order = slices.DeleteFunc(s.order, func(k Key) bool { return k == key })
}

// shelf reads what a session's companion holds, as far as it is not at hand. One
// of an earlier life of the session, or of another model, is deleted.
func (m *Memory) shelf(ctx context.Context, key Key, base *view) (*shelf, error) {
	at := companion(key)
	head, err := m.store.Head(ctx, at)
	if err != nil {
		return nil, err
	}
	s := m.context.shelves.get(key)
	if s != nil && s.version == head.Version && s.about.lives(base.version) {
		return s, nil
	}
	name, err := m.context.retrieval.Embedder.Name()
	if err != nil {
		return nil, &embedderError{err}
	}
	begun := shelfAbout{Life: base.version, Model: name}
	if head.Version == 0 {
		return &shelf{about: begun}, nil
	}
	next := &shelf{version: head.Version, last: head.State.Last}
	if json.Unmarshal(head.Values[companionState], &next.about) != nil || !next.about.lives(base.version) || next.about.Model != begun.Model {
		m.context.shelves.drop(key)
		err := Remove(ctx, m.store, at, head.Version)
		return &shelf{about: begun}, err
	}
	from := int64(1)
	if s != nil && s.about.Life == next.about.Life && s.version < next.version && next.version-s.version < lifetime {
		next.vectors, from = s.vectors, s.last+1 // only the session's turn writes behind its end
	}
	for e, err := range m.store.Entries(ctx, at, Query{From: from, To: next.last}) {
		if err != nil {
			return nil, err
		}
		for _, b := range e.Message.Blocks {
			if err := next.vectors.AddBinary(b.Data); err != nil {
				return nil, fmt.Errorf("memory %s, session %q: %w", m.id, key.Session, err)
			}
		}
		if next.vectors.Len() > 2*maxVectors {
			next.vectors = next.vectors.Newest(maxVectors)
		}
	}
	m.context.shelves.put(key, next)
	return next, nil
}

// embedderError says that the embedding model cannot be asked at all.
type embedderError struct{ error }

// Unwrap is the reason.
func (e *embedderError) Unwrap() error { return e.error }

// lives tells whether a session of this version is the one that the vectors are of.
func (a shelfAbout) lives(version int64) bool {
	return version >= a.Life && version-a.Life < lifetime
}

// recall finds the flushed messages that are most similar to the newest user
// message. A model that fails costs the turn nothing but them: the answer tells why.
func (t *Turn) recall(question string) (found []unitText, problem string, err error) {
	s, problem, err := t.embedPending()
	if err != nil || s == nil || s.vectors.Len() == 0 || strings.TrimSpace(question) == "" {
		return nil, problem, err
	}
	block := t.memory.context.retrieval
	vectors, err := block.Embedder.Embed(t.ctx, []string{pieces(question)[0]})
	switch {
	case t.ctx.Err() != nil:
		return nil, "", context.Cause(t.ctx)
	case err != nil || len(vectors) != 1:
		return nil, t.embedderFailed(err), nil
	}
	first, floor := t.firstSent(), t.base.floor()
	matches := s.vectors.Nearest(vectors[0], block.TopK, func(seq int64) bool { return seq >= floor && seq < first })
	for rank, match := range matches {
		for e, err := range t.memory.store.Entries(t.ctx, t.key, Query{From: match.Of, To: match.Of, Live: true}) {
			if err != nil {
				return nil, "", err
			}
			found = append(found, unitText{text: quoted(e), rank: rank, seq: e.Seq})
		}
	}
	slices.SortFunc(found, func(a, b unitText) int { return int(a.seq - b.seq) })
	return found, problem, nil
}

// quoted is a message as a model reads it among others: who said it and when,
// and its text, of which no line but the first begins at the margin.
func quoted(e *Entry) string {
	return fmt.Sprintf("- %s, turn %d: %s", e.Message.Role, e.Turn, strings.Join(lines(e.Message.Text()), "\n  "))
}

func (t *Turn) embedderFailed(err error) string {
	if err == nil {
		err = errors.New("it answered another number of vectors than texts")
	}
	problem := "the embedding model failed: " + oneLine(err.Error())
	t.memory.context.warn(fmt.Sprintf("memory %s, retrieval: %s; nothing is lost, and the next turn tries again", t.memory.id, problem))
	return problem
}

// embedPending makes vectors of what left the window since the last time, and
// answers all that the session has; nil where they cannot be had.
func (t *Turn) embedPending() (*shelf, string, error) {
	m := t.memory
	for attempt := 0; ; attempt++ {
		s, err := m.shelf(t.ctx, t.key, t.base)
		var failed *embedderError
		if errors.As(err, &failed) {
			return nil, t.embedderFailed(failed.error), nil
		}
		if err != nil {
			return nil, "", err
		}
		p, err := t.pending(s.about.To, recallTokens)
		if err != nil || p.to < p.from {
			return s, "", err
		}
		batch, problem, err := t.embed(p)
		if err != nil || problem != "" {
			return s, problem, err
		}
		err = m.keepVectors(t.ctx, t.key, s, batch)
		switch {
		case err == nil && (p.more || batch.more) && attempt == 0:
			return t.reread("more messages are to be embedded with the next turn")
		case err == nil:
			return t.reread("")
		case !errors.Is(err, ErrConflict) || attempt == maxFolds:
			return nil, "", err
		}
	}
}

// reread is the shelf after vectors were added to it.
func (t *Turn) reread(problem string) (*shelf, string, error) {
	s, err := t.memory.shelf(t.ctx, t.key, t.base)
	return s, problem, err
}

// vectorBatch is what is added to a companion in one change.
type vectorBatch struct {
	vectors nearest.Vectors
	to      int64 // the newest message that was looked at
	more    bool  // there were more messages than one turn waits for
}

// embed makes vectors of messages: of what users and assistants said. Calls of
// tools and their results belong together and say little by themselves, so
// neither is found again.
func (t *Turn) embed(p pending) (vectorBatch, string, error) {
	b := vectorBatch{to: p.to}
	var texts []string
	var of []int64
	for i := range p.messages {
		if i == recallMessages {
			b.to, b.more = p.seqs[i]-1, true
			break
		}
		msg := &p.messages[i]
		if result(msg.Role) || len(msg.ToolCalls) > 0 {
			continue
		}
		for _, piece := range pieces(msg.Text()) {
			texts, of = append(texts, piece), append(of, p.seqs[i])
		}
	}
	if len(texts) == 0 {
		return b, "", nil
	}
	vectors, err := t.memory.context.retrieval.Embedder.Embed(t.ctx, texts)
	switch {
	case t.ctx.Err() != nil:
		return b, "", context.Cause(t.ctx)
	case err != nil || len(vectors) != len(texts):
		return b, t.embedderFailed(err), nil
	}
	for i, v := range vectors {
		if err := b.vectors.Add(of[i], v); err != nil {
			return b, t.embedderFailed(fmt.Errorf("it answered %w", err)), nil
		}
	}
	return b, "", nil
}

// keepVectors adds vectors to a session's companion. Where the session was
// cleared meanwhile, they go as well.
func (m *Memory) keepVectors(ctx context.Context, key Key, s *shelf, b vectorBatch) error {
	at := companion(key)
	about := s.about
	about.To = b.to
	raw, err := json.Marshal(about)
	if err != nil {
		return err
	}
	now := time.UnixMicro(m.now().UnixMicro()).UTC()
	c := Change{Version: s.version, Next: nextVersion(s.version), Values: map[string][]byte{companionState: raw},
		State: State{Last: s.last, First: s.last + 1, Turns: s.last, LastSaid: now}}
	if b.vectors.Len() > 0 {
		data, err := b.vectors.AppendBinary(nil)
		if err != nil {
			return err
		}
		c.State.Last, c.State.Turns, c.State.First = s.last+1, s.last+1, s.last+2
		c.Entries = []*Entry{{Message: chat.Message{ID: chat.NewID(), Role: chat.Assistant, Blocks: []chat.Block{{Type: "bytes", Data: data}}},
			Seq: c.State.Last, Turn: c.State.Turns, Time: now}}
	}
	if err := m.store.Apply(ctx, at, c); err != nil {
		return err
	}
	head, err := m.store.Head(ctx, key)
	if err == nil && !about.lives(head.Version) {
		m.context.shelves.drop(key)
		err = m.store.Delete(ctx, at)
	}
	return err
}

// forget deletes what a session has beside itself. It comes before the session
// is deleted, so that a call that dies in between can be made again.
func (m *Memory) forget(ctx context.Context, key Key) error {
	if m.context == nil || m.context.retrieval == nil {
		return nil
	}
	m.context.shelves.drop(key)
	return m.store.Delete(ctx, companion(key))
}

// pieces are the parts of a text that get vectors, cut at blanks; none of a text
// that says nothing.
func pieces(text string) []string {
	text = strings.TrimSpace(text)
	var out []string
	for text != "" && len(out) < maxPieces {
		end := len(text)
		if end > pieceBytes {
			end = pieceBytes
			for !utf8.RuneStart(text[end]) {
				end--
			}
			if blank := strings.LastIndexAny(text[:end], " \n\t"); blank > pieceBytes/2 {
				end = blank
			}
		}
		out = append(out, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	return out
}
