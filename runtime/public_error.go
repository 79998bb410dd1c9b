package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// PublicText returns what callers of a server may read about an error of a run. complete reports
// whether that is the whole text. The texts of other errors, for the operator, may have addresses, names
// of credentials, paths and answers of other servers: a text is public only if the type of the error is known here.
func PublicText(err error) (text string, complete bool) {
	failed, ok := err.(*steps.Error) //nolint:errorlint // an *Error further down belongs to another run
	if !ok {
		return publicReason(err)
	}
	path, reason := failed.Path()
	if len(path) == 0 {
		return reason.Error(), true // the row of the caller could not be read
	}
	text, complete = publicReason(reason)
	return fmt.Sprintf("step %s: %s", strings.Join(path, " > "), text), complete
}

// publicReason is PublicText of the reason of a failure.
func publicReason(err error) (text string, complete bool) {
	if text, ok := publicCall(err); ok {
		return text, true
	}
	for _, find := range publicTypes {
		if found := find(err); found != nil {
			return found.Error(), true // without what wraps it, which may name a server
		}
	}
	var ofModel *model.Error
	var ofTool *tool.Error
	var onHost *tool.FailedError
	var store *memory.StoreError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &ofModel) && ofModel.TooLong:
		return fmt.Sprintf("model %s: the request exceeds the context window", ofModel.Model), false
	case errors.As(err, &ofModel) && ofModel.Status != 0:
		return fmt.Sprintf("model %s: %s", ofModel.Model, statusText(ofModel.Status)), false
	case errors.As(err, &ofTool) && ofTool.Status != 0:
		return fmt.Sprintf("tool %s: %s", ofTool.Tool, statusText(ofTool.Status)), false
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "it took too long", false
	case ofModel != nil:
		return fmt.Sprintf("model %s gave no answer", ofModel.Model), false
	case ofTool != nil:
		return fmt.Sprintf("tool %s gave no result", ofTool.Tool), false
	case errors.As(err, &onHost):
		return fmt.Sprintf("tool %s failed", onHost.Tool), false
	case errors.As(err, &store):
		return "the store of the conversation is not available", false
	}
	return "it failed", false
}

// publicCall returns the text of a failed call whose reason is public: mocks of models, bundled
// functions, and what the client answered.
func publicCall(err error) (text string, ok bool) {
	if mock, ok := errors.AsType[*model.Error](err); ok && mock.Endpoint == "" && strings.HasPrefix(mock.Message, mockMark) {
		return mock.Error(), true
	}
	failed, ok := errors.AsType[*tool.FailedError](err)
	if !ok {
		return "", false
	}
	switch failed.Err.(type) { //nolint:errorlint // what wraps the cause is in the text, too
	case *redact.PublicError, *value.Error:
		return failed.Error(), true
	}
	return "", false
}

// mockMark begins the messages of errors that a document or a test declares for a mock model.
const mockMark = "[mock] "

// statusText returns a status with its name.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// publicTypes find the errors of a chain whose texts have nothing but what the caller gave, and
// the names and limits of the document.
var publicTypes = []func(error) error{
	as[*redact.PublicError], as[*TimeoutError], as[*BudgetError], as[*NoSessionError], as[*model.IncompleteError],
	as[*tool.ArgumentError], as[*value.Error], as[*memory.BusyError], as[*memory.InterruptedError], as[*memory.BudgetError],
	as[*memory.EmptyWindowError], as[*memory.TurnSizeError],
}

// as returns the first error of a type in a chain; nil for none.
func as[E error](err error) error {
	if found, ok := errors.AsType[E](err); ok {
		return found
	}
	return nil
}
