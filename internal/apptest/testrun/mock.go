package testrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// testEnv replaces the models, tools and network of one test. It is safe for
// concurrent use.
type testEnv struct {
	models   []*spec.ModelMock // those of the test before those of the file
	tools    []*spec.ToolMock
	state    *mockstate.State   // that mocks of tools read and change
	allow    []string           // ids and types of what the test may really do
	effects  bool               // it may do everything
	declared string             // the folder of its fixtures; empty for none
	folder   string             // that of the test file
	session  *recording.Session // nil if the file declares no recordings

	mu       sync.Mutex
	requests map[string][]model.Request // of the current turn, by model id
	calls    []ToolCall                 // of the current turn, in the order of their starts
	reject   []string                   // the ids of tools whose calls the current turn rejects
	rejected map[string]int             // the calls that were not approved in the current turn, by the names of tools
	indexes  string                     // folder of the indexes; empty if there are none
	fixtures string                     // copy of the fixtures; empty if there are none
}

func newTestEnv(f *File, t *spec.Test, recorded *recording.Session) *testEnv {
	return &testEnv{models: slices.Concat(t.Models, f.Suite.Models), tools: slices.Concat(t.Tools, f.Suite.Tools), state: mockstate.New(f.Suite.State, t.State), session: recorded, allow: slices.Concat(t.Allow, f.Suite.Allow), effects: f.AllowEffects, declared: f.fixturesOf(t), folder: apptest.Sibling(f.Suite, "."), requests: map[string][]model.Request{}}
}

// mocks returns the mocks for the runtime.
func (e *testEnv) mocks() runtime.Mocks {
	return e.recordMocks(runtime.Mocks{Model: e.model, Embedder: e.embedder, Tool: e.tool, Index: e.index, NoStepCache: true, Fixtures: e.fixtures})
}

// index returns an empty index for a test, in the place of the one that the document
// declares, which has the data of the user.
func (e *testEnv) index(x spec.Index) (index.Index, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.indexes == "" {
		folder, err := os.MkdirTemp("", "qtype-test-")
		if err != nil {
			return nil, err
		}
		e.indexes = folder
	}
	_, vectors := x.(*spec.VectorIndex)
	return embedded.Open(embedded.Options{Path: filepath.Join(e.indexes, url.PathEscape(x.EntityID())+".db"), Vectors: vectors, Fields: !vectors}), nil
}

// close removes what the test left behind.
func (e *testEnv) close() error {
	var failed error
	for _, folder := range []string{e.indexes, e.fixtures} {
		if folder != "" {
			failed = errors.Join(failed, os.RemoveAll(folder))
		}
	}
	return failed
}

// model returns the mock of a model: that of the test or file, otherwise the recordings
// if there are any, otherwise that of the document. It is nil for a model whose calls are
// made and recorded.
func (e *testEnv) model(m *spec.Model) (model.Chat, error) {
	declared, replaced := m, m
	if i := slices.IndexFunc(e.models, func(d *spec.ModelMock) bool { return d.ID == m.ID }); i >= 0 {
		declared = apptest.WithMock(m, e.models[i])
	} else if m.IsMock() {
		replaced = nil
	} else if e.session != nil {
		if e.session.Replays() {
			return e.watch(m, e.session.Chat(m, nil)), nil
		}
		return nil, nil //nolint:nilnil // the declared one is made
	} else if declared = m.OfflineMock(); declared == nil {
		return nil, fmt.Errorf("no mock for model %s: add models: [{id: %s, rules: …}]", m.ID, m.ID)
	}
	made, err := mock.New(declared, mock.Options{Replaces: replaced})
	if err != nil {
		return nil, err
	}
	return e.watch(m, made), nil
}

// watch returns a model whose requests are kept for the assertions of the turn.
func (e *testEnv) watch(m *spec.Model, made model.Chat) model.Chat {
	return &recordingModel{Chat: made, id: m.ID, env: e}
}

// recordingModel records the requests to a model.
type recordingModel struct {
	model.Chat
	id  string
	env *testEnv
}

// Generate records the request and forwards it.
func (r *recordingModel) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	recorded := req
	recorded.Messages = slices.Clone(req.Messages)
	r.env.mu.Lock()
	r.env.requests[r.id] = append(r.env.requests[r.id], recorded)
	r.env.mu.Unlock()
	return r.Chat.Generate(ctx, req)
}

// requestsTo returns the requests to a model in the current turn.
func (e *testEnv) requestsTo(id string) []model.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests[id]
}

// startTurn discards the requests and calls of the turn before turn n, and sets the tools whose calls turn n rejects.
func (e *testEnv) startTurn(n int, reject []string) {
	if e.session != nil {
		e.session.StartTurn(n)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.requests)
	e.calls, e.reject, e.rejected = nil, reject, map[string]int{}
}

// embedder returns the mock of an embedding model; nil for one that is a mock in
// the document, or whose calls are made and recorded.
func (e *testEnv) embedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	switch {
	case m.IsMock() || e.session != nil && !e.session.Replays():
		return nil, nil //nolint:nilnil // the declared one is made
	case e.session != nil:
		return e.session.Embedder(m, nil), nil
	}
	return model.WithBatches(mock.NewEmbedder(m, mock.Options{Replaces: &m.Model}), model.Batch{}, model.CallPolicy{}), nil
}

// tool returns the mock of a tool, or nil.
func (e *testEnv) tool(t spec.Tool) tool.Tool {
	mocks := factory.MocksOf(e.tools, t.EntityID())
	if mocks == nil {
		if recorded := e.replayedServer(t); recorded != nil {
			return recorded
		}
		return e.refusedServer(t)
	}
	return factory.NewMock(e.state, t, mocks...)
}

// blockedTransport rejects all requests of a test.
type blockedTransport struct{}

// RoundTrip returns an error.
func (blockedTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a test cannot call servers: add a mock of the tool under tools, or recordings")
}

// ToolCall is a call of a tool.
type ToolCall struct {
	Name      string // that models see
	Arguments string // a JSON object; of a model, whatever it has written
}

// addCall records a call for the assertions of the turn.
func (e *testEnv) addCall(ev steps.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, ToolCall{ev.Tool, ev.Text})
}

// approve decides about a call that needs approval.
func (e *testEnv) approve(_ context.Context, req tool.Request) (yes bool, reason string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !req.Tool.IsAmong(e.reject) {
		return true, "", nil
	}
	e.rejected[req.Tool.Name]++
	return false, "", nil
}

// checkCalls checks the calls of tools in a turn.
func (r *testRun) checkCalls(t *spec.Turn) {
	r.env.mu.Lock()
	calls := &Calls{App: r.app.Spec(), Made: slices.Clone(r.env.calls), Rejected: r.env.rejected}
	r.env.mu.Unlock()
	r.diagnostics.Add(calls.Check(t.Calls)...)
	r.diagnostics.Add(calls.CheckOrder(t, t.CallOrder)...)
}

// Calls are the calls of tools that assertions are about.
type Calls struct {
	App      *spec.Application
	Made     []ToolCall     // in the order of their starts
	Rejected map[string]int // the calls that were not approved, by the names of tools
}

// Check returns the assertions that are not met.
func (c *Calls) Check(assertions []*spec.CallAssertion) (list diag.List) {
	for _, a := range assertions {
		name := cmp.Or(a.Function, apptest.ToolName(c.App, a.ID))
		own := slices.DeleteFunc(slices.Clone(c.Made), func(one ToolCall) bool { return one.Name != name })
		if a.Calls != nil && len(own) != *a.Calls {
			list.Add(apptest.Expectation.At(apptest.SpanOf(a, "calls"), "tool %s was called %s, not %d", name, textfmt.Count(len(own), "time"), *a.Calls).WithHint("%s", c.shown()))
		}
		if a.Rejected != nil && c.Rejected[name] != *a.Rejected {
			list.Add(apptest.Expectation.At(apptest.SpanOf(a, "rejected"), "%s of tool %s rejected, not %d", textfmt.Count(c.Rejected[name], "call"), name, *a.Rejected))
		}
		if len(a.Arguments) > 0 && !slices.ContainsFunc(own, func(one ToolCall) bool { return one.has(a.Arguments) }) {
			list.Add(apptest.Expectation.At(apptest.SpanOf(a, "arguments"), "no call of tool %s has these arguments", name).WithHint("%s", c.shown()))
		}
	}
	return list
}

// CheckOrder checks that tools were called in an order, with any calls between. n has the key call_order.
func (c *Calls) CheckOrder(n spec.Node, order []string) (list diag.List) {
	rest := c.Made
	for i, id := range order {
		name := apptest.ToolName(c.App, id)
		at := slices.IndexFunc(rest, func(one ToolCall) bool { return one.Name == name })
		if at < 0 {
			where := ""
			if i > 0 {
				where = " after " + order[i-1]
			}
			list.Add(apptest.Expectation.At(n.Position().Field("call_order").Index(i).Span(), "tool %s was not called%s", name, where).WithHint("%s", c.shown()))
			return list
		}
		rest = rest[at+1:]
	}
	return list
}

// has reports whether the arguments have the values. Numbers are equal if their values are.
func (c ToolCall) has(want map[string]any) bool {
	var given map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Arguments), &given) != nil {
		return false
	}
	for name, v := range want {
		raw, ok := given[name]
		if !ok || !isSameJSON(raw, value.JSON(v)) {
			return false
		}
	}
	return true
}

// isSameJSON reports whether two JSON texts have the same value.
func isSameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return string(value.JSON(x)) == string(value.JSON(y))
}

// shown lists the calls in one line.
func (c *Calls) shown() string {
	if len(c.Made) == 0 {
		return "no tool was called"
	}
	var shown []string
	for _, one := range c.Made {
		shown = append(shown, fmt.Sprintf("%s %s", one.Name, textfmt.Ellipsis(one.Arguments, maxShownValue)))
	}
	return "calls: " + strings.Join(shown, ", ")
}

// CheckRows returns the assertions on tables that are not met.
func CheckRows(state *mockstate.State, assertions []*spec.RowAssertion) (list diag.List) {
	for _, a := range assertions {
		n := state.Count(a.Table, a.Where)
		if a.Rows == nil && n > 0 || a.Rows != nil && n == *a.Rows {
			continue
		}
		place, want := apptest.SpanOf(a, "where"), "1 or more"
		if a.Rows != nil {
			place, want = apptest.SpanOf(a, "rows"), fmt.Sprint(*a.Rows)
		}
		rows := "no rows"
		if all := state.Rows(a.Table); len(all) > 0 {
			rows = textfmt.Ellipsis("rows: "+strings.Join(all, ", "), maxShownState)
		}
		list.Add(apptest.Expectation.At(place, "table %s has %s with these values, not %s", a.Table, textfmt.Count(n, "row"), want).WithHint("%s", rows))
	}
	return list
}

// maxShownState is the length of rows in diagnostics, in characters.
const maxShownState = 400

// checkSome checks the texts that at least one request contains.
func (r *testRun) checkSome(a *spec.RequestAssertion, requests []model.Request) {
	for i, text := range a.SomeContain {
		has := func(req model.Request) bool {
			return slices.ContainsFunc(textsOf(req.Messages), func(content string) bool { return strings.Contains(content, text) })
		}
		if len(requests) > 0 && !slices.ContainsFunc(requests, has) {
			r.diagnostics.Add(apptest.Expectation.At(a.Position().Field("some_contain").Index(i).Span(), "none of %s to %s contains %q", textfmt.Count(len(requests), "request"), a.ID, text))
		}
	}
}
