package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
)

// errInternal is all that clients learn about errors of the server.
var errInternal = fmt.Errorf("%w: the server could not process the request", sdk.ErrInternalError)

// sentinels are the errors of the protocol that this package returns.
var sentinels = []error{sdk.ErrInvalidParams, sdk.ErrTaskNotFound, sdk.ErrTaskNotCancelable, sdk.ErrUnsupportedOperation,
	sdk.ErrUnsupportedContentType, sdk.ErrPushNotificationNotSupported, sdk.ErrInternalError, sdk.ErrServerError, sdk.ErrUnauthorized}

// rpcError returns an error of the protocol for any error; nil for nil.
func (s *service) rpcError(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range sentinels {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case errors.Is(err, runs.ErrBusy), errors.Is(err, runs.ErrClosed):
		return fmt.Errorf("%w: %w", sdk.ErrServerError, err)
	case errors.Is(err, runs.ErrAnswered), errors.Is(err, runs.ErrNoRequest):
		return fmt.Errorf("%w: %w", sdk.ErrUnsupportedOperation, err)
	}
	if p := problem.Of(err); p != nil {
		return fmt.Errorf("%w: %w", sentinelOf(p), p)
	}
	if errors.Is(err, context.Canceled) {
		return errInternal // the client has gone
	}
	s.Log.Error("a call of A2A failed", "error", err)
	return errInternal
}

func sentinelOf(p *problem.Problem) error {
	switch {
	case p.Status == http.StatusForbidden:
		return sdk.ErrUnauthorized
	case p.Status == http.StatusTooManyRequests || p.Status >= 500:
		return sdk.ErrServerError
	case p.Code == "attachment_not_allowed":
		return sdk.ErrUnsupportedContentType
	}
	return sdk.ErrInvalidParams
}

// invalid returns the error of a request that does not fit.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", sdk.ErrInvalidParams, fmt.Sprintf(format, args...))
}

// failure returns why a task failed, empty if it did not.
func failure(state *runs.State) string {
	for _, res := range state.Results {
		if p := host.TurnProblem(res.Err()); p != nil {
			return p.Detail
		}
		if res.Error != "" {
			return res.Error
		}
	}
	if state.Status == runs.Failed && state.Error != "" {
		return "the flow could not be run"
	}
	return ""
}
