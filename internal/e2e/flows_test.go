package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
)

func TestFlow_DataSteps(t *testing.T) {
	app := openApp(t, `
id: data
flows:
  - id: main
    variables:
      - {id: text, type: text}
      - {id: names, type: "list[text]"}
      - {id: name, type: text}
      - {id: greeting, type: text}
    inputs: [text]
    outputs: [name, greeting]
    steps:
      - {type: Decoder, id: decode, inputs: [text], outputs: [names]}
      - {type: Explode, id: one_by_one, inputs: [names], outputs: [name]}
      - {type: PromptTemplate, id: greet, template: "hello {name}", inputs: [name], outputs: [greeting]}
`)
	got := runAll(t, app, "main",
		map[string]any{"text": `{"names": ["Ada", "Bo"]}`},
		map[string]any{"text": `no JSON`},
		map[string]any{"text": `{"names": []}`},
		map[string]any{},
		map[string]any{"text": "```json\n{\"names\": [\"Cy\"]}\n```"})
	if len(got) != 5 || !strings.HasPrefix(got[2], "row 2: step decode: ") {
		t.Fatalf("got %q", got)
	}
	got[2] = "row 2 failed in decode"
	assertLines(t, got, "Ada | hello Ada", "Bo | hello Bo", "row 2 failed in decode", "row 4: input text (text) is missing", "Cy | hello Cy")
}

func TestAggregate_CountsFailedRows(t *testing.T) {
	app := openApp(t, `
id: counted
flows:
  - id: main
    variables: [{id: text, type: text}, {id: n, type: int}, {id: stats, type: AggregateStats}]
    inputs: [text]
    outputs: [n, stats]
    steps:
      - {type: Decoder, id: decode, inputs: [text], outputs: [n]}
      - {type: Aggregate, id: count, outputs: [stats]}
`)
	got := runAll(t, app, "main", map[string]any{"text": `{"n": 1}`}, map[string]any{"text": "x"}, map[string]any{"text": `{"n": 2}`})
	if len(got) != 4 || got[3] != ` | {"num_successful":2,"num_failed":1,"num_total":3}` {
		t.Errorf("got %q", got)
	}
}

func TestInvokeFlow_IsolatesVariables(t *testing.T) {
	app := openApp(t, `
id: nested
flows:
  - id: main
    variables: [{id: who, type: text}, {id: secret, type: text}, {id: greeting, type: text}]
    inputs: [who, secret]
    outputs: [greeting, secret]
    steps:
      - {type: InvokeFlow, id: call, flow: greet, input_bindings: {name: who}, output_bindings: {line: greeting}}
  - id: greet
    variables: [{id: name, type: text}, {id: line, type: text}, {id: parts, type: "list[text]"}]
    inputs: [name]
    outputs: [line]
    steps:
      - {type: PromptTemplate, id: make, template: "hello {name}", inputs: [name], outputs: [line]}
`)
	got := runAll(t, app, "main", map[string]any{"who": "Ada", "secret": "s1"}, map[string]any{"who": "Bo", "secret": "s2"})
	assertLines(t, got, "hello Ada | s1", "hello Bo | s2")
}

func TestFileWriter_WritesRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "out.csv")
	app := openApp(t, fmt.Sprintf(`
id: written
flows:
  - id: main
    variables: [{id: name, type: text}, {id: n, type: int}, {id: file, type: text}]
    inputs: [name, n]
    outputs: [file]
    steps:
      - {type: FileWriter, id: save, path: {uri: %q}, outputs: [file]}
`, path))
	got := runAll(t, app, "main", map[string]any{"name": "Ada, B.", "n": "7"}, map[string]any{"name": "Bo", "n": 8})
	assertLines(t, got, path)
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "name,n") || !strings.Contains(string(text), "\"Ada, B.\",7") {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// TestWorkers_SeparateSessions: with 20 sessions and 8 workers, every request
// contains the whole conversation of its session, in order.
func TestWorkers_SeparateSessions(t *testing.T) {
	s := startModelServer(t, func(_ int, r request) string {
		return assistantMessage("re " + r.Messages[len(r.Messages)-1].Content)
	})
	app := openApp(t, fmt.Sprintf(`
id: inbox
memories: [{id: shared}]
models: [{type: Model, id: m, provider: openai, base_url: "%s/v1"}]
flows:
  - id: triage
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}, {id: ask, type: text}, {id: label, type: text}]
    inputs: [message]
    outputs: [label]
    steps:
      - {type: LLMInference, id: draft, model: m, memory: shared, inputs: [message], outputs: [reply], concurrency_config: {num_workers: 8}}
      - {type: PromptTemplate, id: question, template: "label {message}", inputs: [message], outputs: [ask]}
      - {type: LLMInference, id: label_it, model: m, memory: shared, inputs: [ask], outputs: [label], concurrency_config: {num_workers: 8}}
`, s.URL))
	const sessions, turns = 20, 6
	var rows []runtime.Input
	for i := range sessions * turns {
		rows = append(rows, runtime.Input{Session: fmt.Sprint("s", i%sessions), Values: map[string]any{"message": fmt.Sprintf("s%d-%d", i%sessions, i/sessions)}})
	}
	n := 0
	for row, err := range app.Run(t.Context(), "triage", slices.Values(rows)) {
		if err != nil || row.Err != nil {
			t.Fatal(err, row)
		}
		label, _ := row.Get("label")
		if text := fmt.Sprintf("re label s%d-%d", n%sessions, n/sessions); label != text {
			t.Fatalf("row %d is %q, want %q", n, label, text)
		}
		n++
	}
	for _, r := range s.requests {
		newest := strings.TrimPrefix(r.Messages[len(r.Messages)-1].Content, "label ")
		session, turn, _ := strings.Cut(newest, "-")
		var expect []string
		for k := 0; fmt.Sprint(k) != turn; k++ {
			q := fmt.Sprintf("%s-%d", session, k)
			expect = append(expect, "user: "+q, "assistant: re "+q, "user: label "+q, "assistant: re label "+q)
		}
		if strings.HasPrefix(r.Messages[len(r.Messages)-1].Content, "label ") {
			expect = append(expect, "user: "+newest, "assistant: re "+newest, "user: label "+newest)
		} else {
			expect = append(expect, "user: "+newest)
		}
		if got := transcript(r.Messages); got != strings.Join(expect, " | ") {
			t.Fatalf("a request has\n  %s\nwant\n  %s", got, strings.Join(expect, " | "))
		}
	}
}

func TestModel_ErrorFailsOneRow(t *testing.T) {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 2 {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided: sk-secret","code":"invalid_api_key"}}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
	}))
	defer s.Close()
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	app := openApp(t, fmt.Sprintf(chatApp, s.URL))
	got := runAll(t, app, "talk", map[string]any{"message": "a"}, map[string]any{"message": "b"}, map[string]any{"message": "c"})
	if len(got) != 3 || got[0] != "fine" || got[2] != "fine" || !strings.Contains(got[1], "HTTP 401") || strings.Contains(strings.Join(got, ""), "sk-secret") {
		t.Errorf("got %q", got)
	}
	w, err := app.Memory("chat_memory").Window(t.Context(), "default")
	if err != nil || len(w.Entries) != 4 {
		t.Errorf("the window holds %d messages, %v; the failed turn must not add any", len(w.Entries), err)
	}
}

// TestAgent_ParallelTools: the two tools wait for each other, so the run ends only if
// they run concurrently; their results keep the order of the calls.
func TestAgent_ParallelTools(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		_, _ = fmt.Fprintf(w, `{"status":"called with %s"}`, r.Method)
	}))
	defer shop.Close()
	s := startModelServer(t, func(n int, _ request) string {
		if n > 1 {
			return assistantMessage("done")
		}
		return `{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"find_order","arguments":"{\"number\": 1}"}},
			{"id":"c2","type":"function","function":{"name":"refund","arguments":"{\"number\": 1}"}}]}`
	})
	app := openApp(t, fmt.Sprintf(strings.Replace(agentApp, "max_tool_executions: 3", "parallel_tools: true", 1), s.URL, shop.URL))
	assertLines(t, runAll(t, app, "help", map[string]any{"question": "?"}), "done")
	if got := transcript(s.requests[1].Messages[2:]); got != `tool: {"status":"called with GET"} | tool: {"status":"called with POST"}` {
		t.Errorf("the results came as %s", got)
	}
}
