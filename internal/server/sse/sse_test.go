package sse_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/sse"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names is an Encoder that writes the types of events.
type names struct{ waiting bool }

func (e *names) Append(b []byte, ev *runs.Event) []byte {
	e.waiting = e.waiting || ev.Type == runs.RequestOpened
	return append(append(b, ev.Type...), '\n')
}
func (e *names) Waiting() bool       { return e.waiting }
func (*names) Pause(b []byte) []byte { return append(b, "paused\n"...) }

// brokenWriter is the connection of a client that has gone.
type brokenWriter struct{ http.ResponseWriter }

var errGone = errors.New("connection reset")

func (brokenWriter) Write([]byte) (int, error) { return 0, errGone }

// start begins a run of the approval example, which waits for an approval.
func start(t *testing.T) (*runs.Manager, *runs.Run) {
	t.Helper()
	app, err := qtype.Open(t.Context(), "../../../examples/approval/app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(t, err)
	flow, err := app.Flow("talk")
	testkit.Must(t, err)
	m := runs.NewManager(runs.Options{})
	r, err := m.Begin(t.Context(), runs.Start{App: app, Flow: flow, Session: "s", Events: true, Rows: []map[string]any{{"message": "Please refund order 8812"}}})
	testkit.Must(t, err)
	t.Cleanup(func() {
		r.Cancel()
		_ = m.Shutdown(context.Background())
		_ = app.Close(context.Background())
	})
	return m, r
}

func open(t *testing.T, w http.ResponseWriter) *sse.Stream {
	t.Helper()
	s, err := sse.Open(w, httptest.NewRequest(http.MethodGet, "/", nil), 10*time.Second)
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// A response ends when the run waits for its client, and the next one has the rest.
func TestStream_Follow(t *testing.T) {
	m, r := start(t)
	w := httptest.NewRecorder()
	testkit.Must(t, open(t, w).Follow(t.Context(), r, 0, &names{}))
	first := w.Body.String()
	if !strings.HasPrefix(first, "run.started\n") || !strings.HasSuffix(first, "request.opened\npaused\n") {
		t.Errorf("first response: %s", first)
	}
	if h := w.Header(); h.Get("Content-Type") != "text/event-stream; charset=utf-8" || h.Get("Cache-Control") != "no-cache" || !w.Flushed {
		t.Errorf("flushed %t, headers %v", w.Flushed, h)
	}
	seen, approved := r.Count(), true
	testkit.Must(t, m.Answer(t.Context(), r, &runs.Answer{ID: r.State().Pending[0].ID, Approved: &approved}))
	w = httptest.NewRecorder()
	testkit.Must(t, open(t, w).Follow(t.Context(), r, seen, &names{}))
	if second := w.Body.String(); !strings.HasPrefix(second, "request.answered\n") || !strings.HasSuffix(second, "row.finished\nrun.finished\n") {
		t.Errorf("second response: %s", second)
	}
}

// A stream that follows a run while nothing happens writes comments.
func TestStream_Heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := start(t)
		synctest.Wait()
		w := httptest.NewRecorder()
		s := open(t, w)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 35*time.Second, errGone)
		defer cancel()
		if err := s.Follow(ctx, r, r.Count(), &names{}); !errors.Is(err, errGone) {
			t.Errorf("Follow: %v", err)
		}
		if got := w.Body.String(); got != strings.Repeat(": waiting\n\n", 3) {
			t.Errorf("written %q", got)
		}
		s.Close()
		r.Cancel()
		_ = r.Wait(t.Context())
	})
}

func TestStream_ClientGone(t *testing.T) {
	_, r := start(t)
	if err := open(t, brokenWriter{httptest.NewRecorder()}).Follow(t.Context(), r, 0, &names{}); !errors.Is(err, errGone) {
		t.Errorf("Follow: %v", err)
	}
}
