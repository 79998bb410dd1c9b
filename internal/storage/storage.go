// Package storage holds what the stores of memories share: addresses, errors,
// timeouts, JSON records and paging.
package storage

import (
	"encoding/json"
	"iter"

	"github.com/qtype-dev/qtype/memory/store"
)

const (
	firstPage = 64      // entries
	maxPage   = 512     // entries
	pageBytes = 4 << 20 // target size: pages of large messages have fewer entries
)

// MaxSeq is greater than the Seq of every entry.
const MaxSeq = 1<<62 - 1

// Page is a part of a history.
type Page struct {
	Entries []*store.Entry // that match the query
	Rows    int            // rows read, including those that do not match
	Bytes   int            // approximate size of the rows
	Next    int64          // Seq at which the next page begins
}

// Entries yields the entries of a query page by page, so that a reader of a long
// history holds one page in memory and no connection while it works. read
// returns at most limit rows with a Seq of from or more; fewer end the range.
func Entries(q store.Query, read func(from int64, limit int) (Page, error)) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		limit := firstPage
		for from := max(q.From, 1); ; {
			p, err := read(from, limit)
			if !YieldAll(yield, p.Entries, err) || p.Rows < limit {
				return
			}
			from = p.Next
			limit = max(1, min(limit*2, maxPage, pageBytes*p.Rows/max(p.Bytes, 1)))
		}
	}
}

// YieldAll yields values, or err if it is not nil, and reports whether to read on.
func YieldAll[T any](yield func(T, error) bool, values []T, err error) bool {
	if err != nil {
		var zero T
		yield(zero, err)
		return false
	}
	for _, v := range values {
		if !yield(v, nil) {
			return false
		}
	}
	return true
}

// Record holds the parts of a change that stores write as JSON.
type Record struct {
	State    string
	Messages []string // of the change's entries, in the same order
	Events   []string // in the order of the change's events
}

// Encode converts a change.
func Encode(c store.Change) (Record, error) {
	var r Record
	state, err := json.Marshal(c.State)
	if err != nil {
		return r, err
	}
	r.State = string(state)
	for _, e := range c.Entries {
		raw, err := e.Message.MarshalJSON()
		if err != nil {
			return r, err
		}
		r.Messages = append(r.Messages, string(raw))
	}
	for _, e := range c.Events {
		raw, err := json.Marshal(e)
		if err != nil {
			return r, err
		}
		r.Events = append(r.Events, string(raw))
	}
	return r, nil
}

// Replaced holds the records of a replacement, as JSON.
type Replaced struct {
	Messages map[int64]string // by position
	Events   map[int64]string // by index
}

// EncodeReplacement converts a replacement.
func EncodeReplacement(r store.Replacement) (Replaced, error) {
	out := Replaced{Messages: make(map[int64]string, len(r.Messages)), Events: make(map[int64]string, len(r.Events))}
	for seq := range r.Messages {
		raw, err := r.Messages[seq].MarshalJSON()
		if err != nil {
			return out, err
		}
		out.Messages[seq] = string(raw)
	}
	for i := range r.Events {
		raw, err := json.Marshal(r.Events[i])
		if err != nil {
			return out, err
		}
		out.Events[i] = string(raw)
	}
	return out, nil
}
