package embedded

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/internal/words/stem"
)

// maxLimit bounds the number of matches, so that its multiples do not overflow. No index has as many
// entries.
const maxLimit = 100_000_000

// rankConstant is the constant of reciprocal rank fusion: a rank counts 1/(60+rank).
const rankConstant = 60

// hit is a found entry.
type hit struct {
	entry  int64
	id     string // set by identify
	score  float64
	vector []float32 // the exact one; nil if it was not read
}

// Search returns the best matches.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	if err := x.checkQuery(ctx, &q); err != nil {
		return nil, err
	}
	c, err := x.conn(ctx, false)
	if c == nil || err != nil {
		return nil, err
	}
	s := &searcher{x: x, ctx: ctx, c: c, q: q}
	matches, err := s.search()
	return matches, x.describe(ctx, err)
}

// Check returns the error of a search if it does not depend on the vector of the query. It reads the
// vectors of the index, which the search needs as well.
func (x *Index) Check(ctx context.Context, q index.Query) error {
	if err := x.checkQuery(ctx, &q); err != nil {
		return err
	}
	c, err := x.conn(ctx, false)
	if c == nil || err != nil || q.Mode == index.ByText {
		return err
	}
	found, err := x.refresh(ctx, c)
	if err != nil || !found {
		return x.describe(ctx, err)
	}
	k := &c.Statements.cache
	k.mu.RLock()
	defer k.mu.RUnlock()
	return x.checkModel(k, q.Model)
}

// checkQuery returns an error for a query that the index cannot answer.
func (x *Index) checkQuery(ctx context.Context, q *index.Query) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case q.Limit < 1:
		return errors.New("the limit of a search must be at least 1")
	}
	q.Limit = min(q.Limit, maxLimit)
	switch {
	case q.Mode == index.ByText:
		return nil
	case !x.opts.Vectors:
		return errors.New("the index has no vectors: use a VectorIndex, or search by text")
	}
	return nil
}

// searcher is one search.
type searcher struct {
	x     *Index
	ctx   context.Context
	c     *conn
	q     index.Query
	allow *bitmap // entries that match the filter; nil for all
	terms []queryTerm

	languages []stem.Language // by whose stems words are found
}

func (s *searcher) search() ([]index.Match, error) {
	if s.q.Filter != nil {
		var err error
		if s.allow, err = matching(s.ctx, s.c, s.q.Filter); err != nil {
			return nil, err
		}
	}
	switch s.q.Mode {
	case index.ByVector:
		hits, err := s.nearest(s.q.Limit)
		return s.load(hits, err)
	case index.ByText:
		hits, err := s.byText(s.q.Limit)
		return s.load(hits, err)
	}
	depth := max(50, 4*s.q.Limit)
	near, err := s.nearest(depth)
	if err != nil {
		return nil, err
	}
	found, err := s.byText(depth)
	return s.load(fuse(near, found), err)
}

// fuse combines two rankings by reciprocal rank fusion.
func fuse(rankings ...[]hit) []hit {
	byEntry := map[int64]*hit{}
	var order []int64
	for _, ranking := range rankings {
		for rank, h := range ranking {
			one := byEntry[h.entry]
			if one == nil {
				one = &hit{entry: h.entry, id: h.id, vector: h.vector}
				byEntry[h.entry], order = one, append(order, h.entry)
			}
			one.score += 1 / float64(rankConstant+rank+1)
		}
	}
	fused := make([]hit, len(order))
	for i, entry := range order {
		fused[i] = *byEntry[entry]
	}
	sortHits(fused)
	return fused
}

// sortHits sorts by score and id.
func sortHits(hits []hit) {
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
}

// identify sets the ids of hits, drops entries that were deleted meanwhile, and sorts.
func (s *searcher) identify(hits []hit) ([]hit, error) {
	ids := make(map[int64]string, len(hits))
	err := s.readColumn("SELECT entry, id FROM entries WHERE entry IN ", hits, func(entry int64, id []byte) { ids[entry] = string(id) })
	if err != nil {
		return nil, err
	}
	kept := hits[:0]
	for _, h := range hits {
		if id, found := ids[h.entry]; found {
			h.id = id
			kept = append(kept, h)
		}
	}
	sortHits(kept)
	return kept, nil
}

// readColumn reads a column of the entries of hits, which exist.
func (s *searcher) readColumn(query string, hits []hit, read func(entry int64, value []byte)) error {
	for len(hits) > 0 {
		part := hits[:min(len(hits), pageSize)]
		hits = hits[len(part):]
		if err := s.readPart(query, part, read); err != nil {
			return err
		}
	}
	return nil
}

func (s *searcher) readPart(query string, hits []hit, read func(entry int64, value []byte)) error {
	list := []byte(query)
	for i, h := range hits {
		list = strconv.AppendInt(append(list, "(,"[min(i, 1)]), h.entry, 10)
	}
	rows, err := s.c.Read.QueryContext(s.ctx, string(list)+")")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var entry int64
		var value sql.RawBytes
		if err := rows.Scan(&entry, &value); err != nil {
			return err
		}
		read(entry, value)
	}
	return rows.Err()
}

// load reads the entries of sorted hits.
func (s *searcher) load(hits []hit, err error) ([]index.Match, error) {
	if err != nil {
		return nil, err
	}
	matches := make([]index.Match, 0, min(len(hits), s.q.Limit))
	for _, h := range hits {
		if len(matches) == s.q.Limit {
			break
		}
		m := index.Match{Score: h.score}
		found, err := scanEntry(s.c.Statements.stored.QueryRowContext(s.ctx, h.entry), &m.Entry)
		if err != nil {
			return nil, err
		}
		if !found {
			continue // deleted since it was found
		}
		m.Vector = h.vector
		if s.q.Highlight && len(s.terms) > 0 {
			m.Highlights = s.highlights(s.x.shown(m.Entry))
		}
		matches = append(matches, m)
	}
	return matches, nil
}

// readVectors sets the exact vectors of hits; those of deleted entries stay nil.
func (s *searcher) readVectors(hits []hit) error {
	query := "SELECT entry, vector FROM vectors WHERE entry IN "
	if s.x.opts.Encoding == vectors.Float32 {
		query = "SELECT entry, code FROM codes WHERE entry IN "
	}
	exact := make(map[int64][]float32, len(hits))
	err := s.readColumn(query, hits, func(entry int64, value []byte) { exact[entry] = vectors.DecodeFloats(value) })
	for i := range hits {
		hits[i].vector = exact[hits[i].entry]
	}
	return err
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// scanEntry reads id, document, text, metadata and hash. It returns false without a row.
func scanEntry(row scanner, e *index.Entry) (bool, error) {
	var metadata []byte
	err := row.Scan(&e.ID, &e.Document, &e.Text, &metadata, &e.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.Metadata, err = decodeMetadata(metadata)
	return err == nil, err
}
