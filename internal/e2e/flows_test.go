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
	"github.com/qtype-dev/qtype/spec/value"
)

// outcomes runs a flow and writes each result row as "output | output" or as its error.
func outcomes(t *testing.T, app *runtime.App, flow string, rows ...map[string]any) []string {
	t.Helper()
	var inputs []runtime.Input
	for _, r := range rows {
		inputs = append(inputs, runtime.Row(r))
	}
	var out []string
	for row, err := range app.Run(t.Context(), flow, slices.Values(inputs)) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Err != nil {
			out = append(out, fmt.Sprintf("row %d: %v", row.Number, row.Err))
			continue
		}
		var cells []string
		for _, v := range row.Outputs() {
			cells = append(cells, value.Text(v))
		}
		out = append(out, strings.Join(cells, " | "))
	}
	return out
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestRowsThroughDataSteps(t *testing.T) {
	app := open(t, `
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
	got := outcomes(t, app, "main",
		map[string]any{"text": `{"names": ["Ada", "Bo"]}`},
		map[string]any{"text": `no JSON`},
		map[string]any{"text": `{"names": []}`},
		map[string]any{},
		map[string]any{"text": "```json\n{\"names\": [\"Cy\"]}\n```"})
	if len(got) != 5 || !strings.HasPrefix(got[2], "row 2: step decode: ") {
		t.Fatalf("got %q", got)
	}
	got[2] = "row 2 failed in decode"
	want(t, got, "Ada | hello Ada", "Bo | hello Bo", "row 2 failed in decode", "row 4: input text (text) is missing", "Cy | hello Cy")
}

func TestAggregateCountsFailedRowsToo(t *testing.T) {
	app := open(t, `
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
	got := outcomes(t, app, "main", map[string]any{"text": `{"n": 1}`}, map[string]any{"text": "x"}, map[string]any{"text": `{"n": 2}`})
	if len(got) != 4 || got[3] != ` | {"num_successful":2,"num_failed":1,"num_total":3}` {
		t.Errorf("got %q", got)
	}
}

func TestAnInvokedFlowSeesItsInputsAndReturnsItsOutputsOnly(t *testing.T) {
	app := open(t, `
id: nested
flows:
  - id: main
    variables: [{id: who, type: text}, {id: secret, type: text}, {id: said, type: text}]
    inputs: [who, secret]
    outputs: [said, secret]
    steps:
      - {type: InvokeFlow, id: call, flow: greet, input_bindings: {name: who}, output_bindings: {line: said}}
  - id: greet
    variables: [{id: name, type: text}, {id: line, type: text}, {id: parts, type: "list[text]"}]
    inputs: [name]
    outputs: [line]
    steps:
      - {type: PromptTemplate, id: make, template: "hello {name}", inputs: [name], outputs: [line]}
`)
	got := outcomes(t, app, "main", map[string]any{"who": "Ada", "secret": "s1"}, map[string]any{"who": "Bo", "secret": "s2"})
	want(t, got, "hello Ada | s1", "hello Bo | s2")
}

func TestTheFileWriterWritesTheFlowsRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "out.csv")
	app := open(t, fmt.Sprintf(`
id: written
flows:
  - id: main
    variables: [{id: name, type: text}, {id: n, type: int}, {id: file, type: text}]
    inputs: [name, n]
    outputs: [file]
    steps:
      - {type: FileWriter, id: save, path: {uri: %q}, outputs: [file]}
`, path))
	got := outcomes(t, app, "main", map[string]any{"name": "Ada, B.", "n": "7"}, map[string]any{"name": "Bo", "n": 8})
	want(t, got, path)
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "name,n") || !strings.Contains(string(text), "\"Ada, B.\",7") {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// Twenty conversations at once, eight workers: every request must carry its own
// conversation, whole and in order, as if there were one worker.
func TestWorkersDoNotMixConversations(t *testing.T) {
	s := serve(t, func(_ int, r request) string {
		return answer("re " + r.Messages[len(r.Messages)-1].Content)
	})
	app := open(t, fmt.Sprintf(`
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
			t.Fatalf("place %d holds %q, want %q", n, label, text)
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
			t.Fatalf("a request holds\n  %s\nwant\n  %s", got, strings.Join(expect, " | "))
		}
	}
}

func TestAModelThatRefusesFailsItsRowOnly(t *testing.T) {
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
	app := open(t, fmt.Sprintf(chatApp, s.URL))
	got := outcomes(t, app, "talk", map[string]any{"message": "a"}, map[string]any{"message": "b"}, map[string]any{"message": "c"})
	if len(got) != 3 || got[0] != "fine" || got[2] != "fine" || !strings.Contains(got[1], "HTTP 401") || strings.Contains(strings.Join(got, ""), "sk-secret") {
		t.Errorf("got %q", got)
	}
	w, err := app.Memory("chat_memory").Window(t.Context(), runtime.DefaultSession)
	if err != nil || len(w.Entries) != 4 {
		t.Errorf("the window holds %d messages, %v; the failed turn must leave nothing", len(w.Entries), err)
	}
}

// Both tools of one answer wait for each other, so the run ends only if they
// were called side by side; their results stand in the order of the calls.
func TestParallelToolsRunSideBySide(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		_, _ = fmt.Fprintf(w, `{"status":"asked by %s"}`, r.Method)
	}))
	defer shop.Close()
	s := serve(t, func(n int, _ request) string {
		if n > 1 {
			return answer("done")
		}
		return `{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"find_order","arguments":"{\"number\": 1}"}},
			{"id":"c2","type":"function","function":{"name":"refund","arguments":"{\"number\": 1}"}}]}`
	})
	app := open(t, fmt.Sprintf(strings.Replace(agentApp, "max_tool_executions: 3", "parallel_tools: true", 1), s.URL, shop.URL))
	want(t, outcomes(t, app, "help", map[string]any{"question": "?"}), "done")
	if got := transcript(s.requests[1].Messages[2:]); got != `tool: {"status":"asked by GET"} | tool: {"status":"asked by POST"}` {
		t.Errorf("the results came as %s", got)
	}
}
