package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/internal/words/stem"
)

// maxPerChange is the number of entries in one transaction; a larger Put has several.
const maxPerChange = 10_000

// settings returns what cannot change while there are entries.
func (x *Index) settings(st state) string {
	var parts []string
	if x.opts.Vectors {
		parts = append(parts, "vectors as "+map[vectors.Encoding]string{vectors.Float32: "float32", vectors.Int8: "int8"}[x.opts.Encoding])
	} else {
		parts = append(parts, "no vectors")
	}
	if x.opts.Fields {
		parts = append(parts, "words of all fields")
	}
	switch stemming := x.stemming(st); stemming {
	case "":
	case stemAuto:
		parts = append(parts, stemmedByLanguage)
	default:
		parts = append(parts, stemming+" word stems")
	}
	return strings.Join(parts, ", ")
}

// The stems of each text by its language, as the option and as a setting.
const stemAuto, stemmedByLanguage = "auto", "word stems by language"

// stemming returns how the words of the file are stored: as the option says, but auto keeps a file that
// has words without stems.
func (x *Index) stemming(st state) string {
	if x.opts.Stemming == stemAuto && st.settings != "" && !strings.HasSuffix(st.settings, stemmedByLanguage) {
		return ""
	}
	return x.opts.Stemming
}

// check returns an error if the file was written with other settings.
func (x *Index) check(st state) error {
	if st.settings != "" && st.settings != x.settings(st) {
		return userErrorf("index file %s was created with other settings (%s, not %s): restore them, or clear the index", x.opts.Path, st.settings, x.settings(st))
	}
	if st.dimensions != 0 && x.opts.Dimensions != 0 && st.dimensions != x.opts.Dimensions {
		return userErrorf("index file %s has vectors of length %d, the model returns %d: use the same model, or clear the index", x.opts.Path, st.dimensions, x.opts.Dimensions)
	}
	return nil
}

// Put inserts or replaces entries. Those with an invalid vector or metadata are rejected.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	if len(entries) == 0 {
		return ctx.Err()
	}
	x.write.Lock()
	defer x.write.Unlock()
	c, err := x.conn(ctx, true)
	if err != nil {
		return err
	}
	rejected := map[string]error{}
	for len(entries) > 0 {
		part := entries[:min(len(entries), maxPerChange)]
		entries = entries[len(part):]
		if err := x.putPart(ctx, c, part, rejected); err != nil {
			return x.describe(ctx, err)
		}
	}
	if err := x.cluster(ctx, c); err != nil {
		return x.describe(ctx, err)
	}
	if len(rejected) > 0 {
		return &index.PutError{Rejected: rejected}
	}
	return nil
}

// putPart writes entries in one transaction.
func (x *Index) putPart(ctx context.Context, c *conn, entries []index.Entry, rejected map[string]error) error {
	var w *writer
	err := c.Change(ctx, func(tx *sql.Tx) error {
		var err error
		if w, err = x.begin(ctx, c, tx); err != nil {
			return err
		}
		last := map[string]int{}
		for i := range entries {
			last[entries[i].ID] = i
		}
		for i := range entries {
			if last[entries[i].ID] != i {
				continue // a later one replaces it
			}
			if reason, err := w.put(&entries[i]); err != nil {
				return err
			} else if reason != nil {
				rejected[entries[i].ID] = reason
			}
		}
		return w.end()
	})
	if err == nil {
		c.Statements.vocab.written(w.terms)
	}
	return err
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	x.write.Lock()
	defer x.write.Unlock()
	c, err := x.conn(ctx, false)
	if c == nil || err != nil {
		return err
	}
	return x.describe(ctx, c.Change(ctx, func(tx *sql.Tx) error {
		w, err := x.begin(ctx, c, tx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := w.remove(id); err != nil {
				return err
			}
		}
		return w.end()
	}))
}

// writer is one transaction.
type writer struct {
	x          *Index
	ctx        context.Context
	tx         *sql.Tx
	s          *statements
	state      state
	dimensions int
	row        *vectors.Matrix // encodes one vector; nil before the first
	centers    *vectors.Matrix // of the clusters; nil for none
	fields     map[string]int64
	terms      map[string]struct{}    // that are new to this process
	languages  map[stem.Language]bool // that this transaction has added
	model      string                 // of the entries that were written last; empty for unknown
}

func (x *Index) begin(ctx context.Context, c *conn, tx *sql.Tx) (*writer, error) {
	w := &writer{x: x, ctx: ctx, tx: tx, s: c.Statements, terms: map[string]struct{}{}, languages: map[stem.Language]bool{}}
	err := tx.QueryRowContext(ctx, "SELECT generation, writes, dimensions, settings, clustered FROM state").
		Scan(&w.state.generation, &w.state.writes, &w.state.dimensions, &w.state.settings, &w.state.clustered)
	if err != nil {
		return nil, err
	}
	if err := x.check(w.state); err != nil {
		return nil, err
	}
	if w.model, err = lastModel(ctx, tx); err != nil {
		return nil, err
	}
	w.s.vocab.follow(w.state.generation)
	w.dimensions = max(w.state.dimensions, x.opts.Dimensions)
	if w.state.clustered > 0 {
		if w.centers, err = x.centers(ctx, tx, w.state); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *writer) end() error {
	dimensions := 0
	if w.x.opts.Vectors {
		dimensions = w.dimensions
	}
	_, err := w.tx.ExecContext(w.ctx, "UPDATE state SET writes = writes + 1, dimensions = ?, settings = ?", dimensions, w.x.settings(w.state))
	return err
}

// put writes an entry, or returns why it is rejected.
func (w *writer) put(e *index.Entry) (rejected, err error) {
	if rejected := w.checkEntry(e); rejected != nil {
		return rejected, nil
	}
	metadata := ""
	if e.Metadata != nil {
		raw, err := json.Marshal(e.Metadata)
		if err != nil {
			return fmt.Errorf("the metadata cannot be stored as JSON"), nil
		}
		metadata = string(raw)
	}
	if err := w.remove(e.ID); err != nil {
		return nil, err
	}
	if err := w.recordModel(e.Model); err != nil {
		return nil, err
	}
	result, err := w.exec(w.s.insert, e.ID, e.Document, e.Text, metadata, e.Hash)
	if err != nil {
		return nil, err
	}
	number, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	if w.x.opts.Vectors {
		if err := w.putVector(number, e.Vector); err != nil {
			return nil, err
		}
	}
	return nil, w.putWords(number, e)
}

// checkEntry returns why an entry cannot be stored.
func (w *writer) checkEntry(e *index.Entry) error {
	switch {
	case e.ID == "":
		return errors.New("the id is empty")
	case !w.x.opts.Vectors:
		return nil
	case len(e.Vector) == 0:
		return errors.New("the chunk has no vector: put a DocumentEmbedder before the IndexUpsert")
	case len(e.Vector) > vectors.MaxDimensions:
		return fmt.Errorf("the vector has %d dimensions, more than %d", len(e.Vector), vectors.MaxDimensions)
	}
	for _, v := range e.Vector {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return errors.New("the vector has a value that is not a finite number")
		}
	}
	if w.dimensions == 0 {
		w.dimensions = len(e.Vector)
	}
	if len(e.Vector) != w.dimensions {
		return fmt.Errorf("the vector has length %d, those of the index %d", len(e.Vector), w.dimensions)
	}
	return nil
}

func (w *writer) exec(s *sql.Stmt, args ...any) (sql.Result, error) {
	return w.tx.StmtContext(w.ctx, s).ExecContext(w.ctx, args...)
}

// putVector writes the vector of an entry.
func (w *writer) putVector(entry int64, vector []float32) error {
	w.row = vectors.NewMatrix(w.x.opts.Encoding, w.dimensions)
	w.row.Append(vector)
	cell := partOf(entry)
	if w.centers != nil {
		cell = int64(w.centers.Nearest(w.centers.NewQuery(vector))) + 1
	}
	if _, err := w.exec(w.s.code, cell, entry, w.row.Encode(0)); err != nil {
		return err
	}
	if w.x.opts.Encoding == vectors.Float32 {
		return nil
	}
	_, err := w.exec(w.s.vector, entry, vectors.EncodeFloats(vector))
	return err
}

// remove deletes the entry of an id, if there is one.
func (w *writer) remove(id string) error {
	var entry, cell int64
	err := w.tx.StmtContext(w.ctx, w.s.find).QueryRowContext(w.ctx, id).Scan(&entry, &cell)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := w.removeWords(entry); err != nil {
		return err
	}
	if _, err := w.exec(w.s.removeEntry, entry); err != nil {
		return err
	}
	if !w.x.opts.Vectors {
		return nil
	}
	if _, err := w.exec(w.s.removeCode, cell, entry); err != nil {
		return err
	}
	if _, err := w.exec(w.s.removeVector, entry); err != nil {
		return err
	}
	_, err = w.exec(w.s.deleted, entry, cell)
	return err
}
