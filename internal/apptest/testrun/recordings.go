package testrun

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/tool"
)

// RecordMode is what a test does with calls that no mock answers, if its file declares
// recordings.
type RecordMode = recording.Mode

// The modes.
const (
	Replay        = recording.Replay        // answer from the recordings
	Record        = recording.Record        // make and record all calls
	RecordMissing = recording.RecordMissing // make and record the calls without a recording
)

// HasRecordings reports whether the file declares recordings.
func (f *File) HasRecordings() bool { return f.Recordings != nil }

// session starts the recordings of a test; nil if the file declares none.
func (f *File) session(name string) *recording.Session {
	if f.Recordings == nil {
		return nil
	}
	if f.Mode == Replay {
		recording.HidePlaceholders(f.program.App)
	}
	return recording.Start(f.Recordings, name, f.Mode)
}

// HideSecrets keeps the secrets of an application out of recordings.
func HideSecrets(s *recording.Session, app *runtime.App) {
	s.Redact(app.Redactor())
	for _, secret := range recording.Secrets(app.Spec()) {
		if text, err := app.Secret(*secret); err == nil { // a call that needs it reports the error
			s.Hide(text)
		}
	}
	providers := spec.Providers()
	for _, m := range app.Spec().Models {
		if row, known := m.Base().ProviderRow(); known { // also one that the program adds
			providers = append(providers, row)
		}
	}
	for _, p := range providers {
		for _, name := range p.KeyEnv {
			s.Hide(strings.TrimSpace(app.Getenv(name)))
		}
	}
}

// EndRecordings writes the recordings of the tests that were run. It returns a warning
// if there are recordings that no test uses; prune removes them.
func (f *File) EndRecordings(outcomes []*Outcome, prune bool) (diag.List, error) {
	if f.Recordings == nil {
		return nil, nil
	}
	var names []string
	for _, t := range f.Suite.Tests {
		names = append(names, t.Name)
	}
	stale := f.Recordings.Others(names)
	if prune {
		f.Recordings.Keep(names)
	}
	for _, o := range outcomes {
		stale += o.stale
		o.commit(prune && o.Passed())
	}
	if f.Mode != Replay || prune {
		if err := f.Recordings.Save(names); err != nil {
			return nil, fmt.Errorf("%s: cannot be written: %w", f.Recordings.Path(), err)
		}
	}
	if stale == 0 || prune {
		return nil, nil
	}
	return diag.List{apptest.Stale.At(apptest.SpanOf(f.Suite, "recordings"), "%s not used by any test", textfmt.Count(stale, "recording")+map[bool]string{true: " is", false: " are"}[stale == 1]).
		WithHint("qtype test --remove-stale removes them")}, nil
}

// Recorded returns mocks that record the calls that an application makes, or replay them. Models that are mocks in the
// document answer themselves.
func Recorded(s *recording.Session) runtime.Mocks {
	e := &testEnv{session: s, state: mockstate.New(), requests: map[string][]model.Request{}}
	return e.recordMocks(runtime.Mocks{Model: e.model, Embedder: e.embedder, Tool: e.tool})
}

// recordMocks adds what records or replays the calls that no mock answers.
func (e *testEnv) recordMocks(m runtime.Mocks) runtime.Mocks {
	if e.session == nil {
		return m
	}
	m.HTTP = e.session.Client()
	if !e.session.Replays() {
		m.WrapModel, m.WrapEmbedder, m.WrapTool = e.wrapModel, e.wrapEmbedder, e.wrapTool
	}
	return m
}

// wrapModel records the calls of a model.
func (e *testEnv) wrapModel(m *spec.Model, made model.Chat) (model.Chat, error) {
	if info := made.Info(); info.Mock && !m.IsMock() {
		return nil, fmt.Errorf("model %s has no credentials, which a recording needs", m.ID)
	}
	return e.watch(m, e.session.Chat(m, made)), nil
}

func (e *testEnv) wrapEmbedder(m *spec.EmbeddingModel, made model.Embedder) (model.Embedder, error) {
	if m.IsMock() {
		return made, nil
	}
	if made.Info().Mock {
		return nil, fmt.Errorf("model %s has no credentials, which a recording needs", m.ID)
	}
	return e.session.Embedder(m, made), nil
}

// wrapTool records the calls of a server that declares its tools. The requests of other
// tools are recorded by their HTTP client.
func (e *testEnv) wrapTool(t spec.Tool, made tool.Tool) tool.Tool {
	if set, ok := made.(tool.Set); ok {
		return e.session.Server(t.EntityID(), set)
	}
	return made
}

// replayedServer returns the recorded tools of a server; nil if the tool is none, or is
// not replayed.
func (e *testEnv) replayedServer(t spec.Tool) tool.Tool {
	if e.session != nil && e.session.Replays() && factory.IsServer(t) {
		return e.session.Server(t.EntityID(), nil)
	}
	return nil
}

// httpClient returns the client of requests that are not recorded one by one: none may be
// made unless the calls that make them are recorded.
func (e *testEnv) httpClient() *http.Client {
	if e.session != nil && !e.session.Replays() {
		return nil
	}
	if e.session == nil && e.allowsServer() {
		return nil
	}
	return &http.Client{Transport: blockedTransport{}}
}

// checkRecorded reports calls of a turn that are not recorded.
func (r *testRun) checkRecorded(t *spec.Turn) {
	if r.env.session == nil {
		return
	}
	changed := r.env.session.Changed()
	if len(changed) == 0 {
		return
	}
	first := changed[0]
	d := apptest.Changed.At(turnSpan(t), "%s", first).WithHint("if this is intended: qtype test --record")
	// What follows is a consequence.
	r.diagnostics = append(slices.DeleteFunc(r.diagnostics, func(diag.Diagnostic) bool { return true }), d)
	r.details = first.Diff
}
