// Package model talks to chat models and embedding models: a small interface
// for each, a client for each wire format behind it, and a deterministic mock
// for work without a network.
//
// A vendor's types stop at the edge of this package.
package model

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Chat is a chat model. Implementations are safe for concurrent use.
type Chat interface {
	// Info tells what the model is; it never calls the provider.
	Info() Info
	// Generate sends one request. It yields deltas, when the request asks to
	// stream, and last one event that holds the whole Response. An error is
	// yielded once and ends the sequence: an *Error for what the provider or
	// the network did, the context's error when it was cancelled. Breaking out
	// of the range cancels the call.
	Generate(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Info describes a model.
type Info struct {
	ID            string // the id in the document
	Provider      string // the provider that answers: openai, mock, …
	Name          string // what the provider calls the model
	Endpoint      string // the server that is asked, without credentials; empty for a mock
	Encoding      string // the tokenizer's name, such as o200k_base; see package token
	ContextWindow int    // tokens in one call, 0 where unknown
	MaxTokens     int    // room asked for the answer, 0 where the provider decides
	Dimensions    int    // the length of an embedding model's vectors, 0 for a chat model
	Mock          bool   // the answers are not a model's
	StandsFor     string // the id of the model that this one stands in for while there are no credentials, mostly empty
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string          // as the model calls it
	Description string          // what it does and when to use it
	Parameters  json.RawMessage // JSON schema of the arguments, an object
}

// Request is one call.
type Request struct {
	Messages []chat.Message // system message first, where there is one
	Tools    []Tool         // functions that may be called
	Stream   bool           // yield deltas as they come
	Schema   *Schema        // the form that the answer has to have; nil where it is free
}

// Schema is the form of an answer: a JSON object. A provider that cannot hold a
// model to it is not told; whoever asks says it in words too, and checks.
type Schema struct {
	Name string          // letters, digits, _ and -, at most 64
	JSON json.RawMessage // the JSON schema
}

// Event is one thing that happened during a call. Exactly one field is set.
type Event struct {
	Text      string    // more of the answer's text
	Reasoning string    // more of the model's thoughts
	Response  *Response // the whole answer: always the last event
}

// Response is a whole answer.
type Response struct {
	Message chat.Message // what the model said: text, tool calls or both
	Finish  string       // why it ended: stop, length, tool_calls, content_filter
	Usage   Usage        // what it cost
	Model   string       // the id of the fallback that answered; empty where the model itself did
}

// Usage counts tokens as the provider does.
type Usage struct {
	Input  int    // tokens read
	Output int    // tokens written
	Cached int    // of those read, how many came from the provider's prompt cache
	Model  string // the id of the fallback that an Embedder asked; empty for the model itself
}

// Call sends req and waits for the whole answer, handing text deltas to onText where it is not nil.
func Call(ctx context.Context, m Chat, req Request, onText func(string)) (*Response, error) {
	for ev, err := range m.Generate(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case ev.Response != nil:
			return ev.Response, nil
		case ev.Text != "" && onText != nil:
			onText(ev.Text)
		}
	}
	return nil, &Error{Message: "the answer ended before it was complete"}
}
