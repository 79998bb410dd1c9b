package history

import (
	"context"
	"fmt"
	"iter"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// MissingEntriesError reports that a store has fewer messages of a session than its head
// counts: another program deleted them, or the store lost them.
type MissingEntriesError struct {
	Memory  string // the memory's id
	Session string // the session's id
	First   int64  // the position of the first one
	Missing int64  // their number
}

// Error names the session and the first message that is missing.
func (e *MissingEntriesError) Error() string {
	return fmt.Sprintf("memory %s, session %q: the store has lost %s, the first at position %d",
		e.Memory, e.Session, textfmt.Count(e.Missing, "message"), e.First)
}

// add counts the positions from next to before seq.
func (e *MissingEntriesError) add(next, seq int64) {
	if e.Missing == 0 {
		e.First = next
	}
	e.Missing += max(seq-next, 0)
}

// Scan reads the messages that the head of a session counts. After the last one it yields a
// *MissingEntriesError if the store does not have all of them.
type Scan struct {
	Reader  *Reader
	Key     store.Key
	Session string     // for errors: the session as the caller names it
	Head    store.Head // as it was read
}

// Range yields the messages from..to with their statuses; 0 for to is the end.
func (s *Scan) Range(ctx context.Context, from, to int64) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		statuses, err := s.Head.State.Statuses()
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		if to <= 0 || to > s.Head.State.Last {
			to = s.Head.State.Last
		}
		s.read(ctx, store.Query{From: from, To: to}, func(e *store.Entry) (store.Entry, bool) {
			out := *e
			out.Status = statuses.Of(e)
			return out, true
		}, yield)
	}
}

// Conversation yields the messages that are part of the conversation or of failed turns, an
// edited one in its place and under its id.
func (s *Scan) Conversation(ctx context.Context) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		last := s.Head.State.Last
		statuses, err := s.Head.State.Statuses()
		var texts map[int64]*store.Entry
		if err == nil {
			texts, err = s.Reader.EditedTexts(ctx, s.Key, statuses.Edits, 1, last)
		}
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		s.read(ctx, store.Query{From: 1, To: last}, func(e *store.Entry) (store.Entry, bool) {
			if statuses.Hidden.Has(e.Seq) {
				return store.Entry{}, false
			}
			out := *store.WithText(e, texts[e.Seq])
			out.Status = statuses.At(e.Seq, e)
			return out, true
		}, yield)
	}
}

// read yields what form makes of the entries of a query with an end, without those for which
// it returns false.
func (s *Scan) read(ctx context.Context, q store.Query, form func(*store.Entry) (store.Entry, bool), yield func(store.Entry, error) bool) {
	missing := &MissingEntriesError{Memory: s.Reader.Memory, Session: s.Session}
	next := max(q.From, 1)
	for e, err := range s.Reader.Store.Entries(ctx, s.Key, q) {
		if err == nil {
			missing.add(next, e.Seq)
			next = e.Seq + 1
			err = store.CheckDecrypted(s.Key, e)
		}
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		if out, ok := form(e); ok && !yield(out, nil) {
			return
		}
	}
	if missing.add(next, q.To+1); missing.Missing > 0 {
		if err := s.confirm(ctx, missing); err != nil {
			yield(store.Entry{}, err)
		}
	}
}

// mostChanges is more than the changes of a session while it is read. The version of a session
// that was deleted and created again differs by more, because it begins at a random number.
const mostChanges = 1 << 32

// confirm returns missing unless the session was deleted since its head was read.
func (s *Scan) confirm(ctx context.Context, missing *MissingEntriesError) error {
	head, err := s.Reader.Store.Head(ctx, s.Key)
	changes := head.Version - s.Head.Version
	if err == nil && changes >= 0 && changes < mostChanges && head.State.Last >= s.Head.State.Last {
		return missing
	}
	return err
}
