package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
)

const switchDocument = `
id: routes
flows:
  - id: cheap
    variables: [{id: price, type: float}, {id: label, type: text}]
    inputs: [price]
    outputs: [label]
    steps: [{type: PromptTemplate, id: say, template: "only {price}", inputs: [price], outputs: [label]}]
  - id: words
    variables: [{id: name, type: text}, {id: parts, type: "list[text]"}, {id: label, type: text}]
    inputs: [name]
    outputs: [label]
    steps:
      - {type: Decoder, id: read, inputs: [name], outputs: [parts]}
      - {type: Explode, id: each, inputs: [parts], outputs: [label]}
  - id: main
    variables: [{id: name, type: text}, {id: price, type: "float?"}, {id: label, type: "text?"}]
    inputs: [name, price]
    outputs: [name, label]
    steps:
      - type: Switch
        id: choose
        inputs: [name, price]
        outputs: [label]
        cases:
          - {when: 'price != nil and price < 10', flow: cheap}
          - {when: 'name startsWith "{" or 1 / price > 5', flow: words}
`

func TestSwitch_Cases(t *testing.T) {
	// A row without a matching case passes unchanged.
	got := runAll(t, openApp(t, switchDocument), "main",
		map[string]any{"name": "pen", "price": 2.5},
		map[string]any{"name": `{"parts": ["a", "b"]}`},
		map[string]any{"name": "car", "price": 9000},
		map[string]any{"name": "{"},
		map[string]any{"name": "unpriced"})
	if len(got) != 6 {
		t.Fatalf("got %q", got)
	}
	// An error in a flow names the path to its step, an error in an expression its position.
	if !strings.HasPrefix(got[4], "row 4: step choose > read: ") {
		t.Errorf("got %s", got[4])
	}
	if !strings.HasPrefix(got[5], "row 5: step choose: the expression name startsWith") ||
		!strings.HasSuffix(got[5], ":27:20): / is not defined for int and null") {
		t.Errorf("got %s", got[5])
	}
	assertLines(t, got[:4], "pen | only 2.5", `{"parts": ["a", "b"]} | a`, `{"parts": ["a", "b"]} | b`, "car | ")
}

func TestSwitch_Else(t *testing.T) {
	app := openApp(t, strings.Replace(switchDocument, "        cases:", "        else: words\n        cases:", 1))
	assertLines(t, runAll(t, app, "main", map[string]any{"name": `{"parts": ["z"]}`, "price": 50}), `{"parts": ["z"]} | z`)
}

const loopDocument = `
id: rounds
flows:
  - id: grow
    variables: [{id: text, type: text}, {id: n, type: int}, {id: both, type: "list[int]"}]
    inputs: [text, n]
    outputs: [text, n]
    steps: [{type: Transform, id: longer, set: {text: text + string(n), n: n + 1}}]
  - id: main
    variables: [{id: text, type: text}, {id: n, type: int}, {id: limit, type: int}]
    inputs: [text, n, limit]
    outputs: [text, n]
    steps:
      - {type: Loop, id: again, flow: grow, inputs: [text, n], outputs: [text, n], until: len(text) >= limit, max_iterations: 4}
`

func TestLoop_UntilAndMaxIterations(t *testing.T) {
	app := openApp(t, loopDocument)
	assertLines(t, runAll(t, app, "main",
		map[string]any{"text": "x", "n": 1, "limit": 3},
		map[string]any{"text": "x", "n": 1, "limit": 1},
		map[string]any{"text": "x", "n": 1, "limit": 100}),
		"x12 | 3", "x1 | 2", "x1234 | 5") // at max_iterations the row continues with its last values
	app = openApp(t, strings.Replace(loopDocument, ", until: len(text) >= limit", "", 1))
	assertLines(t, runAll(t, app, "main", map[string]any{"text": "", "n": 7, "limit": 0}), "78910 | 11")
	// The flow must emit exactly one row.
	app = openApp(t, strings.Replace(loopDocument, "steps: [{type: Transform, id: longer, set: {text: text + string(n), n: n + 1}}]",
		"steps: [{type: Transform, id: two, set: {both: '[n, n]'}}, {type: Explode, id: apart, inputs: [both], outputs: [n]}]", 1))
	got := runAll(t, app, "main", map[string]any{"text": "x", "n": 1, "limit": 1})
	assertLines(t, got, "row 1: step again: run 1 of at most 4: flow grow returned 2 rows for one; it must return exactly one")
}

const parallelDocument = `
id: sides
tools:
  - {type: APITool, id: left, name: left, description: Left, endpoint: "URL/left", method: GET, allow_private: true, inputs: [{id: q, type: text}], outputs: [{id: a, type: text}]}
  - {type: APITool, id: right, name: right, description: Right, endpoint: "URL/right", method: GET, allow_private: true, inputs: [{id: q, type: text}], outputs: [{id: b, type: text}]}
flows:
  - id: go_left
    variables: [{id: q, type: text}, {id: a, type: text}]
    inputs: [q]
    outputs: [a]
    steps: [{type: InvokeTool, id: ask_left, tool: left, input_bindings: {q: q}, output_bindings: {a: a}}]
  - id: go_right
    variables: [{id: q, type: text}, {id: b, type: text}]
    inputs: [q]
    outputs: [b]
    steps: [{type: InvokeTool, id: ask_right, tool: right, input_bindings: {q: q}, output_bindings: {b: b}}]
  - id: main
    variables: [{id: q, type: text}, {id: a, type: text}, {id: b, type: text}]
    inputs: [q]
    outputs: [a, b]
    steps: [{type: Parallel, id: both, flows: [go_left, go_right], inputs: [q], outputs: [a, b]}]
`

func TestParallel_RunsConcurrently(t *testing.T) {
	arrived := map[string]chan bool{"/left": make(chan bool), "/right": make(chan bool)}
	cancelled := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query().Get("q"); {
		case q == "meet": // each waits for the request to the other
			mine, other := arrived[r.URL.Path], arrived["/right"]
			if r.URL.Path == "/right" {
				other = arrived["/left"]
			}
			select {
			case mine <- true:
			case <-other:
			}
		case r.URL.Path == "/left": // blocks until the error of the other cancels it
			arrived["/left"] <- true
			<-r.Context().Done()
			cancelled <- true
			return
		default:
			<-arrived["/left"]
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"a": "left", "b": "right"}`))
	}))
	defer server.Close()
	app := openApp(t, strings.ReplaceAll(parallelDocument, "URL", server.URL))
	got := runAll(t, app, "main", map[string]any{"q": "meet"}, map[string]any{"q": "break"})
	if len(got) != 2 || got[0] != "left | right" {
		t.Fatalf("got %q", got)
	}
	if !strings.HasPrefix(got[1], "row 2: step both > ask_right: ") || !strings.Contains(got[1], "HTTP 404") {
		t.Errorf("the row has another error than the first: %s", got[1])
	}
	<-cancelled
}

const transformDocument = `
id: sums
types:
  - {id: Order, properties: {number: int, items: "list[text]", paid: "boolean?"}}
flows:
  - id: main
    variables:
      - {id: order, type: Order}
      - {id: due, type: date}
      - {id: message, type: ChatMessage}
      - {id: note, type: "text?"}
      - {id: pieces, type: int}
      - {id: mean, type: float}
      - {id: late, type: boolean}
      - {id: next, type: date}
      - {id: shown, type: text}
      - {id: reply, type: ChatMessage}
      - {id: other, type: Order}
    inputs: [order, due, message, note]
    outputs: [pieces, mean, late, next, shown, reply, other]
    steps:
      - type: Transform
        id: work
        set:
          pieces: len(order.items)
          mean: order.number / len(order.items)
          late: due < date("2026-01-01") and order.paid != true
          next: 'order.number > 2 ? due : date("2030-05-06")'
          shown: string(order.paid) + "/" + string(due) + "/" + (note ?? "none") + "/" + message.role + " " + upper(message.text)
          reply: 'note == nil ? message : "no"'
          other: '{"number": order.number + 1, "items": concat(order.items, ["new"])}'
`

func TestTransform_Expressions(t *testing.T) {
	app := openApp(t, transformDocument)
	got := runAll(t, app, "main",
		map[string]any{"order": map[string]any{"number": 3, "items": []any{"a", "b"}, "paid": nil}, "due": "2025-12-31", "message": "hi"},
		map[string]any{"order": map[string]any{"number": 3, "items": []any{}}, "due": "2026-12-31", "message": "hi", "note": "n"})
	for i, line := range got {
		before, after, found := strings.Cut(line, " (/")
		if found {
			_, after, _ = strings.Cut(after, "app.qtype.yaml")
			got[i] = before + " (" + after
		}
	}
	assertLines(t, got,
		`2 | 1.5 | true | 2025-12-31 | /2025-12-31/none/user HI | hi | {"number":4,"items":["a","b","new"],"paid":null}`,
		"row 2: step work: set mean: the expression order.number / len(order.items) (:26:17): the result is not a finite number: division by zero or overflow")
}

// TestTransform_ReadsInputRow swaps two variables: expressions see the input row.
func TestTransform_ReadsInputRow(t *testing.T) {
	app := openApp(t, `
id: swapped
flows:
  - id: main
    variables: [{id: a, type: int}, {id: b, type: int}]
    inputs: [a, b]
    outputs: [a, b]
    steps: [{type: Transform, id: swap, set: {a: b, b: a}}]
`)
	assertLines(t, runAll(t, app, "main", map[string]any{"a": 1, "b": 2}), "2 | 1")
}

// TestControlFlow_SessionsKeepOrder: rows of a session stay ordered in a memory that
// only nested flows use.
func TestControlFlow_SessionsKeepOrder(t *testing.T) {
	for name, step := range map[string]string{
		"Switch":   "type: Switch, cases: [{when: true, flow: talk}]",
		"Loop":     "type: Loop, flow: talk, max_iterations: 1",
		"Parallel": "type: Parallel, flows: [talk]",
	} {
		t.Run(name, func(t *testing.T) {
			app := openApp(t, strings.Replace(`
id: conversations
memories: [{id: recent}]
models: [{type: Model, id: writer, provider: mock, rules: [{echo: true}]}]
flows:
  - id: talk
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, model: writer, memory: recent, concurrency_config: {num_workers: 4}, inputs: [message], outputs: [answer]}]
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}, {id: again, type: ChatMessage}]
    inputs: [message]
    outputs: [again]
    steps:
      - {type: LLMInference, id: first, model: writer, concurrency_config: {num_workers: 8}, inputs: [message], outputs: [again]}
      - {id: nested, inputs: [message], outputs: [answer], STEP}
`, "STEP", step, 1))
			var inputs []runtime.Input
			for i := range 60 {
				inputs = append(inputs, runtime.Input{Session: []string{"a", "b", "c"}[i%3], Values: map[string]any{"message": strings.Repeat("x", i+1)}})
			}
			for row, err := range app.Run(t.Context(), "main", slices.Values(inputs)) {
				if err != nil || row.Err != nil {
					t.Fatal(err, row.Err)
				}
			}
			window, err := app.Memory("recent").Window(t.Context(), "b")
			if err != nil {
				t.Fatal(err)
			}
			longest := 0
			for i, m := range window.Messages() {
				if i%2 == 0 {
					if len(m.Text()) <= longest {
						t.Fatalf("message %d is out of order", i)
					}
					longest = len(m.Text())
				}
			}
			if len(window.Messages()) != 40 {
				t.Errorf("%d messages, want 40", len(window.Messages()))
			}
			if models, err := app.Models("main"); err != nil || len(models) != 1 {
				t.Errorf("models %v, %v", models, err)
			}
		})
	}
}
