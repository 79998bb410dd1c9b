package runtime

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// Redactor returns what replaces the secrets of the application: those of the document, of
// the environment variables in which providers find credentials, and those of the secret
// manager that were read so far.
func (a *App) Redactor() *redact.Redactor { return a.opts.Redactor }

// knownSecrets returns the Redactor of an application. The loader has added the secrets of a
// document that it has read; those of another one are added here.
func knownSecrets(app *spec.Application, opts Options) *redact.Redactor {
	r := opts.Redactor
	if r == nil {
		r = redact.New()
		eachSecret(reflect.ValueOf(app), map[uintptr]bool{}, func(s spec.Secret) { r.Add(s.Reveal()) })
	}
	names := []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	for _, p := range spec.Providers() {
		names = append(names, p.KeyEnv...)
	}
	for _, name := range names {
		r.Add(opts.Getenv(name))
	}
	return r
}

// eachSecret calls found for each secret in a value of package spec. seen has the pointers
// that were followed: entities refer to each other.
func eachSecret(v reflect.Value, seen map[uintptr]bool, found func(spec.Secret)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		eachSecret(v.Elem(), seen, found)
	case reflect.Interface:
		eachSecret(v.Elem(), seen, found)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachSecret(v.Index(i), seen, found)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			eachSecret(it.Value(), seen, found)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[spec.Secret]() {
			found(v.Interface().(spec.Secret))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachSecret(v.Field(i), seen, found)
			}
		}
	}
}

// redactedChat is a chat model whose answers have no secrets. The arguments of tool calls
// are not changed: the tools may need them.
type redactedChat struct {
	model.Chat
	redactor *redact.Redactor
}

// redactChat returns m without secrets in its answers; nil for nil.
func (a *App) redactChat(m model.Chat) model.Chat {
	if m == nil {
		return nil
	}
	return &redactedChat{m, a.opts.Redactor}
}

// Generate sends the request. A secret that is divided over deltas is replaced, too.
func (m *redactedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	if m.redactor.Empty() {
		return m.Chat.Generate(ctx, req)
	}
	return func(yield func(model.Event, error) bool) {
		text, reasoning := m.redactor.NewStream(), m.redactor.NewStream()
		rest := func() bool {
			for _, ev := range []model.Event{{Reasoning: reasoning.End()}, {Text: text.End()}} {
				if ev != (model.Event{}) && !yield(ev, nil) {
					return false
				}
			}
			return true
		}
		for ev, err := range m.Chat.Generate(ctx, req) {
			switch {
			case err != nil || ev.Response != nil:
				if !rest() {
					return
				}
				ev.Response = m.response(ev.Response)
			case ev.Text != "":
				ev.Text = text.Next(ev.Text)
			default:
				ev.Reasoning = reasoning.Next(ev.Reasoning)
			}
			if (err != nil || ev != (model.Event{})) && !yield(ev, err) {
				return
			}
		}
	}
}

// response returns a response without secrets.
func (m *redactedChat) response(r *model.Response) *model.Response {
	if r == nil {
		return nil
	}
	shown := *r
	shown.Message.Blocks = slices.Clone(r.Message.Blocks)
	for i := range shown.Message.Blocks {
		b := &shown.Message.Blocks[i]
		b.Text = m.redactor.String(b.Text)
	}
	return &shown
}

// redactedTool is a tool whose results and errors have no secrets.
type redactedTool struct {
	tool.Tool
	redactor *redact.Redactor
}

// redactTool returns t without secrets in its results; nil for nil. A Set remains a Set.
func (a *App) redactTool(t tool.Tool) tool.Tool {
	set, many := t.(tool.Set)
	switch {
	case t == nil:
		return nil
	case many:
		redacted := &redactedSet{redactedTool{set, a.opts.Redactor}, set, a}
		if changing, ok := set.(tool.ChangingSet); ok {
			return &redactedChangingSet{redacted, changing}
		}
		return redacted
	}
	return &redactedTool{t, a.opts.Redactor}
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
	result, err := t.Tool.Call(ctx, args)
	return redactResult(t.redactor, result), t.redactor.Error(err)
}

// redactResult returns the result of a tool without secrets.
func redactResult(r *redact.Redactor, result any) any {
	if r.Empty() {
		return result
	}
	switch v := result.(type) {
	case chat.Message:
		v.Blocks = slices.Clone(v.Blocks)
		for i := range v.Blocks {
			v.Blocks[i].Text = r.String(v.Blocks[i].Text)
		}
		return v
	case map[string]any, []any, []string, string, []byte:
		return r.Value(v)
	}
	return result
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
