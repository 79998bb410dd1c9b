package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// callFitted sends a request. If the provider rejects it as too long, or without a reason
// although no larger one was accepted before, it is sent again without the oldest rounds of
// the conversation, down to the newest one. What was accepted, and the provider's count of it,
// correct the estimates of the memory.
func (s *llmStep) callFitted(ctx context.Context, row *Row, d *conversation, req model.Request, b memory.Budget) (*model.Response, error) {
	resp, err := s.call(ctx, row, d, req)
	if d.turn == nil {
		return resp, err
	}
	for first := err; err != nil; {
		rejected, ok := errors.AsType[*model.Error](err)
		if !ok || !rejected.TooLong && (!rejected.Opaque || !d.turn.IsLargest()) {
			break
		}
		suspected := !rejected.TooLong
		window, failed := s.shorten(ctx, row, d, b, rejected)
		switch {
		case failed != nil && suspected:
			return nil, first
		case failed != nil:
			return nil, fmt.Errorf("%w; %w", rejected, failed)
		}
		req.Messages = window
		s.require(ctx, &req)
		if resp, err = s.call(ctx, row, d, req); suspected && err != nil {
			if again, ok := errors.AsType[*model.Error](err); ok && again.Opaque {
				err = first // the same, of the whole request
			}
		}
	}
	if err == nil && !s.model.Info().Mock && resp.Model == "" {
		counted := resp.Usage.Input
		if resp.Usage.Estimated {
			counted = 0
		}
		d.turn.Calibrate(counted)
	}
	return resp, err
}

// reportRepairs reports, once for each session, that tool calls of the conversation have no
// results, or results no calls.
func (s *llmStep) reportRepairs(ctx context.Context, row *Row, d *conversation) {
	if d.turn == nil || d.repairs {
		return
	}
	if n, isNew := d.turn.Repairs(); isNew {
		d.repairs = true
		Report(ctx, s.event(row, Event{Kind: EventRepaired, Text: fmt.Sprintf("the conversation has tool calls without results, or results without calls: %s in the request", textfmt.Count(n, "repair"))}))
	}
}

// shorten returns the messages of a request that follows a rejected one: without the oldest
// rounds.
func (s *llmStep) shorten(ctx context.Context, row *Row, d *conversation, b memory.Budget, rejected *model.Error) ([]chat.Message, error) {
	window, left, ok, err := d.turn.FitRejected(b, memory.TooLong{Requested: rejected.Requested, Limit: rejected.Limit, Suspected: !rejected.TooLong})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("only the newest round was sent, which is never left out: shorten the question, the results of tools or the system message")
	}
	why := "as too long"
	if !rejected.TooLong {
		why = fmt.Sprintf("without a reason (HTTP %d), and none as large was accepted before", rejected.Status)
	}
	Report(ctx, s.event(row, Event{Kind: EventShortened, Text: fmt.Sprintf("the provider rejected the request %s; it is sent again without the oldest %s", why, textfmt.Count(left, "message"))}))
	return s.forModel(ctx, d.withExtra(window)), nil
}
