package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/spec/chat"
)

// idempotencyKeys names the turns of a run that may be interrupted and resumed: a turn
// that was kept just before the end is known when its row is done again.
type idempotencyKeys struct {
	run string // the run's name, the same after it was resumed

	mu    sync.Mutex
	asked map[int64]map[string]int // by the row's place: how often the same was said in the same step
}

// maxInFlight is how far behind the newest row a row may be that is still under way.
const maxInFlight = 4096

type operationsKey struct{}

// WithRunID gives the turns of a run names that are the same when a run of
// that name is resumed and does a row again.
func WithRunID(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, operationsKey{}, &idempotencyKeys{run: run, asked: map[int64]map[string]int{}})
}

// idempotencyKey names the turn that a step begins for a row by what it says; empty
// in a run that has no name.
func idempotencyKey(ctx context.Context, row *Row, msgs []chat.Message) string {
	o, _ := ctx.Value(operationsKey{}).(*idempotencyKeys)
	if o == nil {
		return ""
	}
	h, place := sha256.New(), row.Place
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		fmt.Fprintf(h, "%q ", s.step)
		place = s.place // at last the run's own row, whose tool runs the flow of this one
	}
	for i := range msgs { // without their ids, which may be new each time
		m := &msgs[i]
		fmt.Fprintf(h, "\n%q %q %q %q", m.Role, m.Name, m.ToolCallID, m.ToolCalls)
		for _, b := range m.Blocks {
			fmt.Fprintf(h, " %q %q %q %q", b.Type, b.Text, b.Data, b.MimeType)
		}
	}
	what := hex.EncodeToString(h.Sum(nil))
	return fmt.Sprintf("%s %d %s %d", o.run, place, what, o.count(place, what))
}

// count tells how often the same was said before in the row of a place.
func (o *idempotencyKeys) count(place int64, what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked[place] == nil {
		if len(o.asked) >= 2*maxInFlight {
			for old := range o.asked {
				if old>>ordinalBits == place>>ordinalBits && old < place-maxInFlight {
					delete(o.asked, old)
				}
			}
		}
		o.asked[place] = map[string]int{}
	}
	n := o.asked[place][what]
	o.asked[place][what] = n + 1
	return n
}

// replayedAnswer is the answer that the dialogue's turn kept when the row was done before;
// from then on the turn says nothing. It is nil where the turn is to be held.
func (d *conversation) replayedAnswer(ctx context.Context, row *Row, msgs []chat.Message) (*chat.Message, error) {
	if d.turn == nil {
		return nil, nil
	}
	operation := idempotencyKey(ctx, row, msgs)
	if operation == "" || !d.turn.SetIdempotencyKey(operation) {
		return nil, nil
	}
	said, err := d.turn.PriorMessages(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(said); n > 0 && said[n-1].Role == chat.Assistant {
		return &said[n-1], nil
	}
	return nil, fmt.Errorf("the turn was kept when the row was done before, and its answer is not there any more")
}
