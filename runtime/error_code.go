package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// The codes that ErrorCode returns, in addition to http_ and a status.
const (
	CodeInput    = "input"    // the row could not be read, or does not fit the flow's inputs
	CodeTimeout  = "timeout"  // a step or a call took too long
	CodeModel    = "model"    // a model returned no answer, or not a valid one
	CodeTool     = "tool"     // a tool returned no answer, or failed
	CodeMemory   = "memory"   // the memory or its store could not take the turn
	CodeInternal = "internal" // a step panicked
	CodeFailed   = "failed"   // anything else: the step could not process the row
)

// ErrorCode returns the kind of a row's failure: one of the constants, or http_ and
// the status with which the server of a model or a tool failed, such as http_429.
func ErrorCode(err *steps.Error) string {
	path, reason := err.Path()
	var ofModel *model.Error
	var ofTool *tool.Error
	var failed *tool.FailedError
	var late interface{ Timeout() bool }
	switch replayed, ok := errors.AsType[*checkpoint.ReplayedError](reason); {
	case ok:
		return replayed.Code
	case len(path) == 0:
		return CodeInput
	case errors.As(reason, &ofModel) && ofModel.Status != 0:
		return fmt.Sprintf("http_%d", ofModel.Status)
	case errors.As(reason, &ofTool) && ofTool.Status != 0:
		return fmt.Sprintf("http_%d", ofTool.Status)
	case errors.As(reason, &late) && late.Timeout(), errors.Is(reason, context.DeadlineExceeded):
		return CodeTimeout
	case ofModel != nil:
		return CodeModel
	case ofTool != nil, errors.As(reason, &failed):
		return CodeTool
	case isMemoryError(reason):
		return CodeMemory
	case strings.HasPrefix(reason.Error(), internalError):
		return CodeInternal
	}
	return CodeFailed
}

// isMemoryError reports whether a memory or its store returned the error.
func isMemoryError(err error) bool {
	var store *memory.StoreError
	var busy *memory.BusyError
	var taken *memory.InterruptedError
	var budget *memory.BudgetError
	var empty *memory.EmptyWindowError
	var small *memory.TurnSizeError
	var unbalanced *memory.BalanceError
	return errors.As(err, &store) || errors.As(err, &busy) || errors.As(err, &taken) || errors.As(err, &budget) || errors.As(err, &empty) || errors.As(err, &small) || errors.As(err, &unbalanced)
}

// internalError is the prefix of the error of a step that panicked.
const internalError = "internal error: "

// recoverPanics converts a panic of a step to an error: a bug fails one row, not the
// run.
func recoverPanics(f func() error) (err error) {
	defer recoverTo(&err)
	return f()
}

// recoverTo converts a panic to an error; it must be deferred.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s%v", internalError, p)
	}
}

// withPosition adds the position in n to an error about a setting of n that is
// not available.
func withPosition(n spec.Node, err error) error {
	if e, ok := errors.AsType[*spec.NotAvailableError](err); ok && e.Owner != "" && e.Position.IsZero() {
		return e.At(n)
	}
	return err
}

// positionPrefix returns the position of a node and a colon, "" if it has no position.
func positionPrefix(n spec.Node) string {
	if span := n.Position().Span(); !span.IsZero() {
		return span.String() + ": "
	}
	return ""
}
