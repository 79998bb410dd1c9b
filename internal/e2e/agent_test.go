package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/steps"
)

func TestMemory_ThirdTurnSendsConversation(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprint("streaming=", streaming), func(t *testing.T) {
			s := startModelServer(t, func(n int, _ request) string { return assistantMessage(fmt.Sprint("answer ", n)) })
			app := openApp(t, fmt.Sprintf(chatApp, s.URL))
			var deltas strings.Builder
			var opts []runtime.RunOption
			if streaming {
				opts = append(opts, runtime.WithEvents(func(ev steps.Event) {
					if ev.Kind == steps.EventText {
						deltas.WriteString(ev.Text)
					}
				}))
			}
			for turn := range 3 {
				for row, err := range app.Run(t.Context(), "talk", singleInput("s1", map[string]any{"message": fmt.Sprint("question ", turn+1)}), opts...) {
					if err != nil || row.Err != nil {
						t.Fatal(err, row)
					}
					reply, _ := row.Get("reply")
					if m, ok := reply.(chat.Message); !ok || m.Role != chat.Assistant || m.Text() != fmt.Sprint("answer ", turn+1) {
						t.Fatalf("turn %d returned %v", turn+1, reply)
					}
				}
			}
			for _, err := range app.Run(t.Context(), "talk", singleInput("s2", map[string]any{"message": "another conversation"})) {
				if err != nil {
					t.Fatal(err)
				}
			}
			want := "system: You answer for a bookshop. | user: question 1 | assistant: answer 1 | user: question 2 | assistant: answer 2 | user: question 3"
			if got := transcript(s.requests[2].Messages); got != want {
				t.Errorf("turn 3 sent\n  %s\nwant\n  %s", got, want)
			}
			if got := transcript(s.requests[3].Messages); got != "system: You answer for a bookshop. | user: another conversation" {
				t.Errorf("another session has %s", got)
			}
			if r := s.requests[2]; r.Stream != streaming || r.Temperature != nil || r.Model != "gpt-6-luna" {
				t.Errorf("the request has stream %v, temperature %v, model %s", r.Stream, r.Temperature, r.Model)
			}
			if streaming && deltas.String() != "answer 1answer 2answer 3" {
				t.Errorf("the deltas add up to %q", deltas.String())
			}
		})
	}
}

// agentApp has an agent with two API tools; %[1]s is the model server, %[2]s the tools' server.
const agentApp = `
id: shop
memories: [{id: notes}]
models: [{type: Model, id: assistant, provider: openai, model_id: gpt-6-sol, base_url: "%[1]s/v1"}]
tools:
  - type: APITool
    id: find_order
    name: find_order
    description: Finds an order by its number.
    endpoint: "%[2]s/orders/{number}"
    allow_private: true
    inputs: [{id: number, type: int}]
    outputs: [{id: status, type: text}]
  - type: APITool
    id: refund
    name: refund
    description: Refunds an order.
    method: POST
    endpoint: "%[2]s/refunds"
    allow_private: true
    inputs: [{id: number, type: int}, {id: reason, type: "text?"}]
    outputs: [{id: refund_id, type: text}]
flows:
  - id: help
    variables: [{id: question, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [question]
    outputs: [reply]
    steps:
      - {type: Agent, id: agent, model: assistant, memory: notes, tools: [find_order, refund], max_tool_executions: 3, inputs: [question], outputs: [reply]}
`

func TestAgent_CallsToolsAndStoresResults(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		calls = append(calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, `{"refund_id":"R-1"}`)
			return
		}
		_, _ = io.WriteString(w, `{"status":"lost"}`)
	}))
	defer shop.Close()
	s := startModelServer(t, func(n int, _ request) string {
		if n == 1 {
			return `{"role":"assistant","content":null,"tool_calls":[
				{"id":"c1","type":"function","function":{"name":"find_order","arguments":"{\"number\": 8812}"}},
				{"id":"c2","type":"function","function":{"name":"refund","arguments":"{\"number\": 8812, \"reason\": \"lost\"}"}}]}`
		}
		return assistantMessage("It was lost; you have your money back.")
	})
	app := openApp(t, fmt.Sprintf(agentApp, s.URL, shop.URL))
	runRow(t, app, "help", "c-1", map[string]any{"question": "Where is order 8812?"})
	slices.Sort(calls)
	if got := strings.Join(calls, "\n"); got != "GET /orders/8812\nPOST /refunds {\"number\":8812,\"reason\":\"lost\"}" {
		t.Errorf("requests to the shop:\n%s", got)
	}
	if n := len(s.requests[0].Tools); n != 2 {
		t.Errorf("the request has %d tools", n)
	}
	want := `user: Where is order 8812? | assistant: →find_order{"number": 8812}→refund{"number": 8812, "reason": "lost"} | tool: {"status":"lost"} | tool: {"refund_id":"R-1"}`
	if got := transcript(s.requests[1].Messages); got != want {
		t.Errorf("the second request has\n  %s\nwant\n  %s", got, want)
	}
	if m := s.requests[1].Messages; m[2].ToolCallID != "c1" || m[3].ToolCallID != "c2" {
		t.Errorf("the results belong to the calls %s and %s", m[2].ToolCallID, m[3].ToolCallID)
	}
	w, err := app.Memory("notes").Window(t.Context(), "c-1")
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, e := range w.Entries {
		roles = append(roles, string(e.Message.Role))
	}
	if got := strings.Join(roles, " "); got != "user assistant tool tool assistant" {
		t.Errorf("the memory holds %s", got)
	}
}

func TestAgent_StopsAtMaxToolExecutions(t *testing.T) {
	var tools int
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tools++
		_, _ = io.WriteString(w, `{"status":"unknown"}`)
	}))
	defer shop.Close()
	s := startModelServer(t, func(n int, r request) string {
		if r.ToolChoice == "none" {
			return assistantMessage("I could not find it.")
		}
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"find_order","arguments":"{\"number\":1}"}}]}`, n)
	})
	app := openApp(t, fmt.Sprintf(agentApp, s.URL, shop.URL))
	for row, err := range app.Run(t.Context(), "help", singleInput("c-1", map[string]any{"question": "Where?"})) {
		if err != nil || row.Err != nil {
			t.Fatal(err, row.Err)
		}
		if reply, _ := row.Get("reply"); reply.(chat.Message).Text() != "I could not find it." {
			t.Errorf("the agent returned %v", reply)
		}
	}
	if tools != 3 {
		t.Errorf("%d tools ran, want 3", tools)
	}
}

func TestOpen_ReportsAllDiagnostics(t *testing.T) {
	path := writeFile(t, `id: shop
memories:
  - id: chat_memory
  - id: chat_memory
    token_limit: 10
models:
  - {type: Model, id: m, provider: openai}
flows:
  - id: talk
    variables: [{id: q, type: ChatMessage}, {id: a, type: ChatMessage}, {id: b, type: ChatMessage}]
    inputs: [q]
    outputs: [a, b]
    steps:
      - {type: LLMInference, id: one, model: m, memory: chat_memry, inputs: [q], outputs: [a]}
      - {type: LLMInference, id: two, model: m, memory: nothing_like_it, inputs: [q], outputs: [b]}
`)
	_, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	var found []string
	for _, d := range diag.FromError(err) {
		found = append(found, fmt.Sprintf("%s %d:%d %s", d.Code, d.Span.Start.Line, d.Span.Start.Column, d.Suggestion))
	}
	want := []string{"QT201 4:9 ", "QT202 14:57 chat_memory", "QT202 15:57 "}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q\n%v", found, want, err)
	}
}

func TestOpen_InvalidDocument(t *testing.T) {
	for name, text := range map[string]string{"a list": "- {type: Model, id: m, provider: openai}\n", "nothing": "", "broken": "id: [\n"} {
		if _, err := qtype.Open(t.Context(), writeFile(t, text), qtype.WithEphemeral()); err == nil || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRun_UnknownFlow(t *testing.T) {
	app := openApp(t, fmt.Sprintf(chatApp, "http://127.0.0.1:9"))
	for _, err := range app.Run(t.Context(), "tlak", nil) {
		var unknown *runtime.NoFlowError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "talk") {
			t.Errorf("got %v", err)
		}
	}
}

func TestMemory_PersistsAcrossApps(t *testing.T) {
	s := startModelServer(t, func(n int, _ request) string { return assistantMessage(fmt.Sprint("answer ", n)) })
	path := writeFile(t, fmt.Sprintf(chatApp, s.URL))
	t.Chdir(t.TempDir())
	for turn := range 2 {
		app, err := qtype.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		runRow(t, app, "talk", "s1", map[string]any{"message": fmt.Sprint("question ", turn+1)})
		if err := app.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := transcript(s.requests[1].Messages); !strings.HasSuffix(got, "user: question 1 | assistant: answer 1 | user: question 2") {
		t.Errorf("after a restart the request has %s", got)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), qtype.DefaultStore)); err != nil {
		t.Error(err)
	}
}
