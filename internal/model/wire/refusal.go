package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reasoningProtocol is a Protocol whose servers can refuse the reasoning that goes back to them.
type reasoningProtocol interface {
	// RefusesReasoning reports whether an error refuses the reasoning in a request.
	RefusesReasoning(failure *model.Error) bool
	// IsReasoning reports whether a block is reasoning that a request can do without.
	IsReasoning(b *chat.Block) bool
}

// withReasoning sends a request. If the provider refuses the reasoning in it, it is sent without the
// reasoning of earlier turns, and then without any.
func (c Chat) withReasoning(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	p, ok := c.protocol.(reasoningProtocol)
	if !ok {
		return c.whole(ctx, req, emit)
	}
	messages, dropped := withoutBlocks(req.Messages, len(req.Messages), func(m *chat.Message, b *chat.Block) bool { return p.IsReasoning(b) && c.refused.has(m.ID) })
	req.Messages = messages
	answer, err := c.whole(ctx, req, emit)
	for _, end := range []int{TurnStart(messages), len(messages)} {
		failure, ok := errors.AsType[*model.Error](err)
		if !ok || !p.RefusesReasoning(failure) {
			break
		}
		kept, ids := withoutBlocks(req.Messages, end, func(_ *chat.Message, b *chat.Block) bool { return p.IsReasoning(b) })
		if len(ids) == 0 {
			continue
		}
		req.Messages, dropped = kept, slices.Concat(dropped, ids)
		if answer, err = c.whole(ctx, req, emit); err == nil {
			c.refused.add(dropped)
		}
	}
	if len(dropped) > 0 {
		noteDropped(answer, err, fmt.Sprintf("the reasoning of %s, which the provider refused", textfmt.Count(len(dropped), "earlier answer")))
	}
	return answer, err
}

// withoutBlocks returns messages without some of the blocks before a message, and the ids of those
// that had some.
func withoutBlocks(messages []chat.Message, end int, leave func(*chat.Message, *chat.Block) bool) (kept []chat.Message, ids []string) {
	kept = messages
	for i := range messages[:end] {
		m := &messages[i]
		first := 0
		for first < len(m.Blocks) && !leave(m, &m.Blocks[first]) {
			first++
		}
		if first == len(m.Blocks) {
			continue
		}
		if ids == nil {
			kept = slices.Clone(messages)
		}
		blocks := slices.Clone(m.Blocks[:first])
		for j := first + 1; j < len(m.Blocks); j++ {
			if !leave(m, &m.Blocks[j]) {
				blocks = append(blocks, m.Blocks[j])
			}
		}
		kept[i].Blocks, ids = blocks, append(ids, m.ID)
	}
	return kept, ids
}

// maxRefusals is how many messages a client remembers.
const maxRefusals = 4096

// refusals are messages whose reasoning the provider has refused, so that the next request of their
// conversation is not refused too. Their loss costs one request. It is safe for concurrent use.
type refusals struct {
	mu  sync.Mutex
	ids map[string]bool
}

// add remembers messages by their ids.
func (r *refusals) add(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil || len(r.ids) > maxRefusals {
		r.ids = map[string]bool{}
	}
	for _, id := range ids {
		if id != "" {
			r.ids[id] = true
		}
	}
}

// has reports whether a message is known.
func (r *refusals) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id]
}
