package wire

import (
	"context"
	"iter"
	"net/http"

	"github.com/qtype-dev/qtype/model"
)

// Protocol is what a provider does in its own way: how it wants a request
// written, and what its answers say. It is safe for concurrent use.
type Protocol interface {
	// Request writes a request. Its errors say what cannot be written.
	Request(req model.Request) (Call, error)
	// Answer makes what puts one answer together.
	Answer() ResponseReader
}

// ResponseReader puts an answer together, from one piece or from the records of a stream.
type ResponseReader interface {
	// Whole takes an answer that came in one piece.
	Whole(raw []byte) error
	// Chunk takes a record and answers what it says to the reader.
	Chunk(record []byte) ([]model.Event, error)
	// Complete tells whether the record was the last one, or, at the end of the
	// stream, whether the answer is whole without a closing record.
	Complete(atEnd bool) bool
	// Response is the answer, once it is complete.
	Response() (*model.Response, error)
}

// Chat is a chat model behind one server. It is safe for concurrent use.
type Chat struct {
	server   *Server
	protocol Protocol
}

// NewChat makes a Chat of a server and the protocol that it speaks.
func NewChat(s *Server, p Protocol) Chat { return Chat{server: s, protocol: p} }

// Info tells what the model is.
func (c Chat) Info() model.Info { return c.server.Info }

// Generate sends one request, once; model.WithPatience repeats.
func (c Chat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return Generate(ctx, func(ctx context.Context, tell Tell) (*model.Response, error) {
		call, err := c.protocol.Request(req)
		if err != nil {
			return nil, c.server.unwritable(err)
		}
		answer := c.protocol.Answer()
		err = c.server.ask(ctx, call, func(resp *http.Response) error {
			if req.Stream && !c.server.inOnePiece(resp) {
				return c.server.stream(ctx, resp, answer, tell)
			}
			return c.server.whole(ctx, resp, answer.Whole)
		})
		if err != nil {
			return nil, err
		}
		response, err := answer.Response()
		if err != nil {
			return nil, c.server.emptyAnswer(err)
		}
		return response, nil
	})
}

// Tell hands a delta to the reader and tells whether it wants more.
type Tell func(model.Event) bool

// Generate makes a sequence of one call: ask makes it and hands on deltas. It
// is cancelled when the reader breaks off, and what ask answers then is for nobody.
func Generate(ctx context.Context, ask func(context.Context, Tell) (*model.Response, error)) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stopped := false
		answer, err := ask(ctx, func(ev model.Event) bool {
			stopped = stopped || !yield(ev, nil)
			return !stopped
		})
		switch {
		case stopped:
		case err != nil:
			yield(model.Event{}, err)
		default:
			yield(model.Event{Response: answer}, nil)
		}
	}
}
