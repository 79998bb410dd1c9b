package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// pageSize is the number of entries that a listing reads at a time.
const pageSize = 500

// Entries lists entries in the order of their ids.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		left := p.Limit
		for after := p.After; ; {
			page, err := x.page(ctx, after)
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			for _, e := range page {
				after = e.ID
				if p.Filter != nil && !p.Filter.Match(e.Metadata) {
					continue
				}
				if left--; !yield(e, nil) || left == 0 {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

// page reads the entries after an id.
func (x *Index) page(ctx context.Context, after string) (list []index.Entry, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c, err := x.conn(ctx, false)
	if c == nil || err != nil {
		return nil, err
	}
	rows, err := c.Read.QueryContext(ctx, "SELECT id, document, text, metadata, hash FROM entries WHERE id > ? ORDER BY id LIMIT ? + 0", after, pageSize)
	if err != nil {
		return nil, x.describe(ctx, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e index.Entry
		if _, err := scanEntry(rows, &e); err != nil {
			return nil, x.describe(ctx, err)
		}
		list = append(list, e)
	}
	return list, x.describe(ctx, rows.Err())
}

// Hashes returns the hashes of entries.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	hashes := map[string]string{}
	c, err := x.conn(ctx, false)
	if c == nil || err != nil {
		return hashes, err
	}
	for len(ids) > 0 {
		part := ids[:min(len(ids), pageSize)]
		ids = ids[len(part):]
		if err := readHashes(ctx, c, part, hashes); err != nil {
			return nil, x.describe(ctx, err)
		}
	}
	return hashes, nil
}

func readHashes(ctx context.Context, c *conn, ids []string, to map[string]string) error {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := c.Read.QueryContext(ctx, "SELECT id, hash FROM entries WHERE id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", args...) //nolint:gosec // only placeholders are added
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, hash string
		if err := rows.Scan(&id, &hash); err != nil {
			return err
		}
		to[id] = hash
	}
	return rows.Err()
}

// readFields returns the numbers of the fields.
func readFields(ctx context.Context, db querier) (map[string]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT name, field FROM fields")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	fields := map[string]int64{}
	for rows.Next() {
		var name string
		var number int64
		if err := rows.Scan(&name, &number); err != nil {
			return nil, err
		}
		fields[name] = number
	}
	return fields, rows.Err()
}

// decodeMetadata is the reverse of what put stores: whole numbers are int64.
func decodeMetadata(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		return nil, errors.New("damaged: the metadata of an entry is not JSON")
	}
	for key, v := range m {
		m[key] = restoreNumbers(v)
	}
	return m, nil
}

// restoreNumbers converts numbers to int64, or to float64 where they are not whole.
func restoreNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if whole, err := x.Int64(); err == nil {
			return whole
		}
		f, _ := x.Float64()
		return f
	case []any:
		for i := range x {
			x[i] = restoreNumbers(x[i])
		}
	case map[string]any:
		for key := range x {
			x[key] = restoreNumbers(x[key])
		}
	}
	return v
}

// bitmap is a set of numbers of entries.
type bitmap struct {
	last int64 // greatest number that was checked
	bits []uint64
}

func (b *bitmap) has(entry int64) bool {
	return b == nil || entry>>6 < int64(len(b.bits)) && b.bits[entry>>6]&(1<<(entry&63)) != 0
}

func (b *bitmap) add(entry int64) {
	for int64(len(b.bits)) <= entry>>6 {
		b.bits = append(b.bits, 0)
	}
	b.bits[entry>>6] |= 1 << (entry & 63)
}

// matching returns the entries whose metadata match a filter. The result is kept, because
// a step always has the same filter, and extended by the entries that were added.
func matching(ctx context.Context, c *conn, f filter.Filter) (*bitmap, error) {
	key := filterKey(f)
	c.Statements.allow.mu.Lock()
	defer c.Statements.allow.mu.Unlock()
	known := c.Statements.allow.byFilter[key]
	next := &bitmap{}
	if known != nil {
		next.last = known.last
	}
	rows, err := c.Read.QueryContext(ctx, "SELECT entry, metadata FROM entries WHERE entry > ? ORDER BY entry", next.last)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for added := false; rows.Next(); added = true {
		if !added && known != nil {
			next.bits = append(next.bits, known.bits...) // searches that run use the old one
		}
		var metadata []byte
		if err := rows.Scan(&next.last, &metadata); err != nil {
			return nil, err
		}
		m, err := decodeMetadata(metadata)
		if err != nil {
			return nil, err
		}
		if f.Match(m) {
			next.add(next.last)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if known != nil && next.last == known.last {
		return known, nil
	}
	c.Statements.allow.keep(key, next)
	return next, nil
}
