package sessions

import (
	"bufio"
	"context"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// linesType is the media type of a transcript.
const linesType = "application/jsonl"

func pathEscape(id string) string { return url.PathEscape(id) }

// export answers GET /sessions/{id}/export: the lines of package transcript.
func (s *Service) export(w http.ResponseWriter, r *http.Request) error {
	one, m, err := s.findMemory(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", linesType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(one.id) + ".jsonl"}))
	if m.Memory == nil {
		return nil // a session without messages
	}
	out := bufio.NewWriterSize(w, 64<<10)
	err = transcript.Export(r.Context(), m.Memory, one.stored, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil && r.Context().Err() == nil {
		s.opts.Log.ErrorContext(r.Context(), "the export of a session failed", "error", err.Error())
		panic(http.ErrAbortHandler) // the client sees that the lines are not complete
	}
	return nil
}

// test answers GET /sessions/{id}/test: a test of the conversation up to the parameter turn.
func (s *Service) test(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Test == nil {
		return problem.New(http.StatusNotFound, "no_tests", "tests are made by qtype test from, and by a server on loopback without authentication")
	}
	one, m, err := s.findMemory(r)
	if err != nil {
		return err
	}
	turn, err := intParameter(r, "turn", 0, math.MaxInt64)
	if err != nil {
		return err
	}
	if m.Memory == nil {
		return problem.New(http.StatusConflict, "no_test", "the session has no messages")
	}
	text, err := s.opts.Test(r.Context(), s.opts.App(), m.ID, one.stored, turn)
	if err != nil {
		return problem.New(http.StatusConflict, "no_test", "%s", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/yaml")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(one.id) + ".qtype-test.yaml"}))
	_, err = io.WriteString(w, text)
	return err
}

// fileName returns an id as the name of a file.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, "session-"+id)
}

// importSession answers POST /sessions/import.
func (s *Service) importSession(w http.ResponseWriter, r *http.Request) error {
	if err := checkType(r, linesType, "application/x-ndjson", "application/json", "application/octet-stream"); err != nil {
		return err
	}
	flow, m, err := s.target(r)
	if err != nil {
		return err
	}
	id := r.URL.Query().Get("id")
	if id == "" {
		id = newID()
	}
	if err := checkID("id", id); err != nil {
		return err
	}
	stored := access.PrincipalOf(r.Context()).StoredSession(id)
	if err := s.checkNew(r.Context(), stored); err != nil {
		return err
	}
	in := &firstError{in: http.MaxBytesReader(w, r.Body, s.opts.Import)}
	rec := record{Session: appstate.Session{Flow: flow}}
	err = s.begin(r.Context(), stored, &rec, func(ctx context.Context, made func(*memory.Memory)) error {
		if err := transcript.Import(ctx, m, stored, in); err != nil {
			return err
		}
		made(m)
		var err error
		rec.Title, rec.First, _, err = firstMessage(ctx, m, stored)
		return err
	})
	switch {
	case in.err != nil:
		return bodyError(in.err)
	case err != nil:
		return err
	}
	return s.writeNew(w, r, id, stored)
}

// firstError remembers an error of the body, which is not an error of the transcript.
type firstError struct {
	in  io.Reader
	err error
}

// Read reads from the body.
func (f *firstError) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// target returns the flow and the memory into which a request imports.
func (s *Service) target(r *http.Request) (string, *memory.Memory, error) {
	app := s.opts.App()
	caller := access.PrincipalOf(r.Context())
	var flows []*spec.Flow
	var ids []string
	for _, f := range app.Spec().Flows {
		if len(runtime.MemoryIDs(f)) > 0 && s.opts.Allowed(f, caller) {
			flows, ids = append(flows, f), append(ids, f.ID)
		}
	}
	wanted := r.URL.Query().Get("flow")
	var flow *spec.Flow
	for _, f := range flows {
		if f.ID == wanted || wanted == "" && len(flows) == 1 {
			flow = f
		}
	}
	switch {
	case len(flows) == 0:
		return "", nil, problem.New(http.StatusConflict, "no_memory", "no flow of the application has a memory")
	case flow == nil && wanted == "":
		return "", nil, badParameter("flow", "it is required, one of: %s", strings.Join(ids, ", "))
	case flow == nil:
		return "", nil, badParameter("flow", "there is no flow %q with a memory%s", wanted, diag.DidYouMean(wanted, ids))
	}
	memories := runtime.MemoryIDs(flow)
	id := r.URL.Query().Get("memory")
	if id == "" {
		id = memories[0]
	}
	for _, known := range memories {
		if known == id {
			return flow.ID, app.Memory(id), nil
		}
	}
	return "", nil, badParameter("memory", "flow %s has no memory %q; it has: %s", flow.ID, id, strings.Join(memories, ", "))
}
