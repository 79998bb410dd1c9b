// Package agui is the adapter for the Agent-User Interaction Protocol (AG-UI), version 1.0:
// it reads the inputs of agent clients and writes the events of runs as those of the protocol.
package agui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// Version is the version of the protocol.
const Version = "1.0"

// Limits of an input.
const (
	maxID    = 256 // bytes of the id of a run, a message or a call
	maxTools = 128
)

// Input is the body of a request. Members that the protocol does not define are ignored.
type Input struct {
	ThreadID       string          `json:"threadId"` // the session
	RunID          string          `json:"runId"`    // of this request; a run of the server may have several
	Messages       []Message       `json:"messages"`
	Tools          []Tool          `json:"tools"` // that the client runs
	Context        []Context       `json:"context"`
	State          json.RawMessage `json:"state"`
	ForwardedProps json.RawMessage `json:"forwardedProps"`
	Resume         []Resume        `json:"resume"`
}

// Tool is a tool of the client.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON schema; may be missing
}

// Context is a text with a description.
type Context struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// Resume is the answer to an interrupt.
type Resume struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved or cancelled
	Payload     json.RawMessage `json:"payload"`
}

// Parse parses and checks the body of a request. The error is a *problem.Problem.
func Parse(body []byte) (*Input, error) {
	in := &Input{}
	if err := schema.DecodeBody(body, in, false); err != nil {
		return nil, err
	}
	if err := in.checkIDs(); err != nil {
		return nil, err
	}
	if in.Messages == nil {
		return nil, invalid("/messages", "the list of messages is missing")
	}
	for i := range in.Messages {
		if err := in.Messages[i].check(fmt.Sprintf("/messages/%d", i)); err != nil {
			return nil, err
		}
	}
	for i, r := range in.Resume {
		if r.Status != "resolved" && r.Status != "cancelled" {
			return nil, invalid(fmt.Sprintf("/resume/%d/status", i), fmt.Sprintf("expected resolved or cancelled, not %q", r.Status))
		}
	}
	return in, in.checkTools()
}

func (in *Input) checkIDs() error {
	if in.ThreadID == "" {
		return invalid("/threadId", "the id of the thread is missing")
	}
	if in.RunID == "" {
		return invalid("/runId", "the id of the run is missing")
	}
	if len(in.RunID) > maxID || strings.ContainsFunc(in.RunID, unicode.IsControl) {
		return invalid("/runId", "the id is longer than 256 bytes or has control characters")
	}
	return host.CheckSession("/threadId", in.ThreadID)
}

func (in *Input) checkTools() error {
	if len(in.Tools) > maxTools {
		return invalid("/tools", fmt.Sprintf("there are %d tools; at most %d are allowed", len(in.Tools), maxTools))
	}
	seen := map[string]bool{}
	for i, t := range in.Tools {
		pointer := fmt.Sprintf("/tools/%d", i)
		switch {
		case t.Name == "":
			return invalid(pointer+"/name", "the name of the tool is missing")
		case seen[t.Name]:
			return invalid(pointer+"/name", fmt.Sprintf("there are two tools with the name %q", t.Name))
		case !isNone(t.Parameters) && !isObject(t.Parameters):
			return invalid(pointer+"/parameters", "the JSON schema must be an object")
		}
		seen[t.Name] = true
	}
	return nil
}

// callerTools returns the tools of the client for a run, without tools that the flow
// declares as client tools.
func (in *Input) callerTools(flow *schema.Flow) []runs.CallerTool {
	declared := map[string]bool{}
	for _, name := range flow.ClientTools() {
		declared[name] = true
	}
	var tools []runs.CallerTool
	for _, t := range in.Tools {
		if declared[t.Name] {
			continue
		}
		c := runs.CallerTool{Name: t.Name, Description: t.Description}
		if isObject(t.Parameters) {
			c.Parameters = t.Parameters
		}
		tools = append(tools, c)
	}
	return tools
}

// given returns what the client sends for the inputs of the flow other than the message:
// members of forwardedProps, then of the state, then texts of the context whose
// description is the id of the input.
func (in *Input) given(flow *schema.Flow) map[string]json.RawMessage {
	props, state := members(in.ForwardedProps), members(in.State)
	values := map[string]json.RawMessage{}
	for _, v := range flow.Inputs {
		if v == flow.Message {
			continue
		}
		if raw, ok := props[v.ID]; ok {
			values[v.ID] = raw
		} else if raw, ok := state[v.ID]; ok {
			values[v.ID] = raw
		} else if text, ok := in.contextOf(v.ID); ok {
			values[v.ID] = text
		}
	}
	return values
}

func (in *Input) contextOf(id string) (json.RawMessage, bool) {
	for _, c := range in.Context {
		if c.Description == id {
			raw, _ := json.Marshal(c.Value) // a text always encodes
			return raw, true
		}
	}
	return nil, false
}

// members returns the members of an object, none for another value.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if isObject(raw) {
		_ = json.Unmarshal(raw, &m) // it was parsed with the request
	}
	return m
}

func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'{'})
}

// isNone reports whether a member is missing or null.
func isNone(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// invalid returns the problem of a wrong field.
func invalid(pointer, detail string) *problem.Problem {
	return schema.Invalid([]problem.Field{{Pointer: pointer, Detail: detail}})
}

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
