package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// errStopped says that the reader wants no more.
var errStopped = errors.New("stopped")

// stream reads an answer record by record and hands the deltas on, until the
// answer is complete. A stream that ends before is an error.
func (s *Server) stream(ctx context.Context, resp *http.Response, a ResponseReader, tell Tell) error {
	from := s.records(resp.Body)
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
			return s.unreadable(resp, record, err)
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

// reader reads the records of a stream.
type reader interface {
	// Next is the next record, valid until the call after it; io.EOF at the end.
	Next() ([]byte, error)
	// Begun is how many records were read, and what was there instead of a first one.
	Begun() (records int, instead []byte)
}

// records reads a stream in the form that the protocol gives it.
func (s *Server) records(body io.Reader) reader {
	if s.form.Lines {
		return NewLines(body)
	}
	return NewEvents(body)
}

// cutOff makes an error of a stream that ended too early.
func (s *Server) cutOff(ctx context.Context, resp *http.Response, from reader, err error) error {
	records, instead := from.Begun()
	switch {
	case errors.Is(err, io.EOF) && records == 0:
		return s.unreadable(resp, instead, errors.New("no events"))
	case isEnd(err):
		f := s.fault("the stream ended before the answer was complete")
		f.Temporary = true
		return unlessCancelled(ctx, f)
	}
	return s.broken(ctx, "lost the connection to", err)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
