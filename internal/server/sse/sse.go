// Package sse writes runs as server-sent events.
package sse

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/runs"
)

// Encoder writes the events of a run in the form of one protocol.
type Encoder interface {
	// Append appends what an event means in the protocol, which may be nothing.
	Append(b []byte, ev *runs.Event) []byte
	// Waiting reports whether the client was asked for something: the response ends when the
	// run waits for the answer.
	Waiting() bool
	// Pause appends the end of such a response.
	Pause(b []byte) []byte
}

// Stream is a response of server-sent events.
type Stream struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	heartbeat *time.Ticker
	buf       []byte  // nil if nothing waits to be sent
	shared    *[]byte // where buf comes from
}

// buffers are shared by all streams, because most streams wait most of the time.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

const (
	maxShared = 64 << 10 // bytes of a buffer that is kept
	maxPart   = 32 << 10 // bytes that are sent at once, unless one event has more
)

// writeTimeout is how long a client may take to accept a part of a stream.
const writeTimeout = 30 * time.Second

// Open begins a response of server-sent events; Close ends it. Every heartbeat without an
// event a comment is written. The error is a *problem.Problem; after it nothing was written.
func Open(w http.ResponseWriter, r *http.Request, heartbeat time.Duration) (*Stream, error) {
	if err := access.BeginStream(r.Context()); err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	return &Stream{w: w, control: http.NewResponseController(w), heartbeat: time.NewTicker(heartbeat)}, nil
}

// Close releases what the stream needs. The connection can be used for other requests.
func (e *Stream) Close() {
	e.heartbeat.Stop()
	_ = e.control.SetWriteDeadline(time.Time{}) // not all writers support it
}

// Append adds text to what the next write sends.
func (e *Stream) Append(text []byte) { e.buf = append(e.buffer(), text...) }

// buffer returns the buffer of the next write.
func (e *Stream) buffer() []byte {
	if e.shared == nil {
		e.shared = buffers.Get().(*[]byte)
		e.buf = (*e.shared)[:0]
	}
	return e.buf
}

// release returns the buffer.
func (e *Stream) release() {
	if e.shared != nil && cap(e.buf) <= maxShared {
		*e.shared = e.buf
		buffers.Put(e.shared)
	}
	e.buf, e.shared = nil, nil
}

// Flush sends what was appended.
func (e *Stream) Flush() error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not all writers support it
	_, err := e.w.Write(e.buf)
	e.release()
	if err != nil {
		return err
	}
	return e.control.Flush()
}

// Idle waits for a while in which there is nothing to write. The error is that of ctx, or
// that the client has gone.
func (e *Stream) Idle(ctx context.Context, period time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.heartbeat.C:
		e.Append([]byte(": waiting\n\n"))
		return e.Flush()
	case <-time.After(period):
		return nil
	}
}

// Follow writes the events of a run after the first n. It returns when the run has
// ended, waits for its client, or the client has gone, which is an error.
func (e *Stream) Follow(ctx context.Context, run *runs.Run, n int, enc Encoder) error {
	for {
		events, ended, err := run.Follow(ctx, n, e.heartbeat.C)
		if err != nil {
			return err
		}
		if ended {
			return nil
		}
		n += len(events)
		if paused, err := e.send(run, n, events, enc); paused || err != nil {
			return err
		}
	}
}

// send writes events, the last of which is the nth; none means a heartbeat. It is not
// part of Follow, whose stack each open stream keeps.
func (e *Stream) send(run *runs.Run, n int, events []runs.Event, enc Encoder) (paused bool, err error) {
	if len(events) == 0 {
		e.Append([]byte(": waiting\n\n"))
	}
	for i := range events {
		e.buf = enc.Append(e.buffer(), &events[i])
	}
	if len(events) > 0 && len(e.buf) < maxPart && run.Count() > n {
		return false, nil // more at once
	}
	paused = enc.Waiting() && run.State().Status == runs.Waiting && run.Count() == n
	if paused {
		e.buf = enc.Pause(e.buffer())
		run.Pause(n)
	}
	if len(e.buf) == 0 {
		e.release()
		return paused, nil
	}
	return paused, e.Flush()
}
