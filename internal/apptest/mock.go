package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/mock"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// testEnv is what stands in place of the world in one test.
type testEnv struct {
	models []*spec.ModelMock // the test's before the file's
	tools  []*spec.ToolMock

	mu   sync.Mutex
	sent map[string][]model.Request // what the models were asked in this turn, by their ids
}

func newStage(s *spec.Suite, t *spec.Test) *testEnv {
	return &testEnv{models: slices.Concat(t.Models, s.Models), tools: slices.Concat(t.Tools, s.Tools), sent: map[string][]model.Request{}}
}

// mocks are who answers in place of models and tools.
func (s *testEnv) mocks() runtime.Mocks {
	return runtime.Mocks{Model: s.model, Embedder: embedder, Tool: s.tool}
}

// model is the mock of the test, else the one that the document has.
func (s *testEnv) model(m *spec.Model) (model.Chat, error) {
	declared, replaced := m, m
	if i := slices.IndexFunc(s.models, func(d *spec.ModelMock) bool { return d.ID == m.ID }); i >= 0 {
		declared = mocked(m, s.models[i])
	} else if m.IsMock() {
		replaced = nil
	} else if declared = m.Offline.To; declared == nil {
		return nil, fmt.Errorf("model %s would be asked, but a test asks nobody outside: give the test, or the file, models: [{id: %s, rules: …}]", m.ID, m.ID)
	}
	made, err := mock.New(declared, mock.Options{Replaces: replaced})
	if err != nil {
		return nil, err
	}
	return &recordingModel{Chat: made, id: m.ID, stage: s}, nil
}

// mocked is a mock with the rules of a double and what else the model declares
// of itself: its id, and what decides how its tokens are counted.
func mocked(m *spec.Model, d *spec.ModelMock) *spec.Model {
	double := *m
	double.Provider, double.Rules = "mock", d.Rules
	return &double
}

// recordingModel is a model whose requests are kept.
type recordingModel struct {
	model.Chat
	id    string
	stage *testEnv
}

// Generate keeps the request and hands it on.
func (r *recordingModel) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	kept := req
	kept.Messages = slices.Clone(req.Messages)
	r.stage.mu.Lock()
	r.stage.sent[r.id] = append(r.stage.sent[r.id], kept)
	r.stage.mu.Unlock()
	return r.Chat.Generate(ctx, req)
}

// asked are the requests of a model in this turn.
func (s *testEnv) asked(id string) []model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[id]
}

// next begins a turn.
func (s *testEnv) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sent)
}

// embedder is the mock of an embedding model; a mock of the document stays as it is.
func embedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	if m.IsMock() {
		return nil, nil //nolint:nilnil // the declared one is made
	}
	return model.WithBatches(mock.NewEmbedder(m, mock.Options{Replaces: &m.Model}), model.Batch{}, model.CallPolicy{}), nil
}

// tool is the double of a tool; nil where it has none.
func (s *testEnv) tool(t spec.Tool) tool.Tool {
	i := slices.IndexFunc(s.tools, func(d *spec.ToolMock) bool { return d.ID == t.EntityID() })
	if i < 0 {
		return nil
	}
	return &cannedTool{info: tool.Describe(t.Common(), t.Arguments()), double: s.tools[i]}
}

// cannedTool is a tool that always answers the same.
type cannedTool struct {
	info   tool.Info
	double *spec.ToolMock
}

// Info tells what the tool is that it stands for.
func (a *cannedTool) Info() tool.Info { return a.info }

// Call checks the arguments as the tool itself would.
func (a *cannedTool) Call(_ context.Context, args map[string]any) (any, error) {
	if _, err := a.info.ValidateArgs(args); err != nil {
		return nil, err
	}
	if a.double.Error != "" {
		return nil, &tool.FailedError{Tool: a.info.ID, Message: a.double.Error}
	}
	text, err := json.Marshal(a.double.Result)
	if err != nil {
		return nil, &tool.FailedError{Tool: a.info.ID, Message: "the double's result cannot be written as JSON"}
	}
	var result any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&result)
	return result, err
}

// blockedTransport is the network of a test.
type blockedTransport struct{}

// RoundTrip refuses.
func (blockedTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a test calls no server: give it, or its file, a double under tools")
}
