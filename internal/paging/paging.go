// Package paging reads long histories from servers piece by piece: a reader of
// a million messages holds a page of them, and no connection while it works.
package paging

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/memory"
)

const (
	firstPage = 64
	mostPage  = 512     // entries
	pageBytes = 4 << 20 // what a page should hold: pages of large messages are shorter
)

// Last is a number above every entry's.
const Last = 1<<62 - 1

// Page is a piece of a history.
type Page struct {
	Entries []*memory.Entry // those of it that the query wants
	Rows    int             // how many were read, unwanted ones included
	Bytes   int             // about how large they were
	Next    int64           // where the next page begins
}

// Entries yields what read finds, from q.From on. Read reads at most limit
// entries from a Seq on; one that finds fewer is the last one.
func Entries(q memory.Query, read func(from int64, limit int) (Page, error)) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		limit := firstPage
		for from := max(q.From, 1); ; {
			p, err := read(from, limit)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range p.Entries {
				if !yield(e, nil) {
					return
				}
			}
			if p.Rows < limit {
				return
			}
			from = p.Next
			limit = max(1, min(limit*2, mostPage, pageBytes*p.Rows/max(p.Bytes, 1)))
		}
	}
}

// Timeout is the cause of a context that ended because a server took too long.
type Timeout time.Duration

// Error names the time.
func (t Timeout) Error() string { return "it did not answer within " + time.Duration(t).String() }

// Within bounds one use of a server. The caller's own deadline holds as well.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, Timeout(limit))
}

// Cause tells why ctx, made by Within of a caller's context, has ended: slow is
// true where the server took too long, else err is the caller's reason to stop.
// Both are empty while it has not ended.
func Cause(ctx context.Context) (slow bool, err error) {
	if ctx.Err() == nil {
		return false, nil
	}
	var t Timeout
	if errors.As(context.Cause(ctx), &t) {
		return true, nil
	}
	return false, ctx.Err()
}
