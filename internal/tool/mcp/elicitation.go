package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// elicit requests an answer of the user of the run, as a ClientTool does. It declines if
// there is no handler, if there is no answer, and if the answer has another form.
func (s *Server) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	declined := &sdk.ElicitResult{Action: "decline"}
	call, cancel, err := s.asker.current(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	fields, err := formOf(req.Params.RequestedSchema)
	if err != nil || req.Params.Mode == "url" {
		return declined, nil
	}
	question := s.question(req.Params.Message, fields)
	question.Caller = tool.CallerOf(call)
	answer, err := s.askPerson(call, question)
	if err != nil || call.Err() != nil {
		return declined, nil
	}
	content := map[string]any{}
	if record, ok := value.FromGo(answer).(*value.Record); ok {
		for name, v := range record.All() {
			if v != nil {
				content[name] = value.ToGo(v)
			}
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

// question returns a request of the server as a call of a ClientTool.
func (s *Server) question(message string, fields []formField) tool.Request {
	text := httpx.SingleLine(message, 1000)
	outputs := make([]*spec.Variable, 0, len(fields))
	for _, f := range fields {
		outputs = append(outputs, f.variable)
		if f.about != "" {
			text += fmt.Sprintf(" [%s: %s]", f.variable.ID, httpx.SingleLine(f.about, 300))
		}
	}
	info := tool.Info{ID: s.declared.ID, Name: s.declared.ID, Description: text, Parameters: tool.Schema(nil)}
	return tool.Request{Tool: info, Outputs: outputs, Args: value.JSON(value.NewRecord("", value.Field{Name: "message", Value: message}))}
}

// formField is a field that a server requests.
type formField struct {
	variable *spec.Variable
	about    string // its meaning and its allowed values
}

// formSchema is the schema of a form.
type formSchema struct {
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
}

// fieldSchema is the schema of a field of a form.
type fieldSchema struct {
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Enum        []string     `json:"enum"`
	OneOf       []constant   `json:"oneOf"`
	AnyOf       []constant   `json:"anyOf"`
	Items       *fieldSchema `json:"items"`
}

type constant struct {
	Const string `json:"const"`
}

// formOf returns the fields of a form in the order of its schema.
func formOf(schema any) ([]formField, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var form formSchema
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, err
	}
	described := map[string]fieldSchema{}
	if len(form.Properties) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(form.Properties, &described); err != nil {
		return nil, err
	}
	var fields []formField
	for _, v := range tool.InputsOf(raw) {
		d := described[v.ID]
		v.Type = d.typeOf()
		fields = append(fields, formField{v, d.about()})
	}
	return fields, nil
}

// typeOf returns the type of a field, which is simple or a list of texts.
func (f *fieldSchema) typeOf() spec.Type {
	switch f.Type {
	case "integer":
		return spec.Type{Name: "int"}
	case "number":
		return spec.Type{Name: "float"}
	case "boolean":
		return spec.Type{Name: "boolean"}
	case "array":
		return spec.Type{Elem: &spec.Type{Name: "text"}}
	}
	return spec.Type{Name: "text"}
}

// about describes a field in one line.
func (f *fieldSchema) about() string {
	var parts []string
	for _, text := range []string{f.Title, f.Description} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	choices := f.Enum
	for _, list := range []*fieldSchema{f, f.Items} {
		if list == nil {
			continue
		}
		if list != f {
			choices = append(choices, list.Enum...)
		}
		for _, c := range append(append([]constant{}, list.OneOf...), list.AnyOf...) {
			choices = append(choices, c.Const)
		}
	}
	if len(choices) > 0 {
		parts = append(parts, "one of "+strings.Join(choices, ", "))
	}
	return strings.Join(parts, "; ")
}

// asker answers the requests of a server to this program: those for a model and those for
// the user. They belong to the call that is made meanwhile: to its run, with its budget
// and its user. The protocol does not name the call, so that calls are made one by one.
type asker struct {
	turn chan struct{} // a mutex that a call holds

	mu      sync.Mutex
	call    context.Context // the call in progress; nil for none
	samples int             // calls of the model for it
}

// errNoCall refuses a request that belongs to no call.
var errNoCall = refuse("requests are answered only while one of the server's tools is called")

// begin waits until no other call is made. The caller sets the context of the call, and
// calls end after it.
func (a *asker) begin(ctx context.Context) (end func(), err error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return func() {
		a.mu.Lock()
		a.call = nil
		a.mu.Unlock()
		<-a.turn
	}, nil
}

// set begins to answer requests for the call of a context.
func (a *asker) set(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call, a.samples = ctx, 0
}

// current returns the context of the call in progress, which ends with that of a request, too.
func (a *asker) current(request context.Context) (context.Context, context.CancelFunc, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.call == nil {
		return nil, nil, errNoCall
	}
	ctx, cancel := context.WithCancel(a.call)
	stop := context.AfterFunc(request, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// refuse returns the error of a request that is not answered.
func refuse(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// refused returns the error of a request as the server gets it.
func refused(err error) error {
	if own, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return own
	}
	return refuse("%s", httpx.SingleLine(err.Error(), 300))
}

// mayRequest reports whether the document lets the server make requests.
func (s *Server) mayRequest() bool { return s.declared.Sampling != nil || s.declared.Elicitation }

// clientOptions returns what the server may request.
func (s *Server) clientOptions() *sdk.ClientOptions {
	changed := s.catalog.expire
	o := &sdk.ClientOptions{
		Capabilities:               &sdk.ClientCapabilities{},
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { changed() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { changed() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { changed() },
	}
	if s.declared.Sampling != nil {
		o.CreateMessageHandler = s.sample //nolint:staticcheck // deprecated by the newest protocol; servers use it
	}
	if s.declared.Elicitation {
		o.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
		o.ElicitationHandler = s.elicit
	}
	return o
}

// refuseUndeclared returns a clear error for requests that the document does not allow.
func (s *Server) refuseUndeclared(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch {
		case method == "sampling/createMessage" && s.declared.Sampling == nil:
			return nil, refuse("this client calls no model for servers: the MCPTool %s has no sampling", s.declared.ID)
		case method == "elicitation/create" && !s.declared.Elicitation:
			return nil, refuse("this client requests no answers of users for servers: the MCPTool %s has no elicitation", s.declared.ID)
		}
		return next(ctx, method, req)
	}
}

// Limits of sampling where the document sets none.
const (
	defaultSamplingTokens = 1000
	defaultSamplingCalls  = 5
)

// SampleRequest is a call of a model for a server.
type SampleRequest struct {
	Model     *spec.Model    // the model that the document names
	MaxTokens int            // limit of the answer
	Messages  []chat.Message // the system message first, if there is one
}

// Sample is the answer of a model.
type Sample struct {
	Text      string
	Model     string // the provider's name of the model
	Truncated bool   // the answer reached MaxTokens
}

// sample calls the model of the document for the server.
func (s *Server) sample(ctx context.Context, req *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) { //nolint:staticcheck // deprecated by the newest protocol; servers use it
	call, cancel, err := s.asker.current(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	wanted, err := s.sampleRequest(req.Params)
	if err != nil {
		return nil, err
	}
	if err := s.countSample(); err != nil {
		return nil, err
	}
	answer, err := s.callModel(call, *wanted)
	if err != nil {
		return nil, refused(err)
	}
	result := &sdk.CreateMessageResult{Content: &sdk.TextContent{Text: answer.Text}, Model: answer.Model, Role: "assistant", StopReason: "endTurn"} //nolint:staticcheck // deprecated by the newest protocol; servers use it
	if answer.Truncated {
		result.StopReason = "maxTokens"
	}
	return result, nil
}

// countSample counts a call of the model, and refuses those beyond the limit.
func (s *Server) countSample() error {
	limit := cmp.Or(s.declared.Sampling.MaxCalls, defaultSamplingCalls)
	s.asker.mu.Lock()
	defer s.asker.mu.Unlock()
	if s.asker.samples >= limit {
		return refuse("the limit of %d calls of the model for one call of a tool is reached (max_calls)", limit)
	}
	s.asker.samples++
	return nil
}

// sampleRequest returns the request of a server as one to the model of the document. The
// server's wishes about the model, its temperature and its stop sequences are not followed.
func (s *Server) sampleRequest(p *sdk.CreateMessageParams) (*SampleRequest, error) { //nolint:staticcheck // deprecated by the newest protocol; servers use it
	limit := cmp.Or(s.declared.Sampling.MaxTokens, defaultSamplingTokens)
	if p.MaxTokens > 0 && p.MaxTokens < int64(limit) {
		limit = int(p.MaxTokens)
	}
	r := &SampleRequest{Model: s.declared.Sampling.Model.To, MaxTokens: limit}
	if p.SystemPrompt != "" {
		r.Messages = append(r.Messages, chat.Text(chat.System, p.SystemPrompt))
	}
	for _, m := range p.Messages {
		role := chat.User
		if m.Role == "assistant" {
			role = chat.Assistant
		}
		message := chat.Text(role, "")
		block, err := blockOf(m.Content)
		if err != nil {
			return nil, err
		}
		message.Blocks = []chat.Block{block}
		r.Messages = append(r.Messages, message)
	}
	if len(p.Messages) == 0 {
		return nil, refuse("there is no message for the model")
	}
	return r, nil
}

// blockOf returns a content as a part of a message.
func blockOf(c sdk.Content) (chat.Block, error) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return chat.Block{Type: "text", Text: c.Text}, nil
	case *sdk.ImageContent:
		return chat.Block{Type: "image", Data: c.Data, MimeType: c.MIMEType}, nil
	case *sdk.AudioContent:
		return chat.Block{Type: "audio", Data: c.Data, MimeType: c.MIMEType}, nil
	}
	return chat.Block{}, refuse("messages for the model have a text, an image or a sound")
}
