package steps

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/model"
)

// Ask calls a model for a tool of a step. Its cost is reported as that of the step. An
// answer that reached the limit of its tokens is truncated.
func Ask(ctx context.Context, m model.Chat, id string, req model.Request) (answer *model.Response, truncated bool, err error) {
	answer, err = model.Call(ctx, m, req, nil)
	var incomplete *model.IncompleteError
	if errors.As(err, &incomplete) && incomplete.Finish == "length" {
		answer, truncated, err = &incomplete.Answer, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	usage := answer.Usage
	if truncated {
		usage = incomplete.Usage
	}
	reportUsage(ctx, Event{Input: usage.Input, Output: usage.Output, Cached: usage.Cached, Cost: usage.Cost, Model: id})
	return answer, truncated, nil
}
