package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

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
