package agui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// answers are what an input answers of the requests of a run.
type answers struct {
	resume  map[string]*Resume  // by the id of the interrupt
	results map[string]*Message // messages of tools, by the id of the call
}

// answers returns the answers of an input: those to interrupts, and the messages of tools
// behind the newest message of the assistant. It returns nil if the input begins a turn.
func (in *Input) answers() *answers {
	a := &answers{resume: map[string]*Resume{}, results: map[string]*Message{}}
	for i := range in.Resume {
		a.resume[in.Resume[i].InterruptID] = &in.Resume[i]
	}
	last := in.last()
	if len(in.Resume) == 0 && (last < 0 || in.Messages[last].Role != "tool") {
		return nil
	}
	for i := last; i >= 0 && in.Messages[i].Role != "assistant" && in.Messages[i].Role != "user"; i-- {
		if m := &in.Messages[i]; m.Role == "tool" {
			a.results[m.ToolCallID] = m
		}
	}
	return a
}

// take returns the answer to a request and removes it; nil if there is none. call is the
// id of the tool call as the client knows it.
func (a *answers) take(req *runs.Request, call string) (*runs.Answer, error) {
	if a == nil {
		return nil, nil
	}
	if r := a.resume[req.ID]; r != nil {
		delete(a.resume, req.ID)
		return r.answer(req)
	}
	if m := a.results[call]; m != nil && req.Kind == runs.ClientTool {
		delete(a.results, call)
		return m.answer(req)
	}
	return nil, nil
}

// unnamed returns the id of a call that a run has named because its step gives none, empty if
// there are not exactly one.
func (a *answers) unnamed(run string) string {
	var found []string
	for id := range a.results {
		if strings.HasPrefix(id, callID(run, "")) {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// run returns the id of the run that has written the newest messages of the assistant, empty
// if their ids do not name it.
func (in *Input) run() string {
	for _, m := range slices.Backward(in.Messages) {
		for _, id := range []string{m.ID, m.ToolCallID} {
			parts := strings.Split(id, "_") // see newMessage and callID
			if len(parts) == 4 && (parts[0] == "msg" || parts[0] == "call") && parts[1] == "run" {
				return "run_" + parts[2]
			}
		}
	}
	return ""
}

// answer converts the answer to an interrupt. The error is a *problem.Problem.
func (r *Resume) answer(req *runs.Request) (*runs.Answer, error) {
	out := &runs.Answer{ID: req.ID}
	switch {
	case req.Kind == runs.ClientTool && r.Status == "cancelled":
		out.Error = "the user cancelled the call"
	case req.Kind == runs.ClientTool:
		out.Result = r.Payload
	case r.Status == "cancelled":
		out.Approved, out.Reason = new(bool), "the user cancelled the request"
	default:
		var err error
		if out.Approved, out.Reason, err = approval(r.Payload); err != nil {
			return nil, invalid("/resume", fmt.Sprintf("interrupt %s: %s", req.ID, err))
		}
	}
	return out, nil
}

// approval reads the payload of an approval: true, false, or an object.
func approval(payload json.RawMessage) (approved *bool, reason string, err error) {
	var yes bool
	if !isNone(payload) && json.Unmarshal(payload, &yes) == nil {
		return &yes, "", nil
	}
	var o struct {
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	}
	if json.Unmarshal(payload, &o) != nil || o.Approved == nil {
		return nil, "", fmt.Errorf(`the payload must be {"approved": true or false, "reason": text}`)
	}
	return o.Approved, o.Reason, nil
}

// answer converts the message of a tool. The error is a *problem.Problem.
func (m *Message) answer(req *runs.Request) (*runs.Answer, error) {
	if m.Error != "" {
		return &runs.Answer{ID: req.ID, Error: m.Error}, nil
	}
	blocks, err := m.blocks("/messages/content")
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, b := range blocks {
		if b.Type != "text" {
			return nil, invalid("/messages", "the result of a tool must be text")
		}
		text.WriteString(b.Text)
	}
	return &runs.Answer{ID: req.ID, Result: schema.JSONOrText(text.String())}, nil
}

// left returns the problem of interrupts that the run does not wait for, nil for none.
func (a *answers) left() error {
	for id := range a.resume {
		return problem.New(http.StatusNotFound, "unknown_request", "the run does not wait for the answer to interrupt %q", id)
	}
	return nil
}
