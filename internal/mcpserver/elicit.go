package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// asker puts a question to the user of a client.
type asker interface {
	ask(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error)
}

type askerKey struct{}

func withAsker(ctx context.Context, a asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// errNoElicitation is the error of a question to a client that cannot put it to its user.
var errNoElicitation = &redact.PublicError{Err: errors.New("the MCP client does not support elicitation, which is needed to answer for its user")}

// askClient puts a question to the client that has started the run.
func askClient(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	a, ok := ctx.Value(askerKey{}).(asker)
	if !ok {
		return nil, &redact.PublicError{Err: errors.New("the run was not started by an MCP client")}
	}
	return a.ask(ctx, question)
}

// supportsForms reports whether a client can put a form to its user.
func supportsForms(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// sessionAsker puts questions over a session.
type sessionAsker struct{ session *sdk.ServerSession }

func (a *sessionAsker) ask(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	if init := a.session.InitializeParams(); init == nil || !supportsForms(init.Capabilities) {
		return nil, errNoElicitation
	}
	return a.session.Elicit(ctx, question)
}

// Approve is a tool.Approver: it requests approval from the user of the MCP client that
// has started the run.
func Approve(ctx context.Context, call tool.Request) (yes bool, reason string, err error) {
	p := access.PrincipalOf(ctx)
	if !spec.MayDecide(call.By, p.Roles, true) {
		return false, "", &redact.PublicError{Err: fmt.Errorf("a call of %s is decided by %s, and MCP clients cannot wait for others", call.Tool.Name, strings.Join(call.By, " or "))}
	}
	if call.Decided != nil {
		call.Decided(p.Name)
	}
	schema := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"approve": map[string]any{"type": "boolean", "title": "Approve", "description": "Whether the tool may be called"},
			"reason":  map[string]any{"type": "string", "title": "Reason", "description": "For the model, if the call is rejected"},
		},
		"required": []string{"approve"},
	}
	message := fmt.Sprintf("May the tool %s be called? %s\nArguments: %s", call.Tool.Name, call.Tool.Description, call.Args)
	answer, err := askClient(ctx, &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema})
	if err != nil {
		return false, "", err
	}
	switch answer.Action {
	case "accept":
		yes, _ = answer.Content["approve"].(bool)
		reason, _ = answer.Content["reason"].(string)
		return yes, reason, nil
	case "decline":
		return false, "", nil
	}
	return false, "the request was dismissed without an answer", nil
}

// HandleClientTool is a tool.ClientHandler: it requests the outputs of the tool from the
// user of the MCP client that has started the run. Lists and records are requested as
// JSON texts, as forms have simple fields only.
func HandleClientTool(ctx context.Context, call tool.Request) (any, error) {
	message := fmt.Sprintf("%s\nArguments: %s", call.Tool.Description, call.Args)
	answer, err := askClient(ctx, &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: formSchema(call.Outputs)})
	switch {
	case err != nil:
		return nil, err
	case answer.Action == "decline":
		return nil, &redact.PublicError{Err: errors.New("the user declined to answer")}
	case answer.Action != "accept":
		return nil, &redact.PublicError{Err: errors.New("the user dismissed the request")}
	}
	return formResult(call.Outputs, answer.Content)
}

// clientTools returns the handler of every client tool.
func clientTools(string) tool.ClientHandler { return HandleClientTool }

// formSchema returns the schema of a form for variables.
func formSchema(vars []*spec.Variable) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, v := range vars {
		properties[v.ID] = formField(v.Type)
		if !v.IsOptional() {
			required = append(required, v.ID)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// formField returns the schema of a field, which may only be simple.
func formField(t spec.Type) map[string]any {
	switch {
	case isJSON(t):
		return map[string]any{"type": "string", "description": fmt.Sprintf("%s, as JSON", t)}
	case t.Name == "int":
		return map[string]any{"type": "integer"}
	case t.Name == "float":
		return map[string]any{"type": "number"}
	case t.Name == "boolean":
		return map[string]any{"type": "boolean"}
	case t.Name == "date":
		return map[string]any{"type": "string", "format": "date"}
	case t.Name == "datetime":
		return map[string]any{"type": "string", "format": "date-time"}
	case t.IsMedia():
		return map[string]any{"type": "string", "description": "a file, as base64"}
	}
	return map[string]any{"type": "string"}
}

// isJSON reports whether a form has a value of a type as JSON text.
func isJSON(t spec.Type) bool { return t.Elem != nil || t.IsRecord() && !t.Is("ChatMessage") }

// formResult returns the outputs of a tool from the fields of a form.
func formResult(vars []*spec.Variable, fields map[string]any) (any, error) {
	result := map[string]any{}
	for _, v := range vars {
		given, ok := fields[v.ID]
		if !ok {
			continue
		}
		if s, isText := given.(string); isText {
			parsed, err := formValue(v.Type, s)
			if err != nil {
				return nil, &redact.PublicError{Err: fmt.Errorf("the answer %s: %w", v.ID, err)}
			}
			given = parsed
		}
		result[v.ID] = given
	}
	return result, nil
}

// formValue returns the value of a text field. An empty optional field has none.
func formValue(t spec.Type, text string) (any, error) {
	switch {
	case isJSON(t):
		v, err := value.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		return decodeMedia(t, v)
	case t.IsMedia():
		return decodeBase64(text)
	}
	return text, nil
}

// Clients of protocol 2026-07-28 have no sessions, and a server cannot send requests to
// them: a call that needs an answer of the user returns the question, and the client
// repeats the call with the answer. The run waits meanwhile; an unpredictable text, the
// state of the call, identifies it.

// maxParked is the maximum number of runs that wait for answers.
const maxParked = 1000

// answerID is the name of the question in a result; each result has one.
const answerID = "answer"

// round is a run that may need several requests of its client.
type round struct {
	flow     *flowTool
	owner    string // the name of the principal
	cancel   context.CancelFunc
	ask      *roundAsker
	done     chan *sdk.CallToolResult // capacity 1
	progress *progress
	waiting  *question // put to the client, not answered yet
	expiry   *time.Timer
}

// question is one question of a run.
type question struct {
	params *sdk.ElicitParams
	reply  chan *sdk.ElicitResult // capacity 1
}

// roundAsker puts a question by the result of the current request.
type roundAsker struct {
	questions chan *question
	supported bool
	missed    atomic.Bool // a question could not be put, because it is not supported
}

func (a *roundAsker) ask(ctx context.Context, params *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	if !a.supported {
		a.missed.Store(true)
		return nil, errNoElicitation
	}
	q := &question{params, make(chan *sdk.ElicitResult, 1)}
	select {
	case a.questions <- q:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case answer := <-q.reply:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// callInRounds starts a run, or continues the one that the request has an answer for.
func (a *application) callInRounds(ctx context.Context, req *sdk.CallToolRequest, t *flowTool) (*sdk.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return a.await(ctx, a.startRound(ctx, req, t))
	}
	r, err := a.parked.take(req.Params.RequestState, access.PrincipalOf(ctx).Name, t)
	if err != nil {
		return nil, invalid("%v", err)
	}
	answer, ok := req.Params.InputResponses[answerID].(*sdk.ElicitResult)
	if !ok {
		return a.park(r), nil // the question is put again
	}
	r.progress.attach(ctx, req)
	r.waiting.reply <- answer
	return a.await(ctx, r)
}

// startRound starts a run that outlives the request if it has a question.
func (a *application) startRound(ctx context.Context, req *sdk.CallToolRequest, t *flowTool) *round {
	p := newProgress(ctx, req)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ask := &roundAsker{questions: make(chan *question), supported: supportsForms(req.ClientCapabilities())}
	r := &round{flow: t, owner: access.PrincipalOf(ctx).Name, cancel: cancel, ask: ask, done: make(chan *sdk.CallToolResult, 1), progress: p}
	a.parked.running.Go(func() { r.done <- a.run(running, req, t, ask, p) })
	return r
}

// await returns the result of a run, or its next question.
func (a *application) await(ctx context.Context, r *round) (*sdk.CallToolResult, error) {
	select {
	case result := <-r.done:
		r.cancel()
		if result.IsError && r.ask.missed.Load() {
			return nil, errElicitationRequired
		}
		return result, nil
	case <-ctx.Done():
		r.end()
		return failed("the call was canceled"), nil
	case q := <-r.ask.questions:
		r.progress.detach()
		r.waiting = q
		return a.park(r), nil
	}
}

// park returns the question of a run, which waits for the answer.
func (a *application) park(r *round) *sdk.CallToolResult {
	state, err := a.parked.put(r)
	if err != nil {
		r.end()
		return failed(err.Error())
	}
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{answerID: r.waiting.params}, RequestState: state}
}

// errElicitationRequired is the error of the protocol for a run that failed because its client declared no elicitation.
// The type of the SDK for the data has other capabilities too.
var errElicitationRequired = &jsonrpc.Error{
	Code:    sdk.CodeMissingRequiredClientCapabilities,
	Message: errNoElicitation.Error(),
	Data:    json.RawMessage(`{"requiredCapabilities":{"elicitation":{"form":{}}}}`),
}

// end cancels the run and waits for its end.
func (r *round) end() {
	r.cancel()
	<-r.done
}

// parked are the runs that wait for an answer.
type parked struct {
	limit   time.Duration
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	rounds map[string]*round // by their states
}

// put parks a run and returns its state.
func (p *parked) put(r *round) (state string, err error) {
	limit := p.limit
	if limit <= 0 {
		limit = 10 * time.Minute
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return "", errors.New("the server is shutting down")
	case len(p.rounds) >= maxParked:
		return "", fmt.Errorf("%d runs wait for answers already; try again later", maxParked)
	case p.rounds == nil:
		p.rounds = map[string]*round{}
	}
	state = rand.Text()
	p.rounds[state] = r
	r.expiry = time.AfterFunc(limit, func() { p.expire(state) })
	return state, nil
}

// take returns a parked run of the caller. It cannot be taken again.
func (p *parked) take(state, owner string, t *flowTool) (*round, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rounds[state]
	if r == nil || r.owner != owner || r.flow != t {
		return nil, errors.New("no run waits for this answer: it was answered, canceled or took too long; call the tool again")
	}
	delete(p.rounds, state)
	r.expiry.Stop()
	return r, nil
}

// expire cancels a run that was not answered in time.
func (p *parked) expire(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.rounds[state]; r != nil {
		delete(p.rounds, state)
		r.cancel()
	}
}

// close cancels all parked runs, and waits for the end of all runs.
func (p *parked) close() {
	p.mu.Lock()
	p.closed = true
	for state, r := range p.rounds {
		r.expiry.Stop()
		r.cancel()
		delete(p.rounds, state)
	}
	p.mu.Unlock()
	p.running.Wait()
}
