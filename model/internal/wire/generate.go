package wire

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/qtype-dev/qtype/model"
)

// errStopped says that the reader wants no more.
var errStopped = errors.New("stopped")

// Generate makes a sequence of one call: ask makes it and hands on deltas. It
// is cancelled when the reader breaks off.
func Generate(ctx context.Context, ask func(context.Context, Tell) (*model.Response, error)) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		answer, err := ask(ctx, func(ev model.Event) bool { return yield(ev, nil) })
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(model.Event{}, err)
		default:
			yield(model.Event{Response: answer}, nil)
		}
	}
}

// Tell hands a delta to the reader and tells whether it wants more.
type Tell func(model.Event) bool

// Reader reads the records of a stream.
type Reader interface {
	// Next is the next record, valid until the call after it; io.EOF at the end.
	Next() ([]byte, error)
	// Begun is how many records were read, and what was there instead of a first one.
	Begun() (records int, instead []byte)
}

// Assembler puts an answer together from the records of a stream.
type Assembler interface {
	// Chunk takes a record and answers what it says to the reader.
	Chunk(record []byte) ([]model.Event, error)
	// Complete tells whether the record was the last one, or, at the end of the
	// stream, whether the answer is whole without a closing record.
	Complete(atEnd bool) bool
}

// Stream reads an answer record by record and hands the deltas on, until the
// answer is complete. A stream that ends before is an error.
func (s *Server) Stream(ctx context.Context, resp *http.Response, from Reader, a Assembler, tell Tell) error {
	for {
		record, err := from.Next()
		switch {
		case err != nil && isEnd(err) && a.Complete(true):
			return nil
		case err != nil:
			return s.cutOff(ctx, resp, from, err)
		case len(record) == 0: // a sign of life
			continue
		}
		deltas, err := a.Chunk(record)
		if err != nil {
			return s.Unreadable(resp, record, err)
		}
		for _, ev := range deltas {
			if !tell(ev) {
				_ = resp.Body.Close() // nothing is left to wait for
				return errStopped
			}
		}
		if a.Complete(false) {
			return nil
		}
	}
}

// cutOff makes an error of a stream that ended too early.
func (s *Server) cutOff(ctx context.Context, resp *http.Response, from Reader, err error) error {
	records, instead := from.Begun()
	switch {
	case errors.Is(err, io.EOF) && records == 0:
		return s.Unreadable(resp, instead, errors.New("no events"))
	case isEnd(err):
		f := s.Fault(0, "the stream ended before the answer was complete")
		f.Temporary = true
		return unlessCancelled(ctx, f)
	}
	return s.Broken(ctx, "lost the connection to", err)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
