package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/spec/chat"
)

// idempotencyKeys makes keys for the turns of a run, so that a run that is resumed
// finds the turns that were committed just before it was interrupted.
type idempotencyKeys struct {
	run string // the run's id, the same after a resume

	mu     sync.Mutex
	counts map[int64]map[string]int // by the row's ordinal: how many equal turns it has had
}

// maxInFlight is how far behind the newest row an unfinished row may be.
const maxInFlight = 4096

type idempotencyKeysKey struct{}

// WithRunID returns a context in which turns have idempotency keys that are the same
// when a run of that id is resumed and repeats a row.
func WithRunID(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, idempotencyKeysKey{}, &idempotencyKeys{run: run, counts: map[int64]map[string]int{}})
}

// idempotencyKey returns the key of a turn of a row that adds msgs; empty in a run
// without an id.
func idempotencyKey(ctx context.Context, row *Row, msgs []chat.Message) string {
	o, _ := ctx.Value(idempotencyKeysKey{}).(*idempotencyKeys)
	if o == nil {
		return ""
	}
	h, ordinal := sha256.New(), row.Ordinal
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		fmt.Fprintf(h, "%q ", s.step)
		ordinal = s.ordinal // the outermost call: that of the input row, of which a tool runs this row's flow
	}
	for i := range msgs { // without the ids, which may be new each time
		m := &msgs[i]
		fmt.Fprintf(h, "\n%q %q %q %q", m.Role, m.Name, m.ToolCallID, m.ToolCalls)
		for _, b := range m.Blocks {
			fmt.Fprintf(h, " %q %q %q %q", b.Type, b.Text, b.Data, b.MimeType)
		}
	}
	digest := hex.EncodeToString(h.Sum(nil))
	return fmt.Sprintf("%s %d %s %d", o.run, ordinal, digest, o.count(ordinal, digest))
}

// count returns how many turns with the digest the row of an ordinal has had.
func (o *idempotencyKeys) count(ordinal int64, digest string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts[ordinal] == nil {
		if len(o.counts) >= 2*maxInFlight {
			for old := range o.counts {
				if old>>ordinalBits == ordinal>>ordinalBits && old < ordinal-maxInFlight {
					delete(o.counts, old)
				}
			}
		}
		o.counts[ordinal] = map[string]int{}
	}
	n := o.counts[ordinal][digest]
	o.counts[ordinal][digest] = n + 1
	return n
}

// replayedAnswer returns the answer that an earlier run committed for this turn, nil
// if the turn has to be run. With an answer, the turn adds no messages.
func (d *conversation) replayedAnswer(ctx context.Context, row *Row, msgs []chat.Message) (*chat.Message, error) {
	if d.turn == nil {
		return nil, nil
	}
	key := idempotencyKey(ctx, row, msgs)
	if key == "" || !d.turn.SetIdempotencyKey(key) {
		return nil, nil
	}
	msgs, err := d.turn.PriorMessages(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(msgs); n > 0 && msgs[n-1].Role == chat.Assistant {
		return &msgs[n-1], nil
	}
	return nil, fmt.Errorf("an earlier run committed the turn, but its answer is no longer in the history")
}
