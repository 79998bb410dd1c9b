package segments

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Extend adds the messages that the index of a session does not have, if they are at least MinMessages. It returns the position of the last
// message that the index has. If another process extends the index meanwhile, nothing is added.
func Extend(ctx context.Context, s store.Store, key store.Key, now time.Time) (to int64, err error) {
	for {
		head, err := s.Head(ctx, key)
		if err != nil || head.State.Last < MinMessages {
			return 0, err
		}
		x, err := Open(ctx, s, key, head)
		if err != nil || head.State.Last-x.To() < MinMessages {
			return x.To(), err
		}
		switch err := x.extend(ctx, head, now); {
		case errors.Is(err, store.ErrConflict):
			return x.To(), nil
		case IsUnusable(err):
			return 0, x.Discard(ctx)
		case err != nil:
			return 0, err
		}
	}
}

// extend adds a segment of the next messages, merged with the segments before that are not larger.
func (x *Index) extend(ctx context.Context, head store.Head, now time.Time) error {
	next := part{ID: newID(), From: x.To() + 1, To: min(x.To()+maxBatch, head.State.Last)}
	kept, from := len(x.list.Segments), next.From
	for ; kept > 0; kept-- {
		p := x.list.Segments[kept-1]
		if p.messages() > next.messages() || p.messages()+next.messages() > maxMerged {
			break
		}
		next.From = p.From
	}
	var c ranking.Corpus
	if err := x.AddTo(ctx, &c, 0, next.From, next.To, true); err != nil {
		return err
	}
	if err := x.addMessages(ctx, &c, head.State, from, next.To); err != nil {
		return err
	}
	if c.Len() > 0 {
		pieces, err := c.EncodeSegment(ctx)
		if err != nil {
			return err
		}
		next.Pieces, next.Docs = len(pieces), c.Len()
		for i, b := range pieces {
			if err := write(ctx, x.store, pieceKey(x.key, next.ID, i), 0, split(b), now); err != nil {
				return errors.Join(err, x.deleteSegments(context.WithoutCancel(ctx), next))
			}
		}
	}
	return x.replace(ctx, kept, next, now)
}

// addMessages adds messages that can be found to a corpus.
func (x *Index) addMessages(ctx context.Context, c *ranking.Corpus, state store.State, from, to int64) error {
	statuses, err := state.Statuses()
	if err != nil {
		return err
	}
	for e, err := range x.store.Entries(ctx, x.key, store.Query{From: from, To: to, Live: true}) {
		if err == nil {
			err = store.CheckDecrypted(x.key, e)
		}
		if err != nil {
			return err
		}
		switch statuses.Of(e) {
		case store.Failed, store.Rewound, store.Edited, store.Deleted:
			continue
		}
		m := &e.Message
		if m.Role != chat.System {
			c.Add(ranking.Document{Seq: e.Seq, Time: e.Time, Name: m.Name, Text: m.Text(), Aside: IsAside(m)})
		}
	}
	return nil
}

// IsAside reports whether a message is a call or a result of a tool.
func IsAside(m *chat.Message) bool {
	return m.Role == chat.Tool || m.Role == chat.Function || m.HasCalls()
}

// replace makes a segment the last one of the list, in place of those after the first ones. If the session has changed in
// a way that leaves stored words that it no longer has, the index is deleted.
func (x *Index) replace(ctx context.Context, kept int, next part, now time.Time) error {
	changed := x.list
	changed.Segments = append(slices.Clone(x.list.Segments[:kept]), next)
	value, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	if err := write(ctx, x.store, listKey(x.key), x.version, map[string][]byte{valueName: value}, now); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return errors.Join(err, x.deleteSegments(ctx, next))
		}
		return err
	}
	head, err := x.store.Head(ctx, x.key)
	if err != nil {
		return err
	}
	if !(&Index{list: changed}).covers(head) {
		return errors.Join(store.ErrConflict, Delete(ctx, x.store, x.key))
	}
	return x.deleteSegments(ctx, x.list.Segments[kept:]...)
}

// deleteSegments deletes the pieces of segments.
func (x *Index) deleteSegments(ctx context.Context, gone ...part) error {
	if len(gone) == 0 {
		return nil
	}
	return deletePieces(ctx, x.store, x.key, func(id string) bool {
		return slices.ContainsFunc(gone, func(p part) bool { return p.ID == id })
	})
}
