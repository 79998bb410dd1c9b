// Package rowcounts numbers the equal things that the rows of a run do, such as the calls of their steps.
package rowcounts

import "sync"

// SegmentBits is how many bits of the ordinal of a row count the rows of one segment.
const SegmentBits = 48

// maxInFlight is how far behind the newest row an unfinished row may be. In batches of a server, 10,000 rows wait at once.
const maxInFlight = 1 << 14

// Counts counts equal things of each row. It remembers only rows that may be unfinished, so that a run needs no more memory for a
// million rows than for some thousands. The zero value is ready for use. It is safe for concurrent use.
type Counts[K comparable] struct {
	mu   sync.Mutex
	rows map[int64]map[K]int // by the ordinal
}

// Next returns how many equal things the row of an ordinal has done before.
func (c *Counts[K]) Next(ordinal int64, thing K) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.rows[ordinal]
	if row == nil {
		row = map[K]int{}
		c.forget(ordinal)
		c.rows[ordinal] = row
	}
	n := row[thing]
	row[thing] = n + 1
	return n
}

// forget removes rows that are finished when the row of an ordinal begins.
func (c *Counts[K]) forget(ordinal int64) {
	if c.rows == nil {
		c.rows = map[int64]map[K]int{}
	}
	if len(c.rows) < 2*maxInFlight {
		return
	}
	for old := range c.rows {
		if old>>SegmentBits == ordinal>>SegmentBits && old < ordinal-maxInFlight {
			delete(c.rows, old)
		}
	}
}
