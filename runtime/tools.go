package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// newToolFactory returns what makes the application's tools.
func (a *App) newToolFactory() toolFactory {
	flows := a.nested()
	return factory.New(factory.Options{
		Options: tool.Options{HTTP: a.serviceHTTP(), Secret: a.secret, Getenv: a.Getenv, Policy: a.opts.Policy, Supervisor: a.opts.Supervisor, Learn: a.opts.Redactor.Add},
		Servers: a.opts.HTTP,
		Getenv:  a.opts.Getenv,
		Folder:  a.Folder(),
		Answer:  a.opts.Clients,
		Memory:  a.memoryTool,
		Index:   a.indexTool,
		Sample:  a.sample,
		Log:     a.opts.Log,
		Warn:    a.opts.Warn,
		Remote:  a.opts.Policy.IsRemote(),
		Flow: func(ctx context.Context, call factory.FlowCall, emit func([]any, error) error) error {
			ctx, cancel := withBudget(ctx, &BudgetError{Tool: call.Tool.ID}, call.Tool.Budget, nil)
			defer cancel()
			inner := steps.FlowCall{Flow: call.Flow, Inputs: call.Inputs, Session: call.Tool.SessionIn(call.Caller.Session), Number: call.Caller.Row}
			err := flows(steps.WithToolSession(ctx, call.Tool), inner, func(outputs []any, failed *steps.Error) error {
				// A flow may end before it notices that its last call exceeded the budget.
				if over, ok := errors.AsType[*BudgetError](context.Cause(ctx)); ok {
					return over
				}
				if failed != nil {
					return emit(outputs, failed)
				}
				return emit(outputs, nil)
			})
			if over, ok := errors.AsType[*BudgetError](context.Cause(ctx)); ok && err != nil {
				return over
			}
			return err
		},
	})
}

// SessionsOf returns a session and the sessions that FlowTools with session: own have in
// it: all of them belong to one conversation.
func (a *App) SessionsOf(session string) []string {
	all := []string{session}
	for _, t := range a.spec.AllTools() {
		if f, ok := t.(*spec.FlowTool); ok && f.Session == spec.SessionOfTool {
			all = appendToolSessions(all, f, session, 0)
		}
	}
	return all
}

// appendToolSessions adds the sessions of a tool and of the tools that its flow may call.
func appendToolSessions(all []string, t *spec.FlowTool, caller string, depth int) []string {
	const maxDepth = 8 // the validator rejects recursion, but documents made by programs are not validated
	session := t.SessionIn(caller)
	if slices.Contains(all, session) {
		return all
	}
	all = append(all, session)
	if t.Flow.To == nil || depth == maxDepth {
		return all
	}
	for s := range t.Flow.To.Plan().All() {
		for _, inner := range s.Tools() {
			if f, ok := inner.(*spec.FlowTool); ok && f.Session == spec.SessionOfTool {
				all = appendToolSessions(all, f, session, depth+1)
			}
		}
	}
	return all
}

// indexTool makes a tool that searches an index.
func (a *App) indexTool(t *spec.IndexTool) (tool.Tool, error) {
	return steps.OpenIndexTool(t, &steps.Env{Index: a.index, Embedder: a.embedder})
}

// Folder returns the folder of the application's document, "" if it is not a local
// file.
func (a *App) Folder() string { return folderOf(a.spec) }

// newTool makes a tool, or takes its mock.
func (a *App) newTool(t spec.Tool) (tool.Tool, error) {
	if a.opts.Mocks.Tool != nil {
		if mock := a.opts.Mocks.Tool(t); mock != nil {
			return a.redactTool(observeTool(mock)), nil
		}
	}
	made, err := a.toolFactory.Tool(t)
	if wrap := a.opts.Mocks.WrapTool; wrap != nil && err == nil {
		made = wrap(t, made)
	}
	return a.redactTool(observeTool(made)), withPosition(t, err)
}

// CheckTools reports tools of a flow, and of the flows that it runs, that cannot be called or approved, as a run
// does before its first row.
func (a *App) CheckTools(ctx context.Context, flowID string) error {
	f, err := a.Flow(flowID)
	if err != nil {
		return err
	}
	return a.opts.Redactor.Error(a.checkTools(ctx, f))
}

// checkTools reports tools of a flow, and of the flows that it runs, that cannot be
// called, before the first row.
func (a *App) checkTools(ctx context.Context, f *spec.Flow) error {
	for s := range f.Plan().All() {
		if err := a.checkApprover(ctx, s); err != nil {
			return wrapStepError(s.Step, withPosition(s.Step, err))
		}
		for _, t := range s.Tools() {
			if err := a.checkTool(ctx, t); err != nil {
				return wrapStepError(s.Step, err)
			}
		}
	}
	return nil
}

// checkApprover returns a *steps.NoApproverError if a step needs an approver and there is none.
func (a *App) checkApprover(ctx context.Context, s *spec.StepPlan) error {
	if ids := s.ApprovedTools(); len(ids) > 0 && tool.ApproverOf(ctx, a.opts.Approve) == nil {
		return &steps.NoApproverError{Tool: ids[0]}
	}
	return nil
}

func (a *App) checkTool(ctx context.Context, t spec.Tool) error {
	if a.tools[t.EntityID()] == nil {
		return nil
	}
	made, err := a.tools[t.EntityID()]()
	if err != nil {
		return err
	}
	if c, ok := made.(tool.Preflighter); ok {
		return c.Check(ctx)
	}
	return nil
}
