package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// maxRows is the largest number of rows in one request without access control.
const maxRows = 10_000

// maxStepRows is the largest number of rows for which the events of steps are kept.
const maxStepRows = 1000

// call is a request to run a flow.
type call struct {
	app       *host.Application
	flow      *schema.Flow
	principal access.Principal
	session   string // that the client names, or a new one
	named     bool   // the client has named it
	rows      []map[string]any
	digest    string // of the request
	batch     bool   // calls of models are made in batches
}

// stored returns the id under which the session of a call is stored.
func (c *call) stored() string { return c.principal.StoredSession(c.session) }

// conversation returns the session of a call.
func (c *call) conversation() host.Conversation {
	return host.Conversation{App: c.app.App, Flow: c.flow, Owner: c.principal.Name, Session: c.stored()}
}

// runFlow answers POST /flows/{flow}.
func (s *Server) runFlow(w http.ResponseWriter, r *http.Request) {
	c, err := s.readCall(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	start := s.start(c)
	async := prefersAsync(r)
	key := r.Header.Get("Idempotency-Key")
	if err := checkKey(key); err != nil {
		s.fail(w, r, err)
		return
	}
	if err := s.checkBatch(c, async); err != nil {
		s.fail(w, r, err)
		return
	}
	start.Detached, start.Events = async || key != "", async && len(c.rows) <= maxStepRows
	start.Durable = async || key != "" || c.flow.MayWait()
	if key != "" {
		start.ID = runIDOf(c.principal, c.flow.ID(), key)
	}
	run, err := s.begin(r.Context(), c, start)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("X-Run-Id", run.ID)
	if c.named || c.flow.Conversational() {
		session, _ := c.principal.ClientSession(run.Session) // that of an earlier request with the key
		w.Header().Set("X-Session-Id", session)
	}
	if async {
		w.Header().Set("Preference-Applied", "respond-async")
		s.accepted(w, r, run, c.principal)
		return
	}
	s.answerWithResult(w, r, run, c)
}

// answerWithResult waits for the end of a run. A run that waits for its client is
// returned as a resource.
func (s *Server) answerWithResult(w http.ResponseWriter, r *http.Request, run *runs.Run, c *call) {
	run, waiting, err := s.runs.Await(r.Context(), c.app.App, run)
	switch {
	case err != nil:
		run.Disconnected()
		s.fail(w, r, err)
	case waiting, run.State().Status == runs.Suspended && r.Header.Get("Idempotency-Key") == "": // without a key, another request would run twice
		s.accepted(w, r, run, c.principal)
	default:
		s.result(w, run, c.flow)
	}
}

// accepted answers with a run that has not ended.
func (s *Server) accepted(w http.ResponseWriter, r *http.Request, run *runs.Run, p access.Principal) {
	w.Header().Set("Location", host.Location(r, "/runs/"+run.ID))
	writeJSON(w, http.StatusAccepted, s.describe(r.Context(), run, p))
}

// readCall reads and checks a request.
func (s *Server) readCall(w http.ResponseWriter, r *http.Request) (*call, error) {
	app := s.current.Load()
	flow, err := app.Flow(access.PrincipalOf(r.Context()), r.PathValue("flow"))
	if err != nil {
		return nil, err
	}
	c := &call{app: app.Application, flow: flow, principal: access.PrincipalOf(r.Context())}
	if c.session, err = sessionID(r); err != nil {
		return nil, err
	}
	if c.named = c.session != ""; !c.named {
		c.session = host.NewSession()
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "multipart/form-data":
		return c, s.readForm(c, w, r, params["boundary"])
	case "application/x-www-form-urlencoded":
		return nil, unsupportedMedia("application/json or multipart/form-data")
	}
	if err := host.RequireJSON(r); err != nil {
		return nil, unsupportedMedia("application/json or multipart/form-data")
	}
	body, err := host.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	c.digest = digest(body, "")
	if c.named {
		c.digest = digest(body, c.session)
	}
	return c, s.readRows(c, r, body)
}

// readRows decodes the rows of a JSON body.
func (s *Server) readRows(c *call, r *http.Request, body []byte) error {
	parsed, err := schema.ParseBody(body)
	if err != nil {
		return err
	}
	if parsed, c.batch, err = c.flow.TakeBatch(parsed); err != nil {
		return err
	}
	rows, err := c.flow.Rows(parsed)
	if err != nil {
		return err
	}
	if err := s.checkRows(len(rows)); err != nil {
		return err
	}
	have, err := s.inputs.Known(r.Context(), c.flow, c.stored())
	if err != nil {
		return err
	}
	var wrong []problem.Field
	for _, row := range rows {
		record, err := c.flow.FetchMedia(row.Record, schema.Fetcher(s.fetcher(r.Context())))
		if err != nil {
			return err
		}
		values, fields := c.flow.Decode(record, row.Pointer, have.Has)
		wrong = append(wrong, fields...)
		c.rows = append(c.rows, values)
	}
	if len(wrong) > 0 {
		return schema.Invalid(wrong)
	}
	return s.inputs.Apply(r.Context(), have, c.rows...)
}

func (s *Server) checkRows(n int) error {
	switch {
	case s.opts.Access != nil:
		return s.opts.Access.CheckRows(n)
	case n > maxRows:
		return problem.New(http.StatusRequestEntityTooLarge, "too_many_rows", "the request has %d rows; at most %d are allowed", n, maxRows)
	}
	return nil
}

// begin starts the run of a call, and records its conversation.
func (s *Server) begin(ctx context.Context, c *call, start runs.Start) (*runs.Run, error) {
	if err := s.recordSession(ctx, c); err != nil {
		return nil, err
	}
	return s.runs.Begin(ctx, start)
}

// start returns the run that a call describes.
func (s *Server) start(c *call) runs.Start {
	return runs.Start{App: c.app.App, Flow: c.flow.Spec, Owner: c.principal.Name, Session: c.principal.StoredSession(c.session), Rows: c.rows, Digest: c.digest, Batch: c.batch}
}

// formMemory is how many bytes of the files of a form are kept in RAM.
const formMemory = 32 << 20

// readForm decodes the fields and files of a form.
func (s *Server) readForm(c *call, w http.ResponseWriter, r *http.Request, boundary string) error {
	if boundary == "" {
		return problem.New(http.StatusBadRequest, "malformed_form", "the Content-Type has no boundary")
	}
	if err := host.LimitBody(w, r); err != nil {
		return err
	}
	if err := r.ParseMultipartForm(formMemory); err != nil { //nolint:gosec // LimitBody bounds the body
		return host.BodyProblem(err, "malformed_form", "the form could not be read")
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	files, err := readFiles(r.MultipartForm.File)
	if err != nil {
		return err
	}
	c.digest = formDigest(r.MultipartForm.Value, files, c)
	have, err := s.inputs.Known(r.Context(), c.flow, c.principal.StoredSession(c.session))
	if err != nil {
		return err
	}
	if c.flow.InForm(r.MultipartForm.Value) {
		return schema.Invalid([]problem.Field{{Pointer: "/batch", Detail: "only a JSON body can ask for batches"}})
	}
	values, wrong := c.flow.DecodeForm(r.MultipartForm.Value, files, have.Has)
	if len(wrong) > 0 {
		return schema.Invalid(wrong)
	}
	c.rows = append(c.rows, values)
	return s.inputs.Apply(r.Context(), have, c.rows...)
}

// readFiles reads the files of a form, by the names of their fields.
func readFiles(headers map[string][]*multipart.FileHeader) (map[string][][]byte, error) {
	files := map[string][][]byte{}
	for name, list := range headers {
		for _, h := range list {
			data, err := readFile(h)
			if err != nil {
				return nil, fmt.Errorf("an uploaded file could not be read: %w", err)
			}
			files[name] = append(files[name], data)
		}
	}
	return files, nil
}

func readFile(h *multipart.FileHeader) ([]byte, error) {
	f, err := h.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(f)
}

// formDigest identifies the content of a form. Its body has a boundary that is another
// one when a client sends the form again.
func formDigest(fields map[string][]string, files map[string][][]byte, c *call) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(h, "%q %q\n", name, fields[name])
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, data := range files[name] {
			fmt.Fprintf(h, "%q %d\n%s", name, len(data), data)
		}
	}
	if c.named {
		fmt.Fprintf(h, "%q", c.session)
	}
	return hex.EncodeToString(h.Sum(nil))
}
