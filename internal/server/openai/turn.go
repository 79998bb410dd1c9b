package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// maxSessionID is the longest id of a session, in bytes.
const maxSessionID = 256

// turn is a request for an answer of a flow, of either resource.
type turn struct {
	*request
	flow         *schema.Flow
	session      string // empty without one: the messages are the conversation
	conversation *conversation
	tools        []runs.CallerTool
	asked        asked // what the answering steps get in addition
	single       bool  // a response has at most one call
	inputs       map[string]json.RawMessage
	metadata     map[string]string
	stream       bool
	ignored      []string
	imports      bool      // earlier messages are new to the session
	begins       bool      // the server names the session, which begins with the response
	repeated     *runs.Run // that of an earlier request with the Idempotency-Key; nil for none
}

// runID returns the id of the run of a request with an Idempotency-Key, empty without one.
func (t *turn) runID() string {
	key := t.Header.Get("Idempotency-Key")
	if key == "" {
		return ""
	}
	return runPrefix + hash(t.principal.Name, t.URL.Path, t.flow.ID(), key)
}

// findRepeated finds the run of an earlier request with the key.
func (a *api) findRepeated(t *turn) (err error) {
	if id := t.runID(); id != "" {
		t.repeated, err = a.Runs.Find(t.Context(), t.app.App, t.principal.Name, id)
	}
	return err
}

// session returns the session that a request names, empty for none.
func (r *request) sessionID(metadata map[string]string) (string, error) {
	for _, name := range []string{"X-Session-Id", "session_id"} {
		for key, values := range r.Header {
			if strings.EqualFold(key, name) && len(values) > 0 && values[0] != "" {
				return values[0], checkSession("header "+name, values[0])
			}
		}
	}
	id := metadata["session_id"]
	return id, checkSession("/metadata/session_id", id)
}

// checkSession returns a problem for an id that a client must not choose.
func checkSession(where, id string) error {
	if len(id) > maxSessionID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return bad(where, "invalid_session", "a session id has at most %d bytes and no control characters", maxSessionID)
	}
	return nil
}

// hasMemory reports whether the flow keeps conversations.
func (t *turn) hasMemory() bool { return len(runtime.MemoryIDs(t.flow.Spec)) > 0 }

// began is a run whose events are the answer.
type began struct {
	run      *runs.Run
	answered []string // ids of the requests whose answers precede the response; nil: it begins with the run
}

// begin starts a run, or continues the one whose calls the client has answered.
func (a *api) begin(ctx context.Context, t *turn) (*began, error) {
	if t.stream { // before any work: there may be too many streams
		if err := access.BeginStream(ctx); err != nil {
			return nil, err
		}
	}
	if len(t.conversation.results) > 0 {
		return a.resume(ctx, t)
	}
	if t.repeated == nil {
		if err := a.abandon(ctx, t); err != nil {
			return nil, err
		}
	}
	start, err := a.start(ctx, t)
	if err != nil {
		return nil, err
	}
	if !start.Stateless {
		if err := a.Record(ctx, t.flow.ID(), start.Session, t.conversation.newest.Written()); err != nil {
			return nil, err
		}
	}
	run, err := a.Runs.Begin(ctx, *start)
	if err == nil && start.ID != "" { // it may be the run of another process
		run, err = a.Runs.Attach(ctx, t.app.App, t.principal.Name, run.ID)
	}
	if err != nil {
		return nil, err
	}
	if t.begins { // perhaps in the session of an earlier request with the key
		t.session, _ = t.principal.ClientSession(run.Session)
	}
	return &began{run: run}, nil
}

// start describes the run of a turn.
func (a *api) start(ctx context.Context, t *turn) (*runs.Start, error) {
	session := t.session
	if session == "" {
		session = "s_" + rand.Text()
	}
	row, err := a.row(ctx, t, session)
	if err != nil {
		return nil, err
	}
	s := &runs.Start{App: t.app.App, Flow: t.flow.Spec, Owner: t.principal.Name, Session: t.principal.StoredSession(session), Rows: []map[string]any{row},
		Events: true, Detached: t.flow.Finishes(), Durable: t.flow.MayWait() || len(t.tools) > 0, Tools: t.tools, Instructions: t.instructions()}
	if t.session == "" || !t.hasMemory() {
		s.Stateless, s.History = true, t.conversation.earlier
	} else if t.imports && t.repeated == nil {
		if err := t.importEarlier(ctx, s.Session); err != nil {
			return nil, err
		}
	}
	if s.ID = t.runID(); s.ID != "" {
		named := t.session
		if t.begins {
			named = ""
		}
		s.Digest, s.Durable = hash(string(t.body), named), true
		s.Detached = true // the client may send the request again
	}
	return s, nil
}

// importEarlier adds the messages before the newest to the memories of a session.
func (t *turn) importEarlier(ctx context.Context, session string) error {
	earlier, _ := chat.Balance(t.conversation.earlier) // a client may have left results out
	if len(earlier) == 0 {
		return nil
	}
	for _, id := range runtime.MemoryIDs(t.flow.Spec) {
		if err := t.app.App.Memory(id).Append(ctx, session, earlier...); err != nil {
			return err
		}
	}
	return nil
}

// hash identifies texts.
func hash(texts ...string) string {
	h := sha256.New()
	for _, s := range texts {
		_, _ = io.WriteString(h, s+"\x00") // a hash does not fail
	}
	return strings.ToUpper(hex.EncodeToString(h.Sum(nil)[:16]))
}

// instructions returns what the answering steps get from the caller, nil for nothing.
func (t *turn) instructions() *steps.Instructions {
	in := steps.Instructions(t.asked)
	in.Text, in.Prefix = strings.Join(t.conversation.instructions, "\n\n"), t.conversation.prefix
	if in.Text == "" && in.Prefix == "" && len(in.Schema) == 0 && len(in.Stop) == 0 && len(t.tools) == 0 {
		return nil
	}
	in.Steps = t.flow.Answering()
	return &in
}

// row returns the inputs of the flow. The error is a *problem.Problem or of the store.
func (a *api) row(ctx context.Context, t *turn, session string) (map[string]any, error) {
	in, err := a.Inputs.Known(ctx, t.flow, t.principal.StoredSession(session))
	if err != nil {
		return nil, err
	}
	fields := make([]value.Field, 0, len(t.inputs)+1)
	for name, raw := range t.inputs {
		v, err := value.Parse(string(raw))
		if err != nil {
			return nil, bad("/inputs/"+name, "invalid_value", "%s", err)
		}
		fields = append(fields, value.Field{Name: name, Value: v})
	}
	fields = append(fields, value.Field{Name: t.flow.Message.ID, Value: t.conversation.newest.Message})
	row, wrong := t.flow.Decode(value.NewRecord("", fields...), "/inputs", in.Has)
	if len(wrong) > 0 {
		return nil, schema.Invalid(wrong)
	}
	return row, a.Inputs.Apply(ctx, in, row)
}

// abandon ends the run that waits for the client if the client goes on without answering
// it: nothing would answer it, and its turn would delay the new one.
func (a *api) abandon(ctx context.Context, t *turn) error {
	var waiting []*runs.Run
	if t.session != "" {
		run, err := a.Runs.FindWaiting(ctx, t.app.App, t.principal.Name, t.flow.Spec, t.principal.StoredSession(t.session))
		if err != nil {
			return err
		}
		waiting = append(waiting, run)
	}
	if c := t.conversation; len(c.calls) > 0 {
		if id, _, ok := parseCallID(c.calls[0]); ok {
			run, err := a.Runs.Find(ctx, t.app.App, t.principal.Name, id)
			if err != nil {
				return err
			}
			waiting = append(waiting, run)
		}
	}
	for _, run := range waiting {
		if run == nil || run.State().Status != runs.Waiting {
			continue
		}
		if !waitsForTools(run) {
			return problem.New(http.StatusConflict, "approval_pending", "run %s of the session waits for an approval", run.ID)
		}
		if err := a.Runs.Abandon(ctx, t.app.App, run); err != nil {
			return err
		}
	}
	return nil
}

// waitsForTools reports whether the run waits for nothing but results of the client's tools.
func waitsForTools(run *runs.Run) bool {
	s := run.State()
	return s.Status == runs.Waiting && !slices.ContainsFunc(s.Pending, func(r *runs.Request) bool { return r.Kind != runs.ClientTool })
}

// resume passes results of tools to the run that waits for them.
func (a *api) resume(ctx context.Context, t *turn) (*began, error) {
	id, _, ok := parseCallID(t.conversation.results[0].ToolCallID)
	if !ok {
		return nil, unknownCall(t.conversation.results[0])
	}
	found, err := a.Runs.Find(ctx, t.app.App, t.principal.Name, id)
	if err != nil {
		return nil, err
	}
	if found == nil || found.Flow.ID != t.flow.ID() {
		return nil, unknownCall(t.conversation.results[0])
	}
	out := &began{run: found}
	for _, m := range t.conversation.results {
		run, request, ok := parseCallID(m.ToolCallID)
		if !ok || run != id {
			return nil, bad(m.pointer+"/tool_call_id", "unknown_tool_call", "the call %q is not of the same response as the others", m.ToolCallID)
		}
		out.answered = append(out.answered, request)
	}
	for i, m := range t.conversation.results {
		if err := a.answer(ctx, found, out.answered[i], m); err != nil {
			return nil, err
		}
	}
	run, err := a.Runs.Attach(ctx, t.app.App, t.principal.Name, out.run.ID)
	if run != nil {
		out.run = run
	}
	return out, err
}

// resultOf returns the result of a call, which clients send as a text. For a tool of the document, an object
// or a list has its outputs; a text is the value of the only one.
func resultOf(run *runs.Run, request, text string) json.RawMessage {
	declared := slices.ContainsFunc(run.State().Pending, func(r *runs.Request) bool { return r.ID == request && len(r.Schema) > 0 })
	if start := strings.TrimSpace(text); declared && (strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[")) {
		return schema.JSONOrText(text)
	}
	raw, _ := json.Marshal(text) // a text always encodes
	return raw
}

// answer passes the result of one call. A result that was passed before is no error: the
// client repeats a request.
func (a *api) answer(ctx context.Context, run *runs.Run, request string, m *message) error {
	given := &runs.Answer{ID: request}
	if m.approved != nil {
		given.Approved, given.Reason = m.approved, m.Text()
	} else {
		given.Result = resultOf(run, request, m.Text())
	}
	err := a.Runs.Answer(ctx, run, given)
	switch {
	case err == nil, errors.Is(err, runs.ErrAnswered):
		return nil
	case errors.Is(err, runs.ErrNoRequest):
		if run.State().Status == runs.Cancelled {
			return bad(m.pointer+"/tool_call_id", "run_cancelled", "the run that made the call %q was cancelled", m.ToolCallID)
		}
		return unknownCall(m)
	}
	return err
}

func unknownCall(m *message) error {
	return bad(m.pointer+"/tool_call_id", "unknown_tool_call", "no run of the flow waits for the result of call %q; it does not exist or has expired", m.ToolCallID)
}

// textOf returns the text of a result of a flow without an answer of type ChatMessage.
func textOf(outputs []any) string {
	if len(outputs) == 0 {
		return ""
	}
	return value.Text(outputs[0])
}
