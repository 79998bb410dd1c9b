package openai

import (
	"context"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/sse"
)

// answer is a response that is written as a whole.
type answer interface {
	sink
	// failed returns the problem that ended the answer, nil for none.
	failed() *problem.Problem
	// body returns the response.
	body() any
}

// respond writes the whole answer.
func (a *api) respond(w http.ResponseWriter, t *turn, b *began, out answer) error {
	r := newReader(out, t, b, a.Failure)
	ctx := t.Context()
	for n := 0; ; {
		events, ended, err := b.run.Follow(ctx, n, nil)
		if err != nil {
			b.run.Disconnected()
			return err
		}
		for i := range events {
			r.read(&events[i])
		}
		n += len(events)
		if r.waiting() && b.run.State().Status == runs.Waiting {
			r.stop()
			break
		}
		if ended || r.ended {
			break
		}
	}
	if p := out.failed(); p != nil {
		return p
	}
	setHeaders(w, t, b)
	return writeJSON(w, out.body())
}

// setHeaders sets the headers of an answer.
func setHeaders(w http.ResponseWriter, t *turn, b *began) {
	h := w.Header()
	h.Set("X-Run-Id", b.run.ID)
	h.Set("X-Request-Id", b.run.ID)
	if t.session != "" {
		h.Set("X-Session-Id", t.session)
	}
	reportIgnored(w, t.ignored)
}

// encoder is a response that is written as server-sent events.
type encoder interface {
	sink
	// begin appends what precedes the answer, once.
	begin()
	// take returns the text that was appended, and forgets it.
	take() []byte
	// failed returns the problem that ended the answer, nil for none.
	failed() *problem.Problem
	// breaks reports that the connection must break, because the answer failed and its form has no end
	// for that.
	breaks() bool
	// empty reports that nothing of the answer was appended.
	empty() bool
}

// events adapts an encoder to streams.
type events struct {
	*reader
	out encoder
}

// Append appends what an event means.
func (e *events) Append(b []byte, ev *runs.Event) []byte {
	e.read(ev)
	return append(b, e.out.take()...)
}

// Waiting reports whether the response ends because the run waits for its client.
func (e *events) Waiting() bool { return e.waiting() }

// Pause appends the end of such a response.
func (e *events) Pause(b []byte) []byte {
	e.stop()
	return append(b, e.out.take()...)
}

// respondStream writes the answer as a stream. An answer that fails before its first part
// is an error with a status, as clients expect.
func (a *api) respondStream(w http.ResponseWriter, t *turn, b *began, out encoder) error {
	ctx := t.Context()
	enc := &events{reader: newReader(out, t, b, a.Failure), out: out}
	first, n, err := a.firstPart(ctx, b.run, enc)
	if err != nil {
		b.run.Disconnected()
		return err
	}
	if p := out.failed(); p != nil && out.empty() {
		return p
	}
	setHeaders(w, t, b)
	stream, err := sse.Open(w, t.Request, a.Heartbeat)
	if err != nil {
		b.run.Disconnected()
		return err
	}
	defer stream.Close()
	if len(first) == 0 {
		out.begin()
		first = out.take()
	}
	stream.Append(first)
	if err = stream.Flush(); err == nil && !enc.done() {
		err = stream.Follow(ctx, b.run, n, enc)
	}
	if err != nil {
		b.run.Disconnected()
	} else if out.breaks() {
		panic(http.ErrAbortHandler)
	}
	return nil // the response has begun
}

// done reports whether the response has ended.
func (e *events) done() bool { return e.ended || e.stopped }

// firstPart reads events until the first part of the answer, or until the time of a
// heartbeat. It returns the text of the parts and the number of events.
func (a *api) firstPart(ctx context.Context, run *runs.Run, enc *events) (text []byte, n int, err error) {
	timer := time.NewTimer(a.Heartbeat)
	defer timer.Stop()
	for {
		list, ended, err := run.Follow(ctx, n, timer.C)
		if err != nil {
			return nil, n, err
		}
		for i := range list {
			text = enc.Append(text, &list[i])
		}
		n += len(list)
		if enc.waiting() && run.State().Status == runs.Waiting {
			return enc.Pause(text), n, nil
		}
		if len(text) > 0 || len(list) == 0 || ended || enc.ended {
			return text, n, nil
		}
	}
}
