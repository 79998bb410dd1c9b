package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Ids of the artifacts of a task.
const (
	answerArtifact  = "answer"  // the answer of a conversational flow
	outputsArtifact = "outputs" // a data part with the other outputs
)

// states maps the states of runs.
var states = map[runs.Status]sdk.TaskState{
	runs.Running:   sdk.TaskStateWorking,
	runs.Waiting:   sdk.TaskStateInputRequired,
	runs.Succeeded: sdk.TaskStateCompleted,
	runs.Failed:    sdk.TaskStateFailed,
	runs.Cancelled: sdk.TaskStateCanceled,
}

// info identifies a run as a task.
func (q *requests) info(run *runs.Run) sdk.TaskInfo {
	session, _ := q.principal.ClientSession(run.Session)
	return sdk.TaskInfo{TaskID: sdk.TaskID(run.ID), ContextID: session}
}

// task returns a run as a task.
func (q *requests) task(run *runs.Run, artifacts bool) *sdk.Task {
	state := run.State()
	info := q.info(run)
	t := &sdk.Task{ID: info.TaskID, ContextID: info.ContextID, Status: status(info, run, &state), Metadata: map[string]any{"skill": run.Flow.ID}}
	if artifacts {
		flow := schema.NewFlow(run.Flow)
		for _, res := range state.Results {
			t.Artifacts = append(t.Artifacts, artifactsOf(flow, res)...)
		}
	}
	return t
}

// status returns the state of a run, with a message if it waits or has failed.
func status(info sdk.TaskInfo, run *runs.Run, state *runs.State) sdk.TaskStatus {
	updated := state.Updated
	s := sdk.TaskStatus{State: states[state.Status], Timestamp: &updated}
	switch state.Status {
	case runs.Waiting:
		s.Message = message(info, run, "waiting", question(state.Pending)...)
	case runs.Failed:
		s.Message = message(info, run, "failed", sdk.NewTextPart(failure(state)))
	case runs.Cancelled:
		s.Message = message(info, run, "cancelled", sdk.NewTextPart(state.Error))
	}
	return s
}

// message returns a message of the agent, whose id is the same each time.
func message(info sdk.TaskInfo, run *runs.Run, kind string, parts ...*sdk.Part) *sdk.Message {
	m := sdk.NewMessageForTask(sdk.MessageRoleAgent, info, parts...)
	m.ID = "msg_" + run.ID + "_" + kind
	return m
}

// question describes what a run waits for: as text, and as a data part with the requests.
func question(pending []*runs.Request) []*sdk.Part {
	var lines []string
	for _, r := range pending {
		switch {
		case !r.AsksCaller():
			lines = append(lines, fmt.Sprintf("The call of %s with %s waits for the approval of %s.", r.Tool, r.Arguments, textfmt.List(r.By)))
		case r.Kind == runs.Approval:
			lines = append(lines, fmt.Sprintf("Approve the call of %s with %s? Answer approve or reject.", r.Tool, r.Arguments))
		default:
			lines = append(lines, fmt.Sprintf("Run the tool %s with %s and answer with its result.", r.Tool, r.Arguments))
		}
	}
	return []*sdk.Part{sdk.NewTextPart(strings.Join(lines, "\n")), sdk.NewDataPart(map[string]any{"requests": pending})}
}

// artifactsOf returns the artifacts of a row.
func artifactsOf(flow *schema.Flow, res *runs.Result) []*sdk.Artifact {
	if res.Error != "" {
		return nil
	}
	var list []*sdk.Artifact
	if m := flow.AnswerOf(res.Outputs); m != nil {
		list = append(list, &sdk.Artifact{ID: answerArtifact, Name: flow.Answer.ID, Parts: answerParts(m)})
	}
	if data := others(flow, res.Outputs); data != nil {
		list = append(list, &sdk.Artifact{ID: outputsArtifact, Name: "outputs", Parts: sdk.ContentParts{sdk.NewDataPart(data)}})
	}
	return list
}

// others returns the outputs other than the answer, nil if there are none.
func others(flow *schema.Flow, values []any) map[string]json.RawMessage {
	var data map[string]json.RawMessage
	for i, v := range flow.Outputs {
		if v == flow.Answer || i >= len(values) {
			continue
		}
		if data == nil {
			data = map[string]json.RawMessage{}
		}
		data[v.ID] = value.JSON(values[i])
	}
	return data
}

// answerParts converts the blocks of an answer.
func answerParts(m *chat.Message) sdk.ContentParts {
	parts := sdk.ContentParts{}
	for i := range m.Blocks {
		parts = append(parts, part(&m.Blocks[i]))
	}
	if len(parts) == 0 {
		parts = append(parts, sdk.NewTextPart(""))
	}
	return parts
}

func part(b *chat.Block) *sdk.Part {
	switch {
	case b.Type == "citation_url" || b.Type == "citation_document":
		if json.Valid([]byte(b.Text)) {
			return sdk.NewDataPart(json.RawMessage(b.Text))
		}
	case b.Media():
		p := sdk.NewRawPart(b.Data)
		p.MediaType = schema.MediaType(b)
		return p
	case b.Type != "text" && b.Text != "":
		return sdk.NewFileURLPart(sdk.URL(b.Text), schema.MediaType(b))
	}
	return sdk.NewTextPart(b.Text)
}

// errInternal is all that clients learn about errors of the server.
var errInternal = fmt.Errorf("%w: the server could not process the request", sdk.ErrInternalError)

// sentinels are the errors of the protocol that this package returns.
var sentinels = []error{sdk.ErrInvalidParams, sdk.ErrTaskNotFound, sdk.ErrTaskNotCancelable, sdk.ErrUnsupportedOperation,
	sdk.ErrUnsupportedContentType, sdk.ErrPushNotificationNotSupported, sdk.ErrInternalError, sdk.ErrServerError, sdk.ErrUnauthorized}

// rpcError returns an error of the protocol for any error; nil for nil.
func (s *service) rpcError(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range sentinels {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case errors.Is(err, runs.ErrBusy), errors.Is(err, runs.ErrClosed):
		return fmt.Errorf("%w: %w", sdk.ErrServerError, err)
	case errors.Is(err, runs.ErrAnswered), errors.Is(err, runs.ErrNoRequest):
		return fmt.Errorf("%w: %w", sdk.ErrUnsupportedOperation, err)
	}
	if p := problem.Of(err); p != nil {
		return fmt.Errorf("%w: %w", sentinelOf(p), p)
	}
	if errors.Is(err, context.Canceled) {
		return errInternal // the client has gone
	}
	s.Log.Error("a call of A2A failed", "error", err)
	return errInternal
}

func sentinelOf(p *problem.Problem) error {
	switch {
	case p.Status == http.StatusForbidden:
		return sdk.ErrUnauthorized
	case p.Status == http.StatusTooManyRequests || p.Status >= 500:
		return sdk.ErrServerError
	case p.Code == "attachment_not_allowed":
		return sdk.ErrUnsupportedContentType
	}
	return sdk.ErrInvalidParams
}

// invalid returns the error of a request that does not fit.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", sdk.ErrInvalidParams, fmt.Sprintf(format, args...))
}

// failure returns why a task failed, empty if it did not.
func failure(state *runs.State) string {
	for _, res := range state.Results {
		if p := host.TurnProblem(res.Err()); p != nil {
			return p.Detail
		}
		if res.Error != "" {
			return res.Error
		}
	}
	if state.Status == runs.Failed && state.Error != "" {
		return "the flow could not be run"
	}
	return ""
}
