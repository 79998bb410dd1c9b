package steps

import (
	"sync"
	"sync/atomic"
)

// rowPool is a block of rows that were made of one row. Once all of them are released
// the block is reused: flows that expand and collect lists would otherwise leave most
// of what they allocate to the garbage collector.
type rowPool struct {
	rows   []Row
	values []any
	live   atomic.Int32 // rows that are not released
	home   *sync.Pool   // the pool that the block returns to
}

// clones returns n copies like those of Clone, allocated in one block of home.
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

// release returns rows to their pools. The caller, and every step and caller that the
// rows were emitted to, must not use them afterwards.
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
