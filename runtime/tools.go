package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// newToolFactory returns what makes the application's tools.
func (a *App) newToolFactory() toolFactory {
	flows := a.nested()
	return factory.New(factory.Options{
		Options: a.toolOptions(a.serviceHTTP()),
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

// redactedTool is a tool whose results and errors have no secrets, and whose calls are
// recorded in the audit log.
type redactedTool struct {
	tool.Tool
	redactor *redact.Redactor
	audit    *tool.Audit // nil for none
}

// redactTool returns t without secrets in its results; nil for nil. A Set remains a Set.
func (a *App) redactTool(t tool.Tool) tool.Tool {
	set, many := t.(tool.Set)
	switch {
	case t == nil:
		return nil
	case many:
		redacted := &redactedSet{redactedTool{set, a.opts.Redactor, a.audit}, set, a}
		if changing, ok := set.(tool.ChangingSet); ok {
			return &redactedChangingSet{redacted, changing}
		}
		return redacted
	}
	return &redactedTool{t, a.opts.Redactor, a.audit}
}

// Check is that of a Preflighter; nil for other tools.
func (t *redactedTool) Check(ctx context.Context) error {
	if p, ok := t.Tool.(tool.Preflighter); ok {
		return t.redactor.Error(p.Check(ctx))
	}
	return nil
}

// Call calls the tool.
func (t *redactedTool) Call(ctx context.Context, args map[string]any) (any, error) {
	if t.audit == nil {
		return t.call(ctx, args)
	}
	return t.audit.Do(ctx, t.Info().ID, value.JSON(value.FromGo(args)), func() (any, error) { return t.call(ctx, args) })
}

func (t *redactedTool) call(ctx context.Context, args map[string]any) (any, error) {
	defer func() {
		if p := recover(); p != nil { // an Agent shows it to its model, a step in the error of the row
			panic(t.redactor.Panic(p))
		}
	}()
	result, err := t.Tool.Call(ctx, args)
	return redactResult(t.redactor, result), t.redactor.Error(err)
}

// redactResult returns the result of a tool without secrets: JSON values, messages, and
// records of the tools in this process.
func redactResult(r *redact.Redactor, result any) any {
	if r.Empty() {
		return result
	}
	switch v := result.(type) {
	case chat.Message:
		v.Blocks = redactBlocks(r, v.Blocks)
		return v
	case *value.Record:
		fields := make([]value.Field, 0, v.Len())
		for name, field := range v.All() {
			fields = append(fields, value.Field{Name: name, Value: redactResult(r, field)})
		}
		return value.NewRecord(v.Type(), fields...)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = redactResult(r, item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			object[r.String(name)] = redactResult(r, item)
		}
		return object
	}
	return r.Value(result)
}

// redactedSet is a Set whose tools return no secrets.
type redactedSet struct {
	redactedTool
	set tool.Set
	app *App
}

// Tools returns the tools of the Set.
func (s *redactedSet) Tools(ctx context.Context) ([]tool.Tool, error) {
	tools, err := s.set.Tools(ctx)
	redacted := make([]tool.Tool, len(tools))
	for i, t := range tools {
		redacted[i] = s.app.redactTool(t)
	}
	return redacted, s.redactor.Error(err)
}

// redactedChangingSet is a redactedSet whose tools may change.
type redactedChangingSet struct {
	*redactedSet
	changing tool.ChangingSet
}

// Revision is that of the Set.
func (s *redactedChangingSet) Revision() int { return s.changing.Revision() }

// observedTool reports the calls of a tool as operations.
type observedTool struct{ tool.Tool }

// observeTool returns t with its calls reported; nil for nil. A Set remains a Set.
func observeTool(t tool.Tool) tool.Tool {
	set, many := t.(tool.Set)
	switch {
	case t == nil:
		return nil
	case many:
		observed := &observedSet{observedTool{set}, set}
		if changing, ok := set.(tool.ChangingSet); ok {
			return &observedChangingSet{observed, changing}
		}
		return observed
	}
	return &observedTool{t}
}

// Check is that of a Preflighter; nil for other tools.
func (t *observedTool) Check(ctx context.Context) error {
	if p, ok := t.Tool.(tool.Preflighter); ok {
		return p.Check(ctx)
	}
	return nil
}

// Call calls the tool, and reports it if the run has observers.
func (t *observedTool) Call(ctx context.Context, args map[string]any) (any, error) {
	if !steps.Observed(ctx) {
		return t.Tool.Call(ctx, args)
	}
	info := t.Info()
	ctx, end := steps.Observe(ctx, &steps.Operation{Kind: steps.OperationTool, ID: info.ID, Tool: &info,
		Arguments: args, CallID: tool.CallerOf(ctx).CallID})
	r := &steps.OperationResult{}
	defer end(r)
	result, err := t.Tool.Call(ctx, args)
	r.Returned, r.Err = result, err
	return result, err
}

// observedSet is a Set whose tools report their calls.
type observedSet struct {
	observedTool
	set tool.Set
}

// Tools returns the tools of the Set.
func (s *observedSet) Tools(ctx context.Context) ([]tool.Tool, error) {
	tools, err := s.set.Tools(ctx)
	observed := make([]tool.Tool, len(tools))
	for i, t := range tools {
		observed[i] = observeTool(t)
	}
	return observed, err
}

// observedChangingSet is an observedSet whose tools may change.
type observedChangingSet struct {
	*observedSet
	changing tool.ChangingSet
}

// Revision is that of the Set.
func (s *observedChangingSet) Revision() int { return s.changing.Revision() }
