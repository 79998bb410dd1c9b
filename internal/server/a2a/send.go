package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	former "github.com/a2aproject/a2a-go/a2a"
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

// call is a call of JSON-RPC.
type call struct {
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Version string          `json:"-"` // of the protocol: 0.3 or 1.0
	body    []byte          // with params
}

// faults are the codes of the errors that readCall returns.
var faults = map[error]int{sdk.ErrParseError: -32700, sdk.ErrInvalidRequest: -32600, sdk.ErrInvalidParams: -32602, sdk.ErrVersionNotSupported: -32009}

// readCall parses a call and checks what the SDK reports with other codes than the protocol. The error
// is one of faults. The call has what was read of it.
func readCall(r *http.Request, body []byte) (*call, error) {
	c := &call{body: body}
	if !json.Valid(body) {
		return c, fmt.Errorf("%w: the body is not JSON", sdk.ErrParseError)
	}
	if err := json.Unmarshal(body, c); err != nil {
		return c, fmt.Errorf("%w: %s", sdk.ErrInvalidRequest, wrongType(err, "the call"))
	}
	c.Version = c.version(r)
	if c.Version != formerVersion && c.Version != "1" && !strings.HasPrefix(c.Version, "1.") {
		return c, fmt.Errorf("%w: version %q: use 1.0 or 0.3", sdk.ErrVersionNotSupported, c.Version)
	}
	if c.Params == nil && c.Method != "" {
		return c, c.addParams()
	}
	return c, c.checkMessage()
}

// addParams adds the parameters of a call that has none.
func (c *call) addParams() error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(c.body, &members) // it is an object
	members["params"] = json.RawMessage("{}")
	var err error
	c.body, err = json.Marshal(members)
	return err
}

// checkMessage decodes the parameters with a message, whose parts may have no or unknown content.
func (c *call) checkMessage() error {
	var params any
	switch c.Method {
	case "SendMessage", "SendStreamingMessage":
		params = &sdk.SendMessageRequest{}
	case "message/send", "message/stream":
		params = &former.MessageSendParams{}
	default:
		return nil
	}
	if err := json.Unmarshal(c.Params, params); err != nil {
		return fmt.Errorf("%w: %s", sdk.ErrInvalidParams, wrongType(err, "params"))
	}
	return nil
}

// wrongType describes an error of package json without types of Go. whole is the name of the value.
func wrongType(err error, whole string) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err.Error()
	case wrong.Field != "":
		return fmt.Sprintf("%s cannot be of the type %s", wrong.Field, wrong.Value)
	}
	return fmt.Sprintf("%s cannot be of the type %s", whole, wrong.Value)
}

// writeError answers a call with one of faults.
func (c *call) writeError(w http.ResponseWriter, err error) error {
	code := -32603
	for known, number := range faults {
		if errors.Is(err, known) {
			code = number
		}
	}
	id := c.ID
	if len(id) == 0 || id[0] == '{' || id[0] == '[' {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": err.Error()}})
}

// streams reports whether the call is answered with a stream.
func (c *call) streams() bool {
	switch c.Method {
	case "SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe":
		return true
	}
	return false
}

// former reports whether the call is one of the version before 1.0.
func (c *call) former() bool { return c.Version == formerVersion }

// version returns the version of the protocol that a client uses: that of the header or
// the parameter A2A-Version. Without it the form of the method's name decides.
func (c *call) version(r *http.Request) string {
	if v := r.Header.Get("A2A-Version"); v != "" {
		return v
	}
	if v := r.URL.Query().Get("A2A-Version"); v != "" {
		return v
	}
	if strings.Contains(c.Method, "/") {
		return formerVersion
	}
	return "1.0"
}

// Words that approve and reject.
var (
	approveWords = []string{"approve", "approved", "yes", "true", "ok"}
	rejectWords  = []string{"reject", "rejected", "deny", "denied", "no", "false"}
)

// answersOf returns the answers that a message has to the requests of a waiting run. A data
// part is an answer, or has a list of them under answers; an answer without an id is that
// to the only request. A text answers the only request.
func answersOf(m *sdk.Message, pending []*runs.Request) ([]*runs.Answer, error) {
	var list []*runs.Answer
	for _, p := range m.Parts {
		if p == nil {
			return nil, invalid("a part of the message is null")
		}
		var err error
		switch v := p.Content.(type) {
		case sdk.Data:
			list, err = appendData(list, v.Value, pending)
		case sdk.Text:
			if strings.TrimSpace(string(v)) == "" {
				continue
			}
			list, err = appendText(list, string(v), pending)
		default:
			err = invalid("an answer must be a text or a data part")
		}
		if err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, invalid("the message has no answer")
	}
	return list, nil
}

func appendData(list []*runs.Answer, data any, pending []*runs.Request) ([]*runs.Answer, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, invalid("the data is not JSON")
	}
	var several struct {
		Answers []json.RawMessage `json:"answers"`
	}
	items := []json.RawMessage{raw}
	if json.Unmarshal(raw, &several) == nil && several.Answers != nil {
		items = several.Answers
	}
	for _, item := range items {
		a := &runs.Answer{}
		if json.Unmarshal(item, a) != nil {
			return nil, invalid(`an answer is an object with "approved", "result" or "error"`)
		}
		r, err := requestOf(a.ID, pending)
		if err != nil {
			return nil, err
		}
		a.ID = r.ID
		if err := a.Fits(r.Kind); err != nil {
			return nil, invalid("%s", err)
		}
		list = append(list, a)
	}
	return list, nil
}

func appendText(list []*runs.Answer, text string, pending []*runs.Request) ([]*runs.Answer, error) {
	r, err := requestOf("", pending)
	if err != nil {
		return nil, err
	}
	a := &runs.Answer{ID: r.ID}
	if r.Kind != runs.Approval {
		a.Result = schema.JSONOrText(text)
		return append(list, a), nil
	}
	word := strings.ToLower(strings.Trim(text, " \t\r\n.!"))
	yes := slices.Contains(approveWords, word)
	if !yes && !slices.Contains(rejectWords, word) {
		return nil, invalid(`answer "approve" or "reject", or send a data part with "approved"`)
	}
	a.Approved = &yes
	return append(list, a), nil
}

// requestOf returns the request with an id, the only one for an empty id.
func requestOf(id string, pending []*runs.Request) (*runs.Request, error) {
	if id == "" && len(pending) == 1 {
		return pending[0], nil
	}
	for _, r := range pending {
		if r.ID == id {
			return r, nil
		}
	}
	if id == "" {
		return nil, invalid(`the task waits for %d answers: each needs the "id" of its request`, len(pending))
	}
	return nil, invalid("the task does not wait for the answer to request %q", id)
}
