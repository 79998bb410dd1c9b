package openai

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// background makes calls of the Responses API in the background, for less if they may take hours. Each is a batch of its own,
// whose id is that of its response. It implements wire.Batches.
type background struct {
	*wire.Server
	address string // of responses
	header  http.Header
	window  string
}

// callKey is the key of the metadata of a response that has the id of its call.
const callKey = "qtype_call"

// NewBackground makes what calls the Responses API of OpenAI in the background, within a window such as 2h. It calls nothing.
func NewBackground(c Config, window string) (wire.Batches, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "response", Example: example})
	if err != nil {
		return nil, err
	}
	return &background{Server: s, address: strings.TrimSuffix(s.Base.String(), "/") + "/responses", header: bearer(s.Key), window: window}, nil
}

// Limits returns that each batch is one call.
func (b *background) Limits() wire.BatchLimits {
	return wire.BatchLimits{Calls: 1, Bytes: 1 << 40, Single: true}
}

// Method returns the method of a call.
func (b *background) Method(u *url.URL) string {
	if strings.HasSuffix(u.Path, "/responses") {
		return "/v1/responses"
	}
	return ""
}

// Head returns nil: calls have no headers of their own.
func (b *background) Head(http.Header) http.Header { return nil }

// at returns a request about a response.
func (b *background) at(method, id, action string) wire.Exchange {
	return wire.Exchange{Method: method, URL: b.address + "/" + url.PathEscape(id) + action, Header: maps.Clone(b.header)}
}

// Create begins the call. The response is stored, because it would be deleted minutes after its end otherwise.
func (b *background) Create(ctx context.Context, batch *wire.Batch) (id string, err error) {
	for c, err := range batch.Calls() {
		if err != nil {
			return "", &wire.UnsentError{Err: err}
		}
		body, err := b.body(c)
		if err != nil {
			return "", &wire.UnsentError{Err: err}
		}
		var made response
		err = b.ExchangeJSON(ctx, wire.Exchange{Method: http.MethodPost, URL: b.address, Header: maps.Clone(b.header)}, body, &made)
		if err == nil && made.ID == "" {
			err = b.BatchError("the answer to a call in the background has no id")
		}
		return made.ID, err
	}
	return "", &wire.UnsentError{Err: b.BatchError("a call in the background is not stored any more")}
}

// body returns the request of a call in the background.
func (b *background) body(c wire.BatchCall) (object, error) {
	var body, metadata object
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return nil, b.BatchError("a call in the background is no object: %v", err)
	}
	if raw := body["metadata"]; isSet(raw) && json.Unmarshal(raw, &metadata) != nil {
		return nil, b.BatchError("metadata is no object")
	}
	if metadata == nil {
		metadata = object{}
	}
	metadata[callKey] = encode(c.ID)
	body["background"], body["store"], body["metadata"] = encode(true), encode(true), encode(metadata)
	body["background_options"] = encode(map[string]string{"completion_window": b.window})
	return body, nil
}

// Find returns that nothing can be found.
func (b *background) Find(context.Context, *wire.Batch, func(string) bool) (string, error) {
	return "", wire.ErrUnlisted
}

// response is the state of a response.
type response struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Error    json.RawMessage   `json:"error"`
}

// read reads a response, and its text.
func (b *background) read(ctx context.Context, id string) (made response, raw json.RawMessage, err error) {
	if err = b.ExchangeJSON(ctx, b.at(http.MethodGet, id, ""), nil, &raw); err == nil {
		if err = json.Unmarshal(raw, &made); err != nil {
			err = b.BatchError("a response in the background is not valid: %v", err)
		}
	}
	return made, raw, err
}

// State returns the state of a response.
func (b *background) State(ctx context.Context, id string) (wire.BatchState, error) {
	made, _, err := b.read(ctx, id)
	state := wire.BatchState{Word: made.Status}
	switch made.Status {
	case "completed", "failed", "incomplete":
		state.Ended, state.Made = true, 1
	case "cancelled":
		state.Ended, state.Canceled = true, true
	}
	return state, err
}

// Results returns the answer as that of a call which is made at once. A response that has failed has the status of its error.
func (b *background) Results(ctx context.Context, id string, take func(wire.BatchResult) error) error {
	made, raw, err := b.read(ctx, id)
	if err != nil || made.Status == "cancelled" {
		return err
	}
	result := wire.BatchResult{ID: made.Metadata[callKey], Status: http.StatusOK, Body: raw}
	if made.Status == "failed" {
		var failed struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(made.Error, &failed) // an unknown error otherwise
		result.Status = wire.StatusOf(failed.Code)
		result.Body = encode(map[string]any{"error": map[string]string{"type": failed.Code, "code": failed.Code, "message": failed.Message}})
	}
	return take(result)
}

// Cancel cancels a response.
func (b *background) Cancel(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.at(http.MethodPost, id, "/cancel"), struct{}{}, new(json.RawMessage))
}

// Delete deletes a response.
func (b *background) Delete(ctx context.Context, id string) error {
	return b.ExchangeJSON(ctx, b.at(http.MethodDelete, id, ""), nil, new(json.RawMessage))
}
