package sharedlimit

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
)

// Counted returns the tokens that count for a key.
func Counted(ctx context.Context, app store.Application, key string) (tokens int, err error) {
	q := newQuota(app, key, time.Minute)
	err = q.cell.update(ctx, func(r reading) ([]byte, error) {
		l, err := decodeCounts(r.value)
		if err != nil {
			return nil, err
		}
		l.do(&exchange{}, r.now, 0, q.spans)
		_, tokens = l.sums()
		return nil, nil
	})
	return tokens, err
}
