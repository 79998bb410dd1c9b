package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// sent is the run that a message has started or continued.
type sent struct {
	run      *runs.Run
	seen     int             // events from before the message
	answered map[string]bool // ids of the requests that the message answers
}

// send starts the run of a message, or passes its answers to the run of its task.
func (q *requests) send(ctx context.Context, req *sdk.SendMessageRequest) (*sent, error) {
	if err := checkSend(req); err != nil {
		return nil, err
	}
	m := req.Message
	if m.TaskID != "" {
		return q.resume(ctx, m)
	}
	if err := host.CheckSession("contextId", m.ContextID); err != nil {
		return nil, err
	}
	flow, err := q.skillOf(req)
	if err != nil {
		return nil, err
	}
	start, err := q.start(ctx, flow, m)
	if err != nil {
		return nil, err
	}
	run, err := q.Runs.Begin(ctx, start)
	if err != nil {
		return nil, err
	}
	return &sent{run: run}, nil
}

// checkSend returns an error for a request that no skill accepts.
func checkSend(req *sdk.SendMessageRequest) error {
	m := req.Message
	switch {
	case m == nil:
		return invalid("the message is missing")
	case m.ID == "":
		return invalid("the id of the message is missing")
	case m.Role != sdk.MessageRoleUser:
		return invalid("the role of the message must be that of the user")
	case len(m.Parts) == 0:
		return invalid("the message has no parts")
	case req.Config == nil:
		return nil
	case req.Config.PushConfig != nil:
		return sdk.ErrPushNotificationNotSupported
	case len(req.Config.AcceptedOutputModes) > 0 && !slices.ContainsFunc(req.Config.AcceptedOutputModes, isOffered):
		return fmt.Errorf("%w: skills answer with %s", sdk.ErrUnsupportedContentType, strings.Join(modes, " and "))
	}
	return nil
}

// isOffered reports whether skills answer with a media type.
func isOffered(mode string) bool {
	return mode == "*/*" || mode == "text/*" || mode == "text" || slices.Contains(modes, mode)
}

// skillOf returns the flow of a message: that of the agent, that which metadata name as
// skill, that of the newest task of the context, or the first conversational one.
func (q *requests) skillOf(req *sdk.SendMessageRequest) (*schema.Flow, error) {
	if q.flow != nil {
		return q.flow, nil
	}
	for _, metadata := range []map[string]any{req.Message.Metadata, req.Metadata} {
		if id, ok := metadata["skill"].(string); ok {
			return q.app.Flow(q.principal, id)
		}
	}
	if id := req.Message.ContextID; id != "" {
		session := q.principal.StoredSession(id)
		last := q.Runs.List(q.principal.Name, func(r *runs.Run) bool { return r.Session == session && taskID().MatchString(r.ID) })
		if len(last) > 0 {
			return q.app.Flow(q.principal, last[0].Flow.ID)
		}
	}
	var only *schema.Flow
	ids := q.app.IDs(q.principal)
	for _, f := range q.app.Flows {
		if !access.Allowed(f.Spec, q.principal) {
			continue
		}
		if f.Conversational() {
			return f, nil
		}
		only = f
	}
	if len(ids) != 1 {
		return nil, invalid(`name a skill as "skill" in the metadata of the message: %s`, strings.Join(ids, ", "))
	}
	return only, nil
}

// start returns the run of a message. It goes on without a client, and survives a restart.
func (q *requests) start(ctx context.Context, flow *schema.Flow, m *sdk.Message) (runs.Start, error) {
	s := runs.Start{App: q.app.App, Flow: flow.Spec, Owner: q.principal.Name, Events: true, Durable: true, Detached: true}
	s.ID = q.taskOf(flow, m)
	client := m.ContextID
	if client == "" {
		client = "c_" + s.ID[len("task_"):]
	}
	s.Session = q.principal.StoredSession(client)
	c, err := read(m.Parts)
	if err != nil {
		return s, err
	}
	record, err := c.inputs(flow)
	if err != nil {
		return s, err
	}
	known, err := q.Inputs.Known(ctx, flow, s.Session)
	if err != nil {
		return s, err
	}
	row, wrong := flow.Decode(record, "", known.Has)
	if len(wrong) > 0 {
		return s, schema.Invalid(wrong)
	}
	s.Rows = []map[string]any{row}
	return s, q.Inputs.Apply(ctx, known, row)
}

// taskOf returns the id of the task of a message. A message that is sent twice has the same
// task: its id is a hash of the caller and the message.
func (q *requests) taskOf(flow *schema.Flow, m *sdk.Message) string {
	raw, _ := json.Marshal(m.Parts) // they were decoded from JSON
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %s", q.principal.Name, flow.ID(), m.ContextID, m.ID, raw)
	return "task_" + strings.ToUpper(hex.EncodeToString(h.Sum(nil)[:16]))
}

// resume passes the answers of a message to the run of its task.
func (q *requests) resume(ctx context.Context, m *sdk.Message) (*sent, error) {
	run, err := q.find(ctx, m.TaskID)
	if err != nil {
		return nil, err
	}
	if m.ContextID != "" && m.ContextID != q.info(run).ContextID {
		return nil, invalid("task %s is not of context %q", run.ID, m.ContextID)
	}
	state := run.State()
	if state.Status != runs.Waiting {
		return nil, fmt.Errorf("%w: the task is %s and does not wait for a message", sdk.ErrUnsupportedOperation, state.Status)
	}
	answers, err := answersOf(m, state.Pending)
	if err != nil {
		return nil, err
	}
	s := &sent{run: run, seen: run.Count(), answered: map[string]bool{}}
	for _, a := range answers {
		if err := q.Runs.Answer(ctx, run, a); err != nil {
			return nil, err
		}
		s.answered[a.ID] = true
	}
	return s, nil
}
