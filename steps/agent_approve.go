package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// approver asks for confirmation before tools are called that require it.
type approver struct {
	tools  map[string][]string // who decides about the calls of tools, by their ids: spec.Approval.By
	answer tool.Approver       // nil if only the caller of a run may have one
	audit  *tool.Audit         // records the decisions; nil for none
	mu     sync.Mutex          // answer has one question at a time, even where calls run at the same time
}

// NoApproverError reports that a tool requires approval and that no approver is configured.
type NoApproverError struct {
	Tool string // the id of the tool
}

// Error names the tool.
func (e *NoApproverError) Error() string {
	return fmt.Sprintf("tool %s requires approval, but no approver is configured", e.Tool)
}

// RejectedError reports that a person did not approve a call.
type RejectedError struct {
	Tool   string // the tool's name
	Reason string // that the person gave; may be empty
}

// Error names the tool and the reason.
func (e *RejectedError) Error() string {
	text := e.Tool + rejectedCall
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// rejectedCall follows the name of the tool in the text of a RejectedError.
const rejectedCall = " was not called: the user rejected the call"

// Rejection reports whether a result in a history is that of a call of a tool that a person
// did not approve, and returns the reason that the person gave.
func Rejection(tool, result string) (reason string, rejected bool) {
	reason, rejected = strings.CutPrefix(result, "error: "+tool+rejectedCall)
	return strings.TrimPrefix(reason, ": "), rejected
}

// approval returns the approver of an Agent, nil where no tool requires approval.
func (e *Env) approval(s *spec.Agent) (*approver, error) {
	if len(s.Approve) == 0 {
		return nil, nil
	}
	a := &approver{tools: map[string][]string{}, answer: e.Approve, audit: e.Audit}
	for _, entry := range s.Approve {
		if entry.Tool.To == nil {
			return nil, fmt.Errorf("a tool is not linked")
		}
		a.tools[entry.Tool.To.EntityID()] = entry.By
	}
	return a, nil
}

// lists reports whether the calls of a tool require approval.
func (a *approver) lists(id string) bool {
	_, listed := a.tools[id]
	return listed
}

// deciders returns who may decide about the calls of a tool.
func (a *approver) deciders(info tool.Info) []string {
	if a.lists(info.ID) {
		return a.tools[info.ID]
	}
	return a.tools[info.Set]
}

// undecidedError reports that a call was not made because nobody decided about it.
type undecidedError struct {
	tool   string
	callID string
	err    error
}

func (e *undecidedError) Error() string {
	return fmt.Sprintf("%s was not called: approval failed: %v", e.tool, e.err)
}

func (e *undecidedError) Unwrap() error { return e.err }

// confirm returns nil if the call may proceed, else the error that the model gets.
func (a *approver) confirm(ctx context.Context, info tool.Info, args map[string]any) error {
	if a == nil || !a.lists(info.ID) && !a.lists(info.Set) {
		return nil
	}
	var fields []value.Field
	for _, in := range info.Inputs {
		if v, ok := args[in.ID]; ok {
			fields = append(fields, value.Field{Name: in.ID, Value: v})
		}
	}
	return a.ask(ctx, info, value.JSON(value.NewRecord("", fields...)))
}

// hosted returns the result of a call by which a provider asks whether it may call a hosted tool.
func (a *approver) hosted(ctx context.Context, info tool.Info, given *value.Record) (toolResult, error) {
	if a == nil || !a.lists(info.ID) {
		return nil, &redact.PublicError{Err: fmt.Errorf("%s was not called: it requires approval, and approve of the agent does not list it", info.Name)}
	}
	if err := a.ask(ctx, info, value.JSON(given)); err != nil {
		return nil, err
	}
	return textResult(model.Approved), nil
}

// ask returns nil if a person approves a call with these arguments, else the error that the model gets.
func (a *approver) ask(ctx context.Context, info tool.Info, given []byte) error {
	// The approver of a run is not called one at a time: it announces the calls of a round together
	// (see tool.Round), and a run that waits for a person must not delay others.
	answer := tool.ApproverOf(ctx, nil)
	if answer == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		answer = a.answer
	}
	if answer == nil {
		return &NoApproverError{Tool: info.ID}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var decider string
	yes, reason, err := answer(ctx, tool.Request{Tool: info, Args: given, Caller: tool.CallerOf(ctx), By: a.deciders(info), Decided: func(name string) { decider = name }})
	if failed := a.audit.Approval(ctx, info.ID, given, tool.Decision{Approved: yes, Reason: reason, By: decider, Err: err}); failed != nil {
		return errors.Join(err, failed)
	}
	switch {
	case err != nil:
		return &undecidedError{info.Name, tool.CallerOf(ctx).CallID, err}
	case !yes:
		return &redact.PublicError{Err: &RejectedError{Tool: info.Name, Reason: reason}}
	}
	return nil
}
