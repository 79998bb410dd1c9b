package steps

import (
	"sync"
	"sync/atomic"
)

// rowPool is the memory of rows that were made of one row. When all of them are
// spent it serves the next rows: flows that take lists apart and put them
// together again would otherwise leave most of what they allocate to the collector.
type rowPool struct {
	rows   []Row
	values []any
	live   atomic.Int32 // the rows that are not spent
	home   *sync.Pool   // where it is kept for the next row
}

// clones are n copies as Clone makes them, made at once in a block of home.
func (r *Row) clones(n int, home *sync.Pool) []Row {
	width := len(r.Values)
	p, _ := home.Get().(*rowPool)
	if p == nil || len(p.rows) < n || len(p.values) < n*width {
		p = &rowPool{rows: make([]Row, n), values: make([]any, n*width), home: home}
	}
	p.live.Store(int32(n))
	rows := p.rows[:n]
	for i := range rows {
		rows[i] = *r
		rows[i].block = p
		rows[i].Values = p.values[i*width : (i+1)*width : (i+1)*width]
		copy(rows[i].Values, r.Values)
	}
	return rows
}

// release says that nobody will look at the rows any more: neither the one who
// says so nor any step or caller that they were emitted to.
func release(rows []*Row) {
	for _, r := range rows {
		p := r.block
		if p == nil {
			continue
		}
		r.block = nil
		if p.live.Add(-1) == 0 {
			clear(p.rows)
			clear(p.values)
			p.home.Put(p)
		}
	}
}
