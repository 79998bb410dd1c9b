package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

// requestHandler decodes the parameters of a request and returns its encoded result.
type requestHandler func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// notificationHandler decodes and handles a notification.
type notificationHandler func(ctx context.Context, params json.RawMessage)

// handleRequest adapts a function with typed parameters and result.
func handleRequest[P, R any](f func(context.Context, P) (R, error)) requestHandler {
	return func(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		params, err := decodeParams[P](raw)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, params)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
}

// handleNotification adapts a function with typed parameters. Malformed
// notifications are dropped: they have no response.
func handleNotification[P any](f func(context.Context, P)) notificationHandler {
	return func(ctx context.Context, raw json.RawMessage) {
		if params, err := decodeParams[P](raw); err == nil {
			f(ctx, params)
		}
	}
}

// decodeParams decodes parameters. Its errors name keys of the protocol instead of
// Go types.
func decodeParams[P any](raw json.RawMessage) (params P, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return params, invalidParams("params are missing")
	}
	err = json.Unmarshal(raw, &params)
	var wrongType *json.UnmarshalTypeError
	var response *jsonrpc2.Error
	switch {
	case errors.As(err, &response):
		return params, response
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return params, invalidParams("params.%s must not be of type %s", wrongType.Field, wrongType.Value)
	case err != nil:
		return params, invalidParams("params are malformed")
	}
	return params, nil
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// requestFailed returns the error of a well-formed request that cannot be served.
// Editors show its message.
func requestFailed(format string, args ...any) error {
	return &jsonrpc2.Error{Code: protocol.CodeRequestFailed, Message: fmt.Sprintf(format, args...)}
}

// openDocument returns the open document of a request.
func (s *server) openDocument(id protocol.TextDocumentIdentifier) (*document, error) {
	if d := s.workspace.document(pathOf(id.URI)); d != nil {
		return d, nil
	}
	return nil, requestFailed("the document %s is not open", id.URI)
}
