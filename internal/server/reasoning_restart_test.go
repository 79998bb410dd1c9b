package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// providerPart and callPart are what a provider sends. An encoder would write the first one otherwise.
const (
	providerPart = `{"toolResponse":{"id":"s","toolType":"GOOGLE_SEARCH_WEB","response":{"n":1.50,"b":"\u0066<","a":1}}}`
	callPart     = `{"functionCall":{"name":"pay","args":{"order":7}},"thoughtSignature":"c2ln+/=="}`
)

// signingServer is a model that calls pay with a signature, and answers. It keeps the requests.
type signingServer struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
}

func newSigningServer(t *testing.T) *signingServer {
	s := &signingServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body) // a short read fails the assertions of the tests
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, string(raw))
		parts := providerPart + "," + callPart
		if strings.Contains(string(raw), "functionResponse") {
			parts = `{"text":"Paid."}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}`, parts)
	}))
	t.Cleanup(func() { testkit.CloseServer(s.Server) })
	return s
}

// expectSigned checks that a model was called twice, and got back what it had sent.
func (s *signingServer) expectSigned(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) != 2 || !strings.Contains(s.sent[1], providerPart) || !strings.Contains(s.sent[1], `"thoughtSignature":"c2ln+/=="`) {
		t.Errorf("the model got\n%s", strings.Join(s.sent, "\n"))
	}
}

// open returns another instance of an application with an agent that may pay after an approval.
func (s *signingServer) open(t *testing.T, folder string, opts ...qtype.Option) *runtime.App {
	t.Helper()
	path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(`
id: till
auths: [{type: api_key, id: k, api_key: "${QTYPE_TEST_UNSET_KEY:-secret-key}"}]
stores: [{type: sqlite, id: disk, url: "sqlite:%s"}]
memories: [{id: desk, policy: message_window, max_messages: 20, store: disk}]
models: [{type: Model, id: cashier, provider: google-ai, model_id: some-model, base_url: %q, auth: k}]
tools: [{type: FlowTool, id: pay, name: pay, description: Pays, flow: pay_back}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: clerk, model: cashier, memory: desk, tools: [pay], approve: [pay], inputs: [message], outputs: [answer]}]
  - id: pay_back
    variables: [{id: order, type: int}, {id: state, type: text}]
    inputs: [order]
    outputs: [state]
    steps: [{type: PromptTemplate, id: say, template: "paid {order}", inputs: [order], outputs: [state]}]
`, filepath.Join(folder, "desk.db"), s.URL))
	app, err := qtype.Open(t.Context(), path, opts...)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = app.Close(t.Context()) })
	return app
}

// TestReasoning_RestartedServer: after a restart between a call and its approval, the model gets what
// its provider sent with the call, byte for byte.
func TestReasoning_RestartedServer(t *testing.T) {
	s, folder := newSigningServer(t), t.TempDir()
	first := serveApp(t, s.open(t, folder), server.Options{})
	var run waitingRun
	first.post("/flows/talk", `{"message": "pay 7"}`).into(t, &run)
	testkit.Must(t, first.own.Shutdown(t.Context()))
	second := serveApp(t, s.open(t, folder), server.Options{})
	if n, err := second.own.Resume(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d runs were resumed: %v", n, err)
	}
	r := second.post("/runs/"+run.ID+"/answer", `{"id": "`+run.Pending[0].ID+`", "approved": true}`)
	if r.status != http.StatusOK {
		t.Fatalf("the answer got %d %s", r.status, r.body)
	}
	_ = second.do("GET", "/runs/"+run.ID+"/events", "") // until it has ended
	s.expectSigned(t)
}

// TestReasoning_SuspendedRun: the same with a run whose state is in a file.
func TestReasoning_SuspendedRun(t *testing.T) {
	s, folder := newSigningServer(t), t.TempDir()
	file := filepath.Join(folder, "wait.json")
	for _, answers := range [][]string{nil, {"1=yes"}} {
		suspended, err := clienttool.OpenSuspension(file, clienttool.SuspendedRun{}, nil)
		testkit.Must(t, err)
		testkit.Must(t, suspended.AnswerAll(answers))
		app := s.open(t, folder, qtype.WithApproval(suspended.Approve))
		ctx, stop := suspended.Context(t.Context())
		rows := func(yield func(runtime.Input) bool) {
			yield(runtime.Input{Session: "me", Values: map[string]any{"message": "pay 7"}})
		}
		for range app.Run(ctx, "talk", rows) { // the requests to the model show how it ended
		}
		stop(nil)
		testkit.Must(t, app.Close(t.Context()))
	}
	s.expectSigned(t)
}
