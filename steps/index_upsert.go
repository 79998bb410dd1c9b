package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/spec"
)

// upsertSize is the default number of entries that are written together.
const upsertSize = 256

// indexUpsert writes chunks or documents to an index. What the index already has is not
// written again. The rows pass unchanged.
type indexUpsert struct {
	id       string
	index    index.Index
	entry    func(*Row) (index.Entry, error)
	texts    *textEmbedder // computes missing vectors; nil for a full-text index
	identity string        // of the embedding model, part of the hashes
	size     int
	sync     *indexSync // nil if nothing is removed
	counts   IndexCounter
}

func buildIndexUpsert(s *spec.IndexUpsert, env *Env) (Runner, error) {
	inputs, err := env.slots(s.Inputs)
	if err != nil {
		return nil, err
	}
	u := &indexUpsert{id: s.ID, size: upsertSize}
	if s.BatchConfig != nil {
		u.size = s.BatchConfig.BatchSize
	}
	if u.index, err = env.openIndex(s.Index.To); err != nil {
		return nil, err
	}
	switch x := s.Index.To.(type) {
	case *spec.VectorIndex:
		if err := u.useVectors(x, inputs, env); err != nil {
			return nil, err
		}
	case *spec.DocumentIndex:
		if len(inputs) == 0 {
			return nil, errors.New("needs inputs: the fields of the documents")
		}
		u.entry = func(row *Row) (index.Entry, error) { return documentEntry(row, inputs, x.IDField) }
	}
	if s.Sync {
		u.sync, err = newIndexSync(u, s, env)
	}
	return u, err
}

// useVectors prepares a step for a vector index.
func (u *indexUpsert) useVectors(x *spec.VectorIndex, inputs []slot, env *Env) error {
	if len(inputs) != 1 {
		return fmt.Errorf("needs exactly 1 input, has %d", len(inputs))
	}
	m, err := env.indexEmbedder(x)
	if err != nil {
		return err
	}
	info := m.Info()
	u.identity = info.Identity()
	u.texts = &textEmbedder{step: u.id, model: m, workers: 1}
	u.entry = func(row *Row) (index.Entry, error) {
		v, err := inputs[0].read(row)
		if err != nil {
			return index.Entry{}, err
		}
		e, err := ragEntry(v)
		if err != nil {
			return e, fmt.Errorf("%s: %w", inputs[0].of.ID, err)
		}
		e.Model = u.identity
		if n := len(e.Vector); n > 0 && info.Dimensions > 0 && n != info.Dimensions {
			return e, fmt.Errorf("%s: its vector has %d dimensions, but the embedding model %s of the index has %d", inputs[0].of.ID, n, info.ID, info.Dimensions)
		}
		return e, nil
	}
	return nil
}

// openIndex returns the shared object of an index.
func (e *Env) openIndex(x spec.Index) (index.Index, error) {
	if x == nil || e.Index == nil {
		return nil, errors.New("the index is not linked")
	}
	return e.Index(x)
}

// Size returns the maximum number of entries that are written together.
func (u *indexUpsert) Size() int { return u.size }

// Counts returns what the step did so far.
func (u *indexUpsert) Counts() *IndexCounter { return &u.counts }

// upsert is one group of rows.
type upsert struct {
	errs    []error        // by row
	ids     []string       // by row; "" for a row without an entry
	entries []index.Entry  // each id once
	at      map[string]int // positions in entries, by id
	failed  map[string]error
}

// Batch writes the entries of rows. Of two rows with one id, the later one counts, and both
// are reported with its result.
func (u *indexUpsert) Batch(ctx context.Context, rows []*Row, emit Emit) error {
	g := u.read(rows)
	if err := u.write(ctx, g); err != nil {
		return err
	}
	for i, row := range rows {
		err := g.errs[i]
		if err == nil {
			err = g.failed[g.ids[i]]
		}
		if err != nil {
			err = emitFailed(row, u.id, err, emit)
		} else {
			err = emit(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read makes the entries of rows.
func (u *indexUpsert) read(rows []*Row) *upsert {
	g := &upsert{errs: make([]error, len(rows)), ids: make([]string, len(rows)), at: map[string]int{}, failed: map[string]error{}}
	for i, row := range rows {
		e, err := u.entry(row)
		if err == nil {
			e.Hash, err = index.Hash(e, u.identity)
		}
		if err != nil {
			g.errs[i] = err
			continue
		}
		g.ids[i] = e.ID
		if k, again := g.at[e.ID]; again {
			g.entries[k] = e
			continue
		}
		g.at[e.ID] = len(g.entries)
		g.entries = append(g.entries, e)
	}
	return g
}

// write writes the entries that the index does not have. An error concerns all of them.
func (u *indexUpsert) write(ctx context.Context, g *upsert) error {
	ids := make([]string, len(g.entries))
	for i, e := range g.entries {
		ids[i] = e.ID
	}
	if len(ids) == 0 {
		return nil
	}
	if err := u.sync.add(ctx, ids); err != nil {
		return err
	}
	stored, err := u.index.Hashes(ctx, ids)
	if err != nil {
		return err
	}
	var changed []index.Entry
	for _, e := range g.entries {
		if !index.IsUnchanged(stored[e.ID], e.Hash) {
			changed = append(changed, e)
		}
	}
	u.counts.unchanged.Add(int64(len(g.entries) - len(changed)))
	if changed, err = u.embed(ctx, changed, g.failed); err != nil || len(changed) == 0 {
		return err
	}
	written := len(changed)
	if err = u.index.Put(ctx, changed); err != nil {
		partly, ok := errors.AsType[*index.PutError](err)
		if !ok {
			return err
		}
		for id, err := range partly.Rejected {
			g.failed[id] = err
			written--
		}
	}
	u.counts.written.Add(int64(written))
	return nil
}

// embed sets the missing vectors. Entries that cannot be embedded are left out and added
// to failed.
func (u *indexUpsert) embed(ctx context.Context, entries []index.Entry, failed map[string]error) ([]index.Entry, error) {
	var texts []string
	for _, e := range entries {
		if u.texts != nil && e.Vector == nil {
			texts = append(texts, e.Text)
		}
	}
	if len(texts) == 0 {
		return entries, nil
	}
	vectors, errs := u.texts.embed(ctx, texts)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ready, next := entries[:0], 0
	for _, e := range entries {
		if e.Vector == nil {
			var err error
			e.Vector, err = vectors[next], errs[next]
			next++
			if err != nil {
				failed[e.ID] = err
				continue
			}
		}
		ready = append(ready, e)
	}
	return ready, nil
}

// Failed is called for a row that failed before it reached the step.
func (u *indexUpsert) Failed(*Row) { u.sync.fail() }

// Close removes what the run did not contain, if the step syncs the index.
func (u *indexUpsert) Close(ctx context.Context, _ Emit) error {
	if u.sync == nil || ctx.Err() != nil {
		return nil //nolint:nilerr // a run that was stopped removes nothing
	}
	return u.sync.finish(ctx)
}
