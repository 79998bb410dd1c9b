package agui

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/spec/value"
)

// outcome is how a run of the protocol ended.
type outcome struct {
	Type       string      `json:"type"` // success, interrupt or cancelled
	Pending    []string    `json:"pendingToolCallIds,omitempty"`
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

// interrupt is a request to the user.
type interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
}

// approvalSchema is the schema of the answer to an approval.
const approvalSchema = `{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}`

// Pause appends the end of a response of a run that waits: approvals of its client are interrupts, and
// calls of tools of the client are named in the outcome. A run that waits for others only is an error.
func (e *Encoder) Pause(b []byte) []byte {
	b = e.closeMessages(b)
	for i := len(e.steps) - 1; i >= 0; i-- {
		b = object(b, "STEP_FINISHED", field{"stepName", e.steps[i].name})
	}
	if p := runs.NotAsked(e.run, e.open); p != nil {
		return e.failed(b, p.Detail, p.Code)
	}
	out := outcome{Type: "success"}
	for _, req := range e.open {
		switch {
		case !req.AsksCaller():
		case req.Kind == runs.Approval:
			out.Interrupts = append(out.Interrupts, interrupt{ID: req.ID, Reason: "tool_call", Message: "Approve the call of " + req.Tool + "?",
				ToolCallID: e.CallOf(req), ResponseSchema: json.RawMessage(approvalSchema)})
		default:
			out.Pending = append(out.Pending, e.CallOf(req))
		}
	}
	if out.Interrupts != nil {
		out.Type, out.Pending = "interrupt", nil
	}
	return e.finished(b, out, nil)
}

// finish appends the last events.
func (e *Encoder) finish(b []byte, ev *runs.Event) []byte {
	b = e.closeMessages(b)
	for i := len(e.steps) - 1; i >= 0; i-- {
		b = object(b, "STEP_FINISHED", field{"stepName", e.steps[i].name})
	}
	e.steps, e.open = nil, nil
	switch {
	case ev.Text == string(runs.Cancelled):
		return e.finished(b, outcome{Type: "cancelled"}, nil)
	case ev.Error != "":
		return e.failed(b, ev.Error, "run_failed")
	case e.failure != nil:
		code := e.failure.Code
		if p := host.TurnProblem(e.failure.Err()); p != nil {
			code = p.Code
		}
		return e.failed(b, e.failure.Error, code)
	}
	if e.state != nil {
		b = object(b, "STATE_SNAPSHOT", field{"snapshot", e.state})
	}
	return e.finished(b, outcome{Type: "success"}, e.outputs)
}

func (e *Encoder) finished(b []byte, out outcome, result json.RawMessage) []byte {
	fields := []field{{"threadId", e.in.ThreadID}, {"runId", e.in.RunID}, {"outcome", out}}
	if result != nil {
		fields = append(fields, field{"result", result})
	}
	if e.usage != nil {
		fields = append(fields, field{"usage", e.usage})
	}
	return object(b, "RUN_FINISHED", fields...)
}

func (e *Encoder) failed(b []byte, message, code string) []byte {
	fields := []field{{"message", message}}
	if code != "" {
		fields = append(fields, field{"code", code})
	}
	if e.usage != nil {
		fields = append(fields, field{"usage", e.usage})
	}
	return object(b, "RUN_ERROR", fields...)
}

// usage are the tokens of a run by model.
type usage []tokens

type tokens struct {
	Model  string `json:"model,omitempty"`
	Input  int    `json:"inputTokens"`
	Output int    `json:"outputTokens"`
	Total  int    `json:"totalTokens"`
}

func (u *usage) add(ev *runs.Event) {
	for i := range *u {
		if t := &(*u)[i]; t.Model == ev.Usage.Model {
			t.Input, t.Output, t.Total = t.Input+ev.Usage.Input, t.Output+ev.Usage.Output, t.Total+ev.Usage.Input+ev.Usage.Output
			return
		}
	}
	*u = append(*u, tokens{ev.Usage.Model, ev.Usage.Input, ev.Usage.Output, ev.Usage.Input + ev.Usage.Output})
}

// activeSteps are the steps that have begun, in that order. A name may be active several
// times: the protocol has one step of a name at a time.
type activeSteps []activeStep

type activeStep struct {
	name string
	n    int
}

// enter reports whether the step was not active before.
func (s *activeSteps) enter(name string) bool {
	for i := range *s {
		if (*s)[i].name == name {
			(*s)[i].n++
			return false
		}
	}
	*s = append(*s, activeStep{name, 1})
	return true
}

// leave reports whether the step is no longer active.
func (s *activeSteps) leave(name string) bool {
	for i := range *s {
		if (*s)[i].name != name {
			continue
		}
		if (*s)[i].n--; (*s)[i].n > 0 {
			return false
		}
		*s = append((*s)[:i:i], (*s)[i+1:]...)
		return true
	}
	return false
}

// field is a member of an event.
type field struct {
	name  string
	value any
}

// object appends an event as a frame.
func object(b []byte, typ string, fields ...field) []byte {
	b = append(b, `data: {"type":"`...)
	b = append(append(b, typ...), '"')
	for _, f := range fields {
		b = jsontext.AppendField(b, f.name, f.value)
	}
	return append(b, "}\n\n"...)
}

// deltaObject appends an event with a delta.
func deltaObject(b []byte, typ, id, delta string) []byte {
	b = append(b, `data: {"type":"`...)
	b = append(append(b, typ...), `","messageId":"`...)
	b = append(append(b, id...), `","delta":`...)
	b = value.AppendJSON(b, delta)
	return append(b, "}\n\n"...)
}
