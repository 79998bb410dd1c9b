package bedrock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// Generate sends one request; model.WithRetry retries. If the model refuses the reasoning in it,
// because what precedes the reasoning has changed, it is sent without that of earlier turns, and
// then without any.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ends := []int{wire.TurnStart(req.Messages), len(req.Messages)}
		for {
			refused := c.pass(ctx, req, yield, len(ends) > 0)
			if !refused {
				return
			}
			req.Messages, ends = withoutReasoning(req.Messages, ends[0]), ends[1:]
		}
	}
}

// pass sends one request and passes its answer on. It reports whether the reasoning in it was
// refused, which is the error of the answer if the request is not sent again.
func (c *Client) pass(ctx context.Context, req model.Request, yield func(model.Event, error) bool, again bool) (refused bool) {
	for ev, err := range c.Chat.Generate(ctx, req) {
		if again && refusesReasoning(err) {
			return true
		}
		again = false // a part of the answer was passed on
		if !yield(ev, c.withProfiles(err)) || err != nil {
			return false
		}
	}
	return false
}

// refusesReasoning reports whether a model refused the reasoning in a request. Bedrock passes on
// the text of Anthropic, which has no code for it.
func refusesReasoning(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	if !ok || failure.Status != http.StatusBadRequest {
		return false
	}
	text := strings.ReplaceAll(strings.ToLower(failure.Message), "`", "")
	return strings.Contains(text, "thinking") && (strings.Contains(text, "invalid signature") || strings.Contains(text, "cannot be modified"))
}

// withProfiles completes the error of a model that Bedrock serves by inference profiles only: it
// names those that contain the model.
func (c *Client) withProfiles(err error) error {
	failure, ok := errors.AsType[*model.Error](err)
	known := c.Info().Known
	if !ok || failure.Status != http.StatusBadRequest || known == nil || len(known.Profiles) == 0 || !strings.Contains(failure.Message, "inference profile") {
		return err
	}
	var ids []string
	for _, prefix := range slices.Sorted(maps.Keys(known.Profiles)) {
		ids = append(ids, known.Profiles[prefix].ID)
	}
	named := *failure
	named.Message = fmt.Sprintf("%s Set model_id to a profile: %s", failure.Message, strings.Join(ids, ", "))
	return &named
}
