package factory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// answered is a tool whose calls somebody else answers: a program, a person, a
// function of the Go program around us. What comes back is checked against the
// declared outputs.
type answered struct {
	info    tool.Info
	outputs []*spec.Variable
	answer  tool.Answer
	timeout time.Duration // 0 where the answer may take as long as it takes
}

func newAnswered(base *spec.ToolBase, answer tool.Answer, timeout time.Duration) *answered {
	return &answered{tool.Describe(base, base.Inputs), base.Outputs, answer, timeout}
}

// client makes a ClientTool.
func (b *Box) client(t *spec.ClientTool) (tool.Tool, error) {
	var answer tool.Answer
	if b.opts.Answer != nil {
		answer = b.opts.Answer(t.ID)
	}
	if answer == nil {
		return nil, &NobodyError{Tool: t.ID}
	}
	return newAnswered(t.Common(), answer, time.Duration(t.Timeout)), nil
}

// NobodyError says that a ClientTool is needed that nobody answers.
type NobodyError struct {
	Tool string // the tool's id
}

// Error names the tool.
func (e *NobodyError) Error() string {
	return fmt.Sprintf("tool %s is a ClientTool, and nobody is there to answer it", e.Tool)
}

// Info tells what the tool is.
func (a *answered) Info() tool.Info { return a.info }

// Call hands the call on and checks the answer.
func (a *answered) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := tool.Typed(a.info, args, value.For)
	if err != nil {
		return nil, err
	}
	limited := ctx
	if a.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("no answer came within %s (timeout)", a.timeout))
		defer cancel()
	}
	raw, err := a.answer(limited, tool.Ask{Tool: a.info, Outputs: a.outputs, Args: object(a.info, given), Caller: tool.CallerOf(ctx)})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil && errors.Is(err, limited.Err()):
		err = context.Cause(limited)
	}
	if err == nil {
		raw, err = Fit(a.outputs, value.Free(raw))
	}
	if err != nil {
		return nil, &tool.FailedError{Tool: a.info.ID, Message: httpx.Line(err.Error(), 1000), Err: err}
	}
	return raw, nil
}

// object is the arguments as a JSON object in the order of the inputs.
func object(info tool.Info, args map[string]any) []byte {
	var fields []value.Field
	for _, in := range info.Inputs {
		if v, ok := args[in.ID]; ok {
			fields = append(fields, value.Field{Name: in.ID, Value: v})
		}
	}
	return value.JSON(value.NewRecord("", fields...))
}

// Fit makes an object of the declared outputs of what was answered. Where there
// is just one output the answer may be its value.
func Fit(outputs []*spec.Variable, raw any) (any, error) {
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
			v, err := value.For(out, x)
			if err != nil {
				return nil, fmt.Errorf("output %s: %w", out.ID, err)
			}
			x = v
		}
		fields = append(fields, value.Field{Name: out.ID, Value: x})
	}
	return value.NewRecord("", fields...), nil
}

// names lists variables with their types, as a sentence does.
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
