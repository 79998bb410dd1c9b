package anthropic

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxWhole is the largest max_tokens of a request whose answer is not streamed. A longer answer
// may take more than ten minutes, and networks close connections that are idle for so long.
const maxWhole = 128000 / 6

// maxPauses is how often an answer that the provider paused is continued.
const maxPauses = 20

// Generate sends a request, and continues the answer as long as the provider pauses it.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return wire.Generate(ctx, func(ctx context.Context, emit wire.Emit) (*model.Response, error) {
		if !req.Stream && !c.batched && c.Info().MaxTokens > maxWhole {
			req.Stream, emit = true, func(model.Event) bool { return true }
		}
		answer, err := ask(ctx, c.Chat, req, emit)
		for pauses := 0; err == nil && answer.Finish == finishPause; pauses++ {
			if pauses == maxPauses {
				return nil, &model.Error{Model: c.Info().ID, Endpoint: c.Info().Endpoint, Message: fmt.Sprintf("the provider paused the answer %d times", maxPauses+1)}
			}
			next := req
			next.Messages = append(slices.Clip(req.Messages), answer.Message)
			var more *model.Response
			if more, err = ask(ctx, c.paused, next, emit); err == nil {
				answer = joined(answer, more)
			}
		}
		return answer, err
	})
}

// joined returns an answer with its continuation. A refused answer is discarded as a whole.
func joined(answer, more *model.Response) *model.Response {
	sum := *more
	sum.Usage = answer.Usage
	sum.Usage.Join(more.Usage)
	sum.Dropped = slices.Concat(answer.Dropped, more.Dropped)
	if more.Finish == "content_filter" {
		return &sum
	}
	sum.Message = answer.Message
	sum.Message.Blocks = joinedBlocks(answer.Message.Blocks, more.Message.Blocks)
	if sum.Message.Origin == nil {
		sum.Message.Origin = more.Message.Origin
	}
	if sum.Finish == "stop" && sum.Message.HasCalls() {
		sum.Finish = "tool_calls"
	}
	return &sum
}

// joinedBlocks appends blocks to others: text to a text, and citations at the end.
func joinedBlocks(first, next []chat.Block) []chat.Block {
	var blocks, citations []chat.Block
	for _, b := range slices.Concat(first, next) {
		n := len(blocks) - 1
		switch {
		case b.IsCitation():
			citations = append(citations, b)
		case b.Type == textType && b.Text == "":
		case n >= 0 && b.Type == textType && blocks[n].Type == textType:
			segments := append(segmentsOf(blocks[n]), segmentsOf(b)...)
			blocks[n].Text += b.Text
			if item, ok := segmentsItem(segments); ok {
				blocks[n].Item = &item
			}
		default:
			blocks = append(blocks, b)
		}
	}
	return append(blocks, citations...)
}

// ask sends a request and emits the deltas of the answer.
func ask(ctx context.Context, to wire.Chat, req model.Request, emit wire.Emit) (answer *model.Response, err error) {
	for ev, err := range to.Generate(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case ev.Response != nil:
			answer = ev.Response
		case !emit(ev):
			return nil, context.Canceled // the reader has stopped
		}
	}
	return answer, nil
}

// thinkingRefusal are words of a server that refuses thinking which it or another one has made.
var thinkingRefusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?i)invalid `?signature`? in `?thinking`?|thinking`? blocks? .*cannot be modified|bound to a different")
})

// RefusesReasoning reports whether a server refused the thinking in a request, because what precedes
// it has changed.
func (p *protocol) RefusesReasoning(failure *model.Error) bool {
	return failure.Status == http.StatusBadRequest && thinkingRefusal().MatchString(failure.Message)
}

// IsReasoning reports whether a block has thinking.
func (p *protocol) IsReasoning(b *chat.Block) bool { return isThinking(b) }
