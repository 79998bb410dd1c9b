package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// errStopped is returned after the reader has stopped.
var errStopped = errors.New("stopped")

// stream reads a response record by record and emits the deltas until the answer is
// complete. A stream that ends before is an error.
func (s *Server) stream(ctx context.Context, resp *http.Response, a ResponseReader, emit Emit) error {
	from := s.records(resp.Body)
	for {
		record, err := from.Next()
		switch {
		case err != nil && isEnd(err) && a.Complete(true):
			return nil
		case err != nil:
			return s.truncated(ctx, resp, from, err)
		case len(record) == 0: // keep-alive
			continue
		}
		deltas, err := a.Chunk(record)
		if err != nil {
			return s.responseError(resp, record, err)
		}
		for _, ev := range deltas {
			if !emit(ev) {
				_ = resp.Body.Close() // there is nothing to wait for
				return errStopped
			}
		}
		if a.Complete(false) {
			return nil
		}
	}
}

// RecordReader reads the records of a stream.
type RecordReader interface {
	// Next returns the next record, valid until the next call; io.EOF at the end.
	Next() ([]byte, error)
	// Begun returns the number of records, and what came before the first one.
	Begun() (records int, instead []byte)
}

// records returns a reader for the stream format of the protocol.
func (s *Server) records(body io.Reader) RecordReader {
	switch {
	case s.form.Records != nil:
		return s.form.Records(body)
	case s.form.Lines:
		return NewLines(body)
	}
	return NewEvents(body)
}

// truncated returns the error of a stream that ended too early.
func (s *Server) truncated(ctx context.Context, resp *http.Response, from RecordReader, err error) error {
	records, instead := from.Begun()
	switch {
	case errors.Is(err, io.EOF) && records == 0:
		return s.responseError(resp, instead, errors.New("no events"))
	case isEnd(err):
		f := s.newError("the stream ended before the answer was complete")
		f.Temporary = true
		return unlessCancelled(ctx, f)
	}
	return s.connectionError(ctx, "lost the connection to", err)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
