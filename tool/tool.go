// Package tool runs the tools of a document: functions that agents and InvokeTool steps
// call, all with the interface Tool.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Tool is a function that can be called. Implementations are safe for concurrent use.
type Tool interface {
	// Info describes the tool; it calls nothing.
	Info() Info
	// Call runs the tool. args holds values by the names of Info().Inputs: JSON values, or
	// anything that encoding/json can encode. The result is a JSON value with numbers as
	// json.Number, text, []byte for a body that is not text, or nil; a tool that runs in this
	// process or on this host may return run-time values of package value. Errors are an
	// *Error for a failure of the other side, a *FailedError for a failure here, an
	// *ArgumentError for wrong arguments, and the context's error after its end.
	Call(ctx context.Context, args map[string]any) (any, error)
}

// Set is a declared tool that has several tools, such as the tools of a server. It
// implements Tool so that it can be used where a tool is declared; calling it is an
// error.
type Set interface {
	Tool
	// Tools returns the tools. It may call a server.
	Tools(ctx context.Context) ([]Tool, error)
}

// ChangingSet is a Set whose tools may change while the application runs.
type ChangingSet interface {
	Set
	// Revision is a number that is different after the tools may have changed.
	Revision() int
}

// Preflighter is a tool that can detect before the first row that every call will fail,
// for example because its module does not exist.
type Preflighter interface {
	Tool
	// Check returns nil if calls may succeed. It may start what calls need.
	Check(ctx context.Context) error
}

// Info describes a tool.
type Info struct {
	ID          string           // the id in the document; for a tool of a Set the id of the Set, a slash and the tool's name
	Set         string           // the id of the Set that the tool belongs to; empty for none
	Name        string           // what a model calls it
	Description string           // what it does and when to use it
	Parameters  json.RawMessage  // JSON schema of the arguments, an object
	Inputs      []*spec.Variable // the arguments that a caller may pass, in document order
	ReadOnly    bool             // of a tool of a Set: its server says that a call changes nothing; spec.Tool.HasEffects has it of declared tools
	Passages    bool             // the results are passages that an answer may cite, see package citation
	Hosted      string           // the kind of a tool that the provider of the model runs; empty for tools that can be called
	Settings    json.RawMessage  // of a hosted tool, in the provider's form; nil for none
}

// IsAmong reports whether ids have the tool, or the Set that it belongs to.
func (i *Info) IsAmong(ids []string) bool {
	return slices.Contains(ids, i.ID) || i.Set != "" && slices.Contains(ids, i.Set)
}

// Options are the HTTP client and the secrets of tools. The zero value is ready to use.
type Options struct {
	// HTTP sends the requests of API tools; nil means a client with default timeouts.
	// Addresses are checked after name resolution if its Transport is nil or an
	// *http.Transport, or has a method Over, by which it is put over such a transport; any
	// other Transport must do so itself.
	HTTP *http.Client
	// Secret resolves references to a secret manager; nil where there is none.
	Secret func(spec.Secret) (string, error)
	// Getenv returns a variable of the environment; nil means os.Getenv.
	Getenv func(name string) string
	// Policy is what the document may reach; nil allows everything.
	Policy *trust.Policy
	// AWS signs with AWS identities; nil in a program without this part.
	AWS awsauth.Builder
	// Supervisor starts programs; nil starts them in process groups.
	Supervisor *subprocess.Supervisor
	// Learn is called with tokens that servers issue, which no output may have; nil for nothing.
	Learn func(secrets ...string)
}

// learn passes secrets on to Learn.
func (o Options) learn(secrets ...string) {
	if o.Learn != nil {
		o.Learn(secrets...)
	}
}

// Describe returns the Info of a tool with these inputs.
func Describe(base *spec.ToolBase, inputs []*spec.Variable) Info {
	info := Info{ID: base.ID, Name: base.Name, Description: base.Description, Inputs: inputs, Parameters: Schema(inputs)}
	if base.Strict {
		info.Parameters = schemaOf(typeschema.Style{Strict: true}, typeschema.Fields(inputs), "")
	}
	return info
}

// ArgumentError reports an argument that does not fit the tool.
type ArgumentError struct {
	Tool     string // the tool's id
	Argument string // the argument's name
	Problem  string // what is wrong with it
}

// Error names the tool, the argument and the problem.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("tool %s: argument %s: %s", e.Tool, e.Argument, e.Problem)
}

// FailedError reports a failure of a tool that runs on this host: a function that raised
// an exception, a program that failed, a client that did not answer.
type FailedError struct {
	Tool    string // the tool's id
	Message string // what happened; one line
	Where   string // the line of the tool's code, as file:line; empty where it is not known
	Err     error  // the cause, such as the end of a context; may be nil
}

// Error returns one line: the tool, the failure, the line of code.
func (e *FailedError) Error() string {
	s := fmt.Sprintf("tool %s: %s", e.Tool, e.Message)
	if e.Where != "" {
		s += " (" + e.Where + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// Error reports a failure of the server that a tool called.
type Error struct {
	Tool       string        // the tool's id
	Method     string        // the HTTP method
	URL        string        // what was called, without user, password and query
	Status     int           // the HTTP status; 0 where there was no answer
	Message    string        // what happened, with the start of the body; one line
	Attempts   int           // how often the request was sent
	RetryAfter time.Duration // how long the server requests to wait before the next request
	Err        error         // the cause: a network error
}

// Error returns one line: the tool, the request, the failure, the attempts.
func (e *Error) Error() string {
	s := fmt.Sprintf("tool %s: %s %s: %s", e.Tool, e.Method, e.URL, e.Message)
	if e.Status != 0 {
		s = fmt.Sprintf("tool %s: %s %s: HTTP %d: %s", e.Tool, e.Method, e.URL, e.Status, e.Message)
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(", tried %d times", e.Attempts)
	}
	return s
}

// Unwrap returns the network error, nil for none.
func (e *Error) Unwrap() error { return e.Err }

// Schema returns the JSON schema of an object with the variables as properties, which
// describes a tool's arguments to a model. Optional variables are not required. Custom
// types are under $defs, so that a type may contain itself.
func Schema(vars []*spec.Variable) json.RawMessage {
	return schemaOf(typeschema.Style{}, typeschema.Fields(vars), "")
}

// SchemaOf returns the JSON schema of a custom type, with its description.
func SchemaOf(t *spec.CustomType) json.RawMessage {
	return schemaOf(typeschema.Style{}, t.Properties, t.Description)
}

// schemaOf returns the schema of an object with these fields and a description.
func schemaOf(style typeschema.Style, fields []spec.Property, description string) json.RawMessage {
	s := typeschema.New(style)
	root := s.Record(fields)
	if description != "" {
		root = slices.Insert(root, 0, typeschema.Member{Name: "description", Value: description})
	}
	if defs := s.Defs(); defs != nil {
		root = append(root, typeschema.Member{Name: "$defs", Value: defs})
	}
	raw, err := json.Marshal(root)
	if err != nil { // objects, lists and texts always encode
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// InputsOf returns the arguments that a JSON schema of a server describes, in its order.
// The server checks their types.
func InputsOf(schema json.RawMessage) []*spec.Variable {
	parsed, err := value.Parse(string(schema))
	root, ok := parsed.(*value.Record)
	if err != nil || !ok {
		return nil
	}
	required := map[string]bool{}
	if list, _ := root.Get("required"); list != nil {
		items, _ := list.([]any)
		for _, item := range items {
			name, _ := item.(string)
			required[name] = true
		}
	}
	properties, _ := root.Get("properties")
	fields, ok := properties.(*value.Record)
	if !ok {
		return nil
	}
	var vars []*spec.Variable
	for name := range fields.All() {
		vars = append(vars, &spec.Variable{ID: name, Type: spec.Type{Name: spec.Any}, Optional: !required[name]})
	}
	return vars
}

// Round is a number of tool calls that a model requested in one answer and that are
// made at the same time. Those that need the client of the run are announced to it
// together, once the others have ended. It is safe for concurrent use.
type Round struct {
	mu       sync.Mutex
	open     int         // calls that have neither ended nor need the client
	requests []any       // of the calls that need the client, by the number of the call
	commit   func([]any) // announces them
}

// NewRound returns a round of n calls.
func NewRound(n int) *Round { return &Round{open: n, requests: make([]any, n)} }

// roundCall is one call of a round.
type roundCall struct {
	round *Round
	index int
	done  bool // it no longer delays the announcement; guarded by the mutex of the round
}

type roundCallKey struct{}

// Join returns the context for call i of the round, counted from 0. ended must be called
// when the call has ended.
func (r *Round) Join(ctx context.Context, i int) (call context.Context, ended func()) {
	c := &roundCall{round: r, index: i}
	return context.WithValue(ctx, roundCallKey{}, c), func() { c.settle(nil, nil) }
}

// Announce calls commit with request, or with the requests of all calls of the round of
// ctx once none of them delays it. Requests of a round are in the order of the calls; all
// must be announced by equal functions. It does not wait for the announcement.
func Announce(ctx context.Context, request any, commit func([]any)) {
	c, _ := ctx.Value(roundCallKey{}).(*roundCall)
	if c == nil || !c.settle(request, commit) {
		commit([]any{request})
	}
}

// settle counts the call as ended, or as one that needs the client. It reports false if
// it was counted before.
func (c *roundCall) settle(request any, commit func([]any)) bool {
	r := c.round
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.done {
		return false
	}
	c.done = true
	r.open--
	if request != nil {
		r.requests[c.index], r.commit = request, commit
	}
	if r.open > 0 || r.commit == nil {
		return true
	}
	var all []any
	for _, req := range r.requests {
		if req != nil {
			all = append(all, req)
		}
	}
	r.commit(all)
	return true
}
