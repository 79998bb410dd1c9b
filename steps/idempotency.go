package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"

	"github.com/qtype-dev/qtype/spec/chat"
)

// idempotencyKeys makes keys for the turns of a run: a resumed run finds turns that were
// committed just before the interruption.
type idempotencyKeys struct {
	run string // the run's id, the same after a resume

	mu     sync.Mutex
	counts map[int64]map[string]int // by the row's ordinal: how many equal turns it has had
}

// maxInFlight is how far behind the newest row an unfinished row may be.
const maxInFlight = 4096

type idempotencyKeysKey struct{}

// WithRunID returns a context in which turns have idempotency keys. A resumed run with
// the same id makes the same keys.
func WithRunID(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, idempotencyKeysKey{}, &idempotencyKeys{run: run, counts: map[int64]map[string]int{}})
}

// idempotencyKey returns the key of a turn of a row that adds msgs; empty in a run
// without an id.
func idempotencyKey(ctx context.Context, row *Row, msgs inputMessages) string {
	o, _ := ctx.Value(idempotencyKeysKey{}).(*idempotencyKeys)
	if o == nil {
		return ""
	}
	parts, ordinal := make([]byte, 0, 512), row.Ordinal
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		parts = append(strconv.AppendQuote(parts, s.step), ' ')
		ordinal = s.ordinal // the outermost call: that of the input row, of which a tool runs this row's flow
	}
	for i := range msgs { // without the ids, which may be new each time
		parts = appendDigestParts(parts, &msgs[i].Message)
	}
	sum := sha256.Sum256(parts)
	digest := hex.EncodeToString(sum[:])
	key := strconv.AppendInt(append(append(parts[:0], o.run...), ' '), ordinal, 10)
	key = append(append(append(key, ' '), digest...), ' ')
	return string(strconv.AppendInt(key, int64(o.count(ordinal, digest)), 10))
}

// appendDigestParts appends the quoted parts of a message. The form of keys never changes:
// a later version must find the keys of a run that it resumes.
func appendDigestParts(b []byte, m *chat.Message) []byte {
	b = append(b, '\n')
	for _, text := range [...]string{string(m.Role), m.Name, m.ToolCallID} {
		b = append(strconv.AppendQuote(b, text), ' ')
	}
	if calls := m.Calls(); len(calls) == 0 {
		b = append(b, "[]"...)
	} else {
		b = fmt.Appendf(b, "%q", calls)
	}
	for i := range m.Blocks {
		block := &m.Blocks[i]
		if block.Call != nil {
			continue
		}
		b = strconv.AppendQuote(append(b, ' '), block.Type)
		b = strconv.AppendQuote(append(b, ' '), block.Text)
		b = fmt.Appendf(append(b, ' '), "%q", block.Data)
		b = strconv.AppendQuote(append(b, ' '), block.MimeType)
	}
	return b
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
func (d *conversation) replayedAnswer(ctx context.Context, row *Row, added inputMessages) (*chat.Message, error) {
	if d.turn == nil {
		return nil, nil
	}
	key := idempotencyKey(ctx, row, added)
	if key == "" || !d.turn.SetIdempotencyKey(key) {
		return nil, nil
	}
	msgs, err := d.turn.PriorMessages(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(msgs); n > 0 && msgs[n-1].Role == chat.Assistant {
		handBackFrom(ctx).reread(msgs)
		return &msgs[n-1], nil
	}
	return nil, fmt.Errorf("an earlier run committed the turn, but its answer is no longer in the history")
}
