package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
)

// callFitted sends a request. If the provider rejects it as too long, it is sent once more
// without the oldest rounds of the conversation. The provider's count of the request
// corrects the estimates of the memory.
func (s *llmStep) callFitted(ctx context.Context, row *Row, d *conversation, req model.Request, b memory.Budget) (*model.Response, error) {
	resp, err := s.call(ctx, row, req)
	if rejected, ok := errors.AsType[*model.Error](err); ok && d.turn != nil && rejected.TooLong {
		resp, err = s.callShortened(ctx, row, d, req, b, rejected)
	}
	if err == nil && d.turn != nil && !s.model.Info().Mock && resp.Model == "" {
		d.turn.Calibrate(resp.Usage.Input)
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

// callShortened sends a request again, without the oldest rounds.
func (s *llmStep) callShortened(ctx context.Context, row *Row, d *conversation, req model.Request, b memory.Budget, rejected *model.Error) (*model.Response, error) {
	window, left, ok, err := d.turn.FitRejected(b, memory.TooLong{Requested: rejected.Requested, Limit: rejected.Limit})
	if err != nil {
		return nil, fmt.Errorf("%w; %w", rejected, err)
	}
	if !ok {
		return nil, fmt.Errorf("%w; only the newest round was sent, which is never left out: shorten the question, the results of tools or the system message", rejected)
	}
	Report(ctx, s.event(row, Event{Kind: EventShortened, Text: fmt.Sprintf("the provider rejected the request as too long; it is sent again without the oldest %s", textfmt.Count(left, "message"))}))
	req.Messages = s.forModel(ctx, append(window[:len(window):len(window)], d.extra...))
	return s.call(ctx, row, req)
}
