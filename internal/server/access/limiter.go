package access

import (
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// maxBuckets is how many callers a limiter remembers. The callers that were idle longest
// are forgotten first; they may then send a new burst.
const maxBuckets = 10_000

// limiter limits the rate of each caller by a token bucket. Its memory is bounded
// for any number of callers. It is safe for concurrent use.
type limiter struct {
	rate    rate.Limit
	burst   int
	buckets *lru.Cache[string, *rate.Limiter]
}

// newLimiter returns a limiter, nil for no limit.
func newLimiter(perSecond float64, burst int) (*limiter, error) {
	if perSecond < 0 {
		return nil, nil
	}
	buckets, err := lru.New[string, *rate.Limiter](maxBuckets)
	if err != nil {
		return nil, err
	}
	if burst < 0 {
		burst = math.MaxInt32
	}
	return &limiter{rate.Limit(perSecond), max(burst, 1), buckets}, nil
}

// take takes one token of a caller. If there is none, it returns how long the caller
// should wait. l may be nil.
func (l *limiter) take(caller string) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	bucket, found := l.buckets.Get(caller)
	if !found {
		bucket = rate.NewLimiter(l.rate, l.burst)
		if previous, exists, _ := l.buckets.PeekOrAdd(caller, bucket); exists {
			bucket = previous
		}
	}
	now := time.Now()
	reserved := bucket.ReserveN(now, 1)
	wait = reserved.DelayFrom(now)
	if wait == 0 {
		return 0, true
	}
	reserved.CancelAt(now)
	return max(wait, time.Second), false
}

// gauge counts what callers have open at the same time. It only knows callers that
// have something open. It is safe for concurrent use.
type gauge struct {
	limit int // of one caller, negative for none

	mu   sync.Mutex
	open map[string]int
}

func newGauge(limit int) *gauge { return &gauge{limit: limit, open: map[string]int{}} }

// acquire counts one more of a caller, unless it has reached the limit.
func (g *gauge) acquire(caller string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit >= 0 && g.open[caller] >= g.limit {
		return false
	}
	g.open[caller]++
	return true
}

// release counts one less.
func (g *gauge) release(caller string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[caller]--; g.open[caller] <= 0 {
		delete(g.open, caller)
	}
}
