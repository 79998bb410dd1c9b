package googleai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// maxRequests limits the requests for one answer.
const maxRequests = 20

// Generate sends one request, or several: an answer that Google ends with a token is
// continued with it, and a request whose signatures Google refuses is sent once more without
// them. model.WithRetry retries.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		p := *c.protocol
		chat := wire.NewChat(p.Server, &p, p.api)
		for n := 1; ; n++ {
			last, stopped, err := pass(chat.Generate(ctx, req), yield)
			switch {
			case stopped:
				return
			case err == nil && p.answer.token != "" && n < maxRequests:
				continue
			case err == nil && p.answer.token != "":
				last, err = model.Event{}, &model.Error{Model: p.Info.ID, Endpoint: p.Info.Endpoint, Message: fmt.Sprintf("the answer is not complete after %d requests (finish reason %s)", n, p.answer.finish)}
			case err != nil && !p.unsigned && refusesSignature(err):
				p.unsigned = true
				continue
			}
			yield(last, err)
			return
		}
	}
}

// pass passes the deltas of an answer on, and returns what ends it.
func pass(events iter.Seq2[model.Event, error], yield func(model.Event, error) bool) (last model.Event, stopped bool, err error) {
	for ev, err := range events {
		switch {
		case err != nil:
			return model.Event{}, false, err
		case ev.Response != nil:
			return ev, false, nil
		case !yield(ev, nil):
			return ev, true, nil
		}
	}
	return model.Event{}, true, nil
}

// refusesSignature reports whether a request was refused for a signature that is missing, or
// that another key or server has issued. Google has no code for it.
func refusesSignature(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && failure.Status == http.StatusBadRequest && strings.Contains(strings.ReplaceAll(strings.ToLower(failure.Message), "_", " "), "thought signature")
}
