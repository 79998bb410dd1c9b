package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/model"
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

// maxIdle is how long a request about batches waits for its answer, or for the next bytes of a file.
const maxIdle = 2 * time.Minute

// errIdle ends a request whose server does nothing.
var errIdle = errors.New("the server does not answer")

// idleLimit ends a request for which nothing was transferred for a time.
type idleLimit struct {
	ctx   context.Context // of the request
	after time.Duration
	timer *time.Timer
}

// newIdleLimit returns a limit, whose time begins. ended must be called.
func newIdleLimit(ctx context.Context, after time.Duration) (l *idleLimit, ended func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l = &idleLimit{ctx: ctx, after: after, timer: time.AfterFunc(after, func() { cancel(errIdle) })}
	return l, func() { l.timer.Stop(); cancel(nil) }
}

// reason returns the error of a request: that of a timeout if the limit has ended it.
func (l *idleLimit) reason(err error) error {
	if err != nil && errors.Is(context.Cause(l.ctx), errIdle) {
		return os.ErrDeadlineExceeded
	}
	return err
}

// upload is the body of a request, for which the server has time after each piece.
type upload struct {
	io.ReadCloser
	limit *idleLimit
}

func (u *upload) Read(p []byte) (int, error) {
	u.limit.timer.Stop()
	defer u.limit.timer.Reset(u.limit.after)
	return u.ReadCloser.Read(p)
}

// download is the body of a response. The time of the server is limited, not that of the reader.
type download struct {
	io.ReadCloser
	limit *idleLimit
}

func (d *download) Read(p []byte) (int, error) {
	d.limit.timer.Reset(d.limit.after)
	defer d.limit.timer.Stop()
	n, err := d.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, d.limit.reason(err)
}

// The ends of an answer, values of model.Response.Finish. Answers with the last two become
// errors.
const (
	finishStop   = "stop"           // complete
	finishCalls  = "tool_calls"     // complete, with calls
	finishLength = "length"         // cut off at a limit of tokens
	finishFilter = "content_filter" // withheld, or a part of it
	finishPause  = "pause"          // the provider continues when it gets the answer back
	finishRetry  = "retry"          // the model or the server failed; another call may succeed
	finishError  = "error"          // the same call would fail again, or the word is unknown
)

// finishWords are the words of providers, in lower case, by their meaning. Gateways pass on
// the words of the models that they call, so all clients know all words.
var finishWords = sync.OnceValue(func() map[string]string {
	meanings := map[string]string{}
	for meaning, words := range map[string]string{
		finishStop: `stop end_turn stop_sequence eos eos_token end_of_text complete completed finished done load unload
			function_call tool_use tool_call tool_calls finish_reason_unspecified`,
		finishLength: `length max_tokens max_output_tokens model_length model_context_window_exceeded error_limit token_limit`,
		finishFilter: `content_filter content_filtered refusal safety recitation blocklist prohibited_content spii language
			image_safety image_prohibited_content image_recitation model_armor jailbreak guardrail_intervened sensitive error_toxic`,
		finishPause: `pause_turn continuation compaction`,
		finishRetry: `error retry network_error timeout abort aborted cancelled canceled insufficient_system_resource other
			malformed_function_call malformed_response malformed_model_output malformed_tool_use unexpected_tool_call no_image image_other`,
		finishError: `missing_thought_signature too_many_tool_calls escalation repetition repetition_truncation user_cancel`,
	} {
		for _, word := range strings.Fields(words) {
			meanings[word] = meaning
		}
	}
	return meanings
})

// Finish returns why an answer ended in the terms of model.Response, and the provider's own
// word for it if the answer is incomplete; calls is the number of its tool calls. A word
// that is not known is never a complete end.
func Finish(word string, calls int) (finish, reason string) {
	meaning := cmp.Or(finishWords()[strings.ToLower(word)], finishError)
	switch {
	case word != "" && meaning != finishStop:
		return meaning, word
	case calls > 0:
		return finishCalls, ""
	}
	return finishStop, ""
}

// Unfinished returns the error of an answer that ended by a failure of the model or the
// server, nil for others.
func Unfinished(info model.Info, r *model.Response) error {
	if r.Finish != finishRetry && r.Finish != finishError {
		return nil
	}
	return &model.Error{Model: info.ID, Endpoint: info.Endpoint, Code: r.Reason, Temporary: r.Finish == finishRetry,
		Message: fmt.Sprintf("the answer ended before it was complete (finish reason %s)", httpx.SingleLine(r.Reason, maxMessage))}
}
