package factory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// clientTool is a tool whose calls the program that runs the application handles, or an
// external program. The result is checked against the declared outputs.
type clientTool struct {
	info    tool.Info
	outputs []*spec.Variable
	answer  tool.ClientHandler // nil if only the caller of a run may have one
	timeout time.Duration      // 0 for no limit
}

func newClientTool(base *spec.ToolBase, answer tool.ClientHandler, timeout time.Duration) *clientTool {
	return &clientTool{tool.Describe(base, base.Inputs), base.Outputs, answer, timeout}
}

// client makes a ClientTool.
func (f *Factory) client(t *spec.ClientTool) (tool.Tool, error) {
	var answer tool.ClientHandler
	if f.opts.Answer != nil {
		answer = f.opts.Answer(t.ID)
	}
	return newClientTool(t.Common(), answer, time.Duration(t.Timeout)), nil
}

// own makes a tool of another module.
func (f *Factory) own(t tool.Maker) (tool.Tool, error) {
	var run tool.ClientHandler
	host := tool.Host{Secret: f.secret, Getenv: f.opts.Getenv, HTTP: func(s tool.Service) (*http.Client, error) { return tool.Client(s, f.opts.Options) }}
	err := parts.Guard("Make", func() (err error) {
		run, err = t.Make(host)
		return err
	})
	if err == nil && run == nil {
		err = errors.New("its Make returned no function")
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.EntityID(), err)
	}
	results, _ := t.Results()
	return &clientTool{tool.Describe(t.Common(), t.Arguments()), results, run, 0}, nil
}

// NoClientHandlerError reports a ClientTool without a handler.
type NoClientHandlerError struct {
	Tool string // the tool's id
}

// Error names the tool.
func (e *NoClientHandlerError) Error() string {
	return fmt.Sprintf("no handler for client tool %s", e.Tool)
}

// Check returns a *NoClientHandlerError if neither the application nor the run has a handler.
func (a *clientTool) Check(ctx context.Context) error {
	if tool.ClientHandlerOf(ctx, a.info.ID, a.answer) == nil {
		return &NoClientHandlerError{Tool: a.info.ID}
	}
	return nil
}

// Info describes the tool.
func (a *clientTool) Info() tool.Info { return a.info }

// Call calls the handler and checks its result.
func (a *clientTool) Call(ctx context.Context, args map[string]any) (any, error) {
	if err := a.Check(ctx); err != nil {
		return nil, err
	}
	given, err := tool.ConvertArgs(a.info, args, value.Assign)
	if err != nil {
		return nil, err
	}
	limited := ctx
	if a.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("no answer came within %s (timeout)", a.timeout))
		defer cancel()
	}
	raw, err := tool.ClientHandlerOf(ctx, a.info.ID, a.answer)(limited, tool.Request{Tool: a.info, Outputs: a.outputs, Args: object(a.info, given), Caller: tool.CallerOf(ctx)})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil && errors.Is(err, limited.Err()):
		err = context.Cause(limited)
	}
	if err == nil {
		if raw, err = CoerceResult(a.outputs, value.FromGo(raw)); err != nil {
			err = &redact.PublicError{Err: err} // the client's own values
		}
	}
	if err != nil {
		return nil, &tool.FailedError{Tool: a.info.ID, Message: httpx.SingleLine(err.Error(), 1000), Err: err}
	}
	return raw, nil
}

// object encodes the arguments as a JSON object in the order of the inputs.
func object(info tool.Info, args map[string]any) []byte {
	var fields []value.Field
	for _, in := range info.Inputs {
		if v, ok := args[in.ID]; ok {
			fields = append(fields, value.Field{Name: in.ID, Value: v})
		}
	}
	return value.JSON(value.NewRecord("", fields...))
}

// ask requests an answer of the caller of the run, as a client tool does, and checks the answer.
func (f *Factory) ask(ctx context.Context, r tool.Request) (any, error) {
	var answer tool.ClientHandler
	if f.opts.Answer != nil {
		answer = f.opts.Answer(r.Tool.ID)
	}
	if answer = tool.ClientHandlerOf(ctx, r.Tool.ID, answer); answer == nil {
		return nil, &NoClientHandlerError{Tool: r.Tool.ID}
	}
	result, err := answer(ctx, r)
	if err != nil {
		return nil, err
	}
	return CoerceResult(r.Outputs, value.FromGo(result))
}

// CoerceResult converts a result to an object of the declared outputs. If there is one
// output, the result may be its value.
func CoerceResult(outputs []*spec.Variable, raw any) (any, error) {
	if len(outputs) == 0 {
		return raw, nil
	}
	r, isObject := raw.(*value.Record)
	if len(outputs) == 1 {
		only := outputs[0]
		named := false
		if isObject {
			_, named = r.Get(only.ID)
		}
		if !named {
			r = value.NewRecord("", value.Field{Name: only.ID, Value: raw})
		}
	} else if !isObject {
		return nil, fmt.Errorf("the answer is %s, expected an object with %s", value.Describe(raw), names(outputs))
	}
	fields := make([]value.Field, 0, len(outputs))
	for _, out := range outputs {
		x, there := r.Get(out.ID)
		switch {
		case x == nil && out.IsOptional():
			x = nil
		case !there:
			return nil, fmt.Errorf("the answer has no %q; expected an object with %s", out.ID, names(outputs))
		default:
			v, err := value.Assign(out, x)
			if err != nil {
				return nil, fmt.Errorf("output %s: %w", out.ID, err)
			}
			x = v
		}
		fields = append(fields, value.Field{Name: out.ID, Value: x})
	}
	return value.NewRecord("", fields...), nil
}

// names lists variables with their types for an error message.
func names(vars []*spec.Variable) string {
	text := ""
	for i, v := range vars {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s (%s)", v.ID, v.Type)
	}
	return text
}
