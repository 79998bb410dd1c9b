package steps

import (
	"context"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// approver asks a person before tools are called that need a yes.
type approver struct {
	tools  map[string]bool // by their ids
	answer tool.Approver
	mu     sync.Mutex // one question at a time, also where calls run side by side
}

// NoApproverError says that a step needs a person's yes, and that nobody is there to give it.
type NoApproverError struct {
	Tool string // the tool that must not be called without
}

// Error names the tool.
func (e *NoApproverError) Error() string {
	return fmt.Sprintf("tool %s is called only after a person's yes (approve), and nobody is there to ask", e.Tool)
}

// approval is nil where no tool needs a yes.
func (e *Env) approval(s *spec.Agent) (*approver, error) {
	if len(s.Approve) == 0 {
		return nil, nil
	}
	if e.Approve == nil {
		return nil, &NoApproverError{Tool: s.Approve[0].ID}
	}
	a := &approver{tools: map[string]bool{}, answer: e.Approve}
	for _, ref := range s.Approve {
		if ref.To == nil {
			return nil, fmt.Errorf("a tool is not linked")
		}
		a.tools[ref.To.EntityID()] = true
	}
	return a, nil
}

// confirm is nil after a yes; the model is told of a no.
func (a *approver) confirm(ctx context.Context, info tool.Info, args map[string]any) error {
	if a == nil || !a.tools[info.ID] && !a.tools[info.Set] {
		return nil
	}
	var fields []value.Field
	for _, in := range info.Inputs {
		if v, ok := args[in.ID]; ok {
			fields = append(fields, value.Field{Name: in.ID, Value: v})
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	yes, reason, err := a.answer(ctx, tool.Request{Tool: info, Args: value.JSON(value.NewRecord("", fields...)), Caller: tool.CallerOf(ctx)})
	switch {
	case err != nil:
		return fmt.Errorf("%s was not called, because nobody could be asked: %w", info.Name, err)
	case !yes && reason != "":
		return fmt.Errorf("%s was not called: the person who was asked said no: %s", info.Name, reason)
	case !yes:
		return fmt.Errorf("%s was not called: the person who was asked said no", info.Name)
	}
	return nil
}
