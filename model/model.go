// Package model calls chat models and embedding models: a small interface for each, a
// client for each wire format, and a deterministic mock for work without a network.
//
// Types of vendors do not leave the packages below this one.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Chat is a chat model. Implementations are safe for concurrent use.
type Chat interface {
	// Info describes the model; it never calls the provider.
	Info() Info
	// Generate sends one request. It yields deltas if Request.Stream is set, and
	// last one event with the whole Response. An error is yielded once and ends the
	// sequence: an *Error for a failure of the provider or the network, the context's
	// error after its end. Breaking out of the range cancels the call.
	Generate(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Info describes a model.
type Info struct {
	ID            string // the id in the document
	Provider      string // the provider that is called: openai, mock, …
	Name          string // the provider's name of the model
	Endpoint      string // the server that is called, without credentials; empty for a mock
	Encoding      string // the tokenizer, such as o200k_base; see package tokenizer
	ExactTokens   bool   // whether the provider counts with this tokenizer too; otherwise counts are estimates
	ContextWindow int    // tokens in one call, 0 where unknown
	MaxTokens     int    // tokens reserved for the answer, 0 where the provider decides
	Dimensions    int    // the length of an embedding model's vectors, 0 for a chat model
	Mock          bool   // whether the answers are those of a mock
	Replaces      string // the id of the model that this mock replaces while there are no credentials; empty for none

	// Known is what the catalogue has of the model; nil if its name is unknown.
	Known *catalogue.Model
}

// Identity identifies what makes vectors: those of models with different identities cannot be compared.
func (i Info) Identity() string { return fmt.Sprintf("%s/%s/%d", i.Provider, i.Name, i.Dimensions) }

// Tool is a function that the model may call, or a tool that the provider runs.
type Tool struct {
	Name        string          // the name that the model calls it by
	Description string          // what it does and when to use it
	Parameters  json.RawMessage // JSON schema of the arguments, an object

	Hosted   string          // the kind of a tool that the provider runs, such as web_search; empty for a function
	Settings json.RawMessage // of a hosted tool: its settings, in the provider's own form, an object
	Deferred bool            // the model finds the tool by a search of tools, where the provider has one
	Strict   bool            // the arguments are bound to Parameters, where the provider can
	Passages bool            // the results are passages that the answer may cite, see package citation
	Grammar  *Grammar        // of a function whose argument is one text in a grammar; nil for a JSON object
}

// Approved is the result of a call of a hosted tool, by which the provider asks for an approval, if the
// provider may make the call. Any other result is the reason of a rejection.
const Approved = "approved"

// ApprovalRequest is the Field of the item of such a call.
const ApprovalRequest = "mcp_approval_request"

// Grammar restricts the text that a model passes to a function.
type Grammar struct {
	Syntax     string // lark or regex
	Definition string // the grammar
}

// Request is one call.
type Request struct {
	Messages []chat.Message // system message first, where there is one
	Tools    []Tool         // functions that may be called
	NoCalls  bool           // Tools must not be called: they are sent so that the request begins as those before it
	Stream   bool           // yield deltas as they come
	Schema   *Schema        // the required form of the answer; nil for free text
	MustCall bool           // the model must call one of Tools; providers that cannot force a call ignore it
	Passages *Passages      // what the answer may cite; nil for none
}

// Passages are found texts that an answer may cite. Messages have them as a system message, in whose place
// clients of providers that know passages send blocks.
type Passages struct {
	Text     string            // the system message, with all passages and their numbers
	Question string            // the id of the message of the user that they were found for
	Sources  []citation.Source // the passages in the order of their numbers
}

// Schema is the required form of an answer, a JSON object. Providers without support
// for schemas ignore it, so callers must also describe it in a message, and check.
type Schema struct {
	Name string          // letters, digits, _ and -, at most 64
	JSON json.RawMessage // the JSON schema
	Form SchemaForm      // how it is requested: SchemaFull, which is the default, or SchemaJSON
}

// Event is one part of a response. Exactly one field is set.
type Event struct {
	Text       string    // a delta of the answer's text
	Reasoning  string    // a delta of the model's reasoning
	Commentary string    // a delta of what the model writes before its answer, such as "I look it up."
	Response   *Response // the whole response: always the last event
}

// Response is a complete answer.
type Response struct {
	Message chat.Message // text, tool calls or both, and what the model wants back of its reasoning
	Finish  string       // why it ended: stop, length, tool_calls, content_filter, pause
	Reason  string       // the provider's word for a Finish of length, content_filter or pause, such as MAX_TOKENS
	Usage   Usage        // the tokens used, of all parts
	Parts   int          // of how many answers it was joined, by WithTruncation; 0 for one
	Model   string       // the id of the fallback that answered; empty for the model itself
	Failed  []Failure    // why the models before that fallback were not used
	Dropped []string     // what the provider left out of the request, one line each; nil for nothing

	NextAfter time.Duration `json:"-"` // how long the provider's headers request to wait before the next call
}

// Call sends req and waits for the whole answer. It passes deltas of text and reasoning
// to onDelta if that is not nil.
func Call(ctx context.Context, m Chat, req Request, onDelta func(Event)) (*Response, error) {
	r := receiver{delta: onDelta}
	switch r.receive(m.Generate(ctx, req)); {
	case r.err != nil:
		return nil, r.err
	case r.response == nil:
		return nil, &Error{Message: "the answer ended before it was complete"}
	}
	return r.response, nil
}

// receiver receives an answer. It makes one allocation; a range over an unknown iterator
// makes one for each variable that its body sets.
type receiver struct {
	delta    func(Event)             // receives the deltas that are not empty; may be nil
	forward  func(Event, error) bool // receives all deltas in its place, if not nil; false ends the answer
	response *Response
	err      error
	stopped  bool // forward returned false
}

// receive reads until the answer is complete, has failed, or forward returns false.
func (r *receiver) receive(events iter.Seq2[Event, error]) {
	events(func(ev Event, err error) bool {
		switch {
		case err != nil:
			r.err = err
		case ev.Response != nil:
			r.response = ev.Response
		case r.forward != nil:
			r.stopped = !r.forward(ev, nil)
			return !r.stopped
		default:
			if r.delta != nil && ev != (Event{}) {
				r.delta(ev)
			}
			return true
		}
		return false
	})
}

// Connection is how a model of a provider of another module is called.
type Connection struct {
	Info    Info           // describes the model; Name is sent to the server
	BaseURL string         // the address of the server: that of the document, of the environment or of the row
	Key     string         // the credential; empty for none. It belongs in no message
	Params  map[string]any // the inference parameters of the document
	Headers http.Header    // that the document adds to each request; nil for none
	HTTP    *http.Client   // carries the calls: it reaches only what the document may reach
}

// window returns how many tokens a model reads and writes in one call, 0 if that is not
// known. Some models read fewer tokens than the window has: then it is what they read and
// the answer that is reserved.
func window(known *catalogue.Model, answer int) int {
	if known.MaxInput == 0 {
		return known.ContextWindow
	}
	return min(known.ContextWindow, known.MaxInput+answer)
}

// MaxTokens returns how many tokens the inference parameters reserve for the
// answer, 0 where they leave it to the provider.
func MaxTokens(params map[string]any) int {
	for _, key := range []string{"max_completion_tokens", "max_tokens"} {
		switch n := params[key].(type) {
		case int:
			return n
		case int64:
			return int(n)
		case uint64:
			return int(n)
		case float64:
			return int(n)
		}
	}
	return 0
}
