package steps_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// shop is an HTTP service with two endpoints that records its requests.
type shop struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newShop(t testing.TB) *shop {
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		b := make([]byte, 1000)
		n, _ := r.Body.Read(b)
		body.Write(b[:n])
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+body.String()))
		s.mu.Unlock()
		switch {
		case strings.HasPrefix(r.URL.Path, "/orders/8812"):
			fmt.Fprint(w, `{"status": "in transit", "due": "2026-11-23"}`)
		case r.URL.Path == "/refunds":
			fmt.Fprint(w, `{"refund": 17}`)
		default:
			http.Error(w, "no such order", http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// tools returns two API tools of the shop: find_order by GET, refund by POST.
func (s *shop) tools(t testing.TB) []spec.Ref[spec.Tool] {
	find := &spec.APITool{ToolBase: spec.ToolBase{ID: "t1", Name: "find_order", Description: "Finds an order.", Inputs: declare(t, nil, "id: int", "verbose: boolean?")},
		Endpoint: s.URL + "/orders/{id}", Method: "GET", AllowPrivate: true}
	refund := &spec.APITool{ToolBase: spec.ToolBase{ID: "t2", Name: "refund order", Description: "Pays back.", Inputs: declare(t, nil, "id: int", "amount: float", "on: date?")},
		Endpoint: s.URL + "/refunds", Method: "POST", AllowPrivate: true}
	return []spec.Ref[spec.Tool]{{To: find}, {To: refund}}
}

func (w *testEnv) agent(l layout, tools []spec.Ref[spec.Tool], remember bool) *spec.Agent {
	a := &spec.Agent{StepBase: l.base("helper", []string{"say"}, []string{"answer"}), Model: spec.Ref[spec.ModelEntity]{To: w.model},
		SystemMessage: "You help.", Tools: tools, MaxToolExecutions: 20}
	if remember {
		a.Memory = spec.Ref[*spec.Memory]{To: w.memory}
	}
	return a
}

// Several calls in one answer, their results and the final answer are in the requests, in
// the log of the service and in the memory.
func TestAgent_CallsTools(t *testing.T) {
	for _, streams := range []bool{false, true} {
		svc := newShop(t)
		s := newLLM(t, func(n int, _ request) reply {
			switch n {
			case 1:
				return reply{deltas: []string{"Let me ", "look."}, calls: [][3]string{
					{"c1", "find_order", `{"id": "8812", "verbose": null}`}, {"c2", "refund_order", `{"id": 8812, "amount": 5, "on": "2026-11-21"}`}}}
			case 2:
				return textReply("It is due ", "on Monday.")
			}
			return textReply("You are welcome.")
		})
		l := declare(t, nil, "say: text", "answer: text")
		w := newTestEnv(t, s, l, memory.Config{})
		r := build(t, w.agent(l, svc.tools(t), true), w.env)
		ctx, heard := t.Context(), &listen{}
		if streams {
			ctx = steps.WithEvents(ctx, heard.hear)
		}
		rows := driveCtx(ctx, t, r, l.row(map[string]any{"say": "Where is my parcel?"}))
		expect(t, "row", []string{show(l, rows[0])}, `{"say":"Where is my parcel?","answer":"It is due on Monday."}`)
		expect(t, "service", svc.asked, "GET /orders/8812", `POST /refunds {"amount":5,"id":8812,"on":"2026-11-21"}`)

		var offered []string
		for _, tool := range s.requests()[0].Tools {
			offered = append(offered, tool.Function.Name)
		}
		expect(t, "tools", offered, "find_order", "refund_order")
		calls := `assistant: Let me look. → c1 find_order({"id": "8812", "verbose": null}) → c2 refund_order({"id": 8812, "amount": 5, "on": "2026-11-21"})`
		sent := []string{"user: Where is my parcel?", calls, `tool(c1): {"due":"2026-11-23","status":"in transit"}`, `tool(c2): {"refund":17}`}
		expect(t, "second request", lines(s.last().Messages), append([]string{"system: You help."}, sent...)...)

		var kept []string
		for _, line := range append(sent, "assistant: It is due on Monday.") {
			kept = append(kept, line+" [in window]")
		}
		expect(t, "history", w.history(t, "s"), kept...)
		if streams {
			expect(t, "events", heard.lines, `helper reasoning "thinking hard"`, `helper text "Let me "`, `helper text "look."`, "helper usage 11 in, 7 out",
				`helper tool-call c1 find_order "{\"id\": \"8812\", \"verbose\": null}"`, `helper tool-result c1 find_order "{\"due\":\"2026-11-23\",\"status\":\"in transit\"}"`,
				`helper tool-call c2 refund_order "{\"id\": 8812, \"amount\": 5, \"on\": \"2026-11-21\"}"`, `helper tool-result c2 refund_order "{\"refund\":17}"`,
				`helper reasoning "thinking hard"`, `helper text "It is due "`, `helper text "on Monday."`, "helper usage 11 in, 7 out", `helper turn   ""`)
		}
		driveCtx(ctx, t, r, l.row(map[string]any{"say": "Thanks!"}))
		expect(t, "next turn", lines(s.last().Messages), slices.Concat([]string{"system: You help."}, sent, []string{"assistant: It is due on Monday.", "user: Thanks!"})...)
	}
}

// A failed call is reported to the model, which may correct it.
func TestAgent_ReportsFailuresToModel(t *testing.T) {
	svc := newShop(t)
	s := newLLM(t, func(n int, _ request) reply {
		if n > 1 {
			return textReply("sorry")
		}
		return callsFor([3]string{"a", "lookup", "{}"}, [3]string{"b", "find_order", "{id: 1}"}, [3]string{"c", "find_order", ""}, [3]string{"d", "find_order", `{"id":"x"}`},
			[3]string{"e", "find_order", `{"id":1,"colour":"red"}`}, [3]string{"f", "find_order", `{"id":7}`}, [3]string{"", "find_order", `[]`})
	})
	l := declare(t, nil, "say: ChatMessage", "answer: ChatMessage")
	w := newTestEnv(t, s, l, memory.Config{})
	r := build(t, w.agent(l, svc.tools(t), false), w.env)
	row := driveRows(t, r, l.row(map[string]any{"say": mustMessage(t, "help")}))[0]
	if row.Err != nil {
		t.Fatal(row.Err)
	}
	got := lines(s.last().Messages)[3:]
	want := []string{
		`tool(a): error: there is no tool "lookup"; tools are find_order, refund_order`,
		`tool(b): error: the arguments are not valid JSON: line 1, column 2: expected a key in quotes, found 'i'`,
		`tool(c): error: the argument id (int) is missing`,
		`tool(d): error: argument id: expected int, got "x"`,
		`tool(e): error: the tool has no argument "colour"; it takes id, verbose`,
	}
	expect(t, "results", got[:5], want...)
	if !strings.HasPrefix(got[5], "tool(f): error: ") || !strings.Contains(got[5], "HTTP 404") || !strings.Contains(got[5], "no such order") {
		t.Error(got[5])
	}
	if !strings.HasPrefix(got[6], "tool(call_") || !strings.HasSuffix(got[6], ": error: the arguments must be a JSON object, not a list of 0") {
		t.Error(got[6])
	}
	expect(t, "service", svc.asked, "GET /orders/7")
}

func TestAgent_ToolCallLimit(t *testing.T) {
	two := callsFor([3]string{"a", "find_order", `{"id":8812}`}, [3]string{"b", "find_order", `{"id":8812}`})
	tests := []struct {
		name  string
		third reply
		want  string
	}{
		{"it answers", textReply("I know enough."), `{"say":"hi","answer":"I know enough."}`},
		{"it answers and calls", reply{deltas: []string{"Enough."}, calls: two.calls}, `{"say":"hi","answer":"Enough."}`},
		{"it goes on calling", two, "error: the model requested 6 tool calls, but the limit is 3 (max_tool_executions), and it gave no answer without more calls"},
	}
	for _, tt := range tests {
		svc := newShop(t)
		s := newLLM(t, func(n int, req request) reply {
			if n <= 2 {
				return two
			}
			return tt.third
		})
		l := declare(t, nil, "say: text", "answer: text")
		w := newTestEnv(t, s, l, memory.Config{})
		step := w.agent(l, svc.tools(t), true)
		step.MaxToolExecutions = 3
		expect(t, tt.name, drive(t, l, build(t, step, w.env), l.row(map[string]any{"say": "hi"})), tt.want)
		if len(svc.asked) != 3 || len(s.requests()) != 3 {
			t.Errorf("%s: %d tool calls, %d requests", tt.name, len(svc.asked), len(s.requests()))
		}
		last := s.last()
		if len(last.Tools) == 0 || last.ToolChoice != "none" || !strings.Contains(last.Messages[len(last.Messages)-1].String(), "the limit of 3 tool calls is reached") {
			t.Errorf("%s: the last request: %v", tt.name, lines(last.Messages))
		}
		for _, line := range w.history(t, "s") {
			if failed := strings.HasSuffix(line, "[failed]"); failed != strings.HasPrefix(tt.want, "error") {
				t.Errorf("%s: history: %s", tt.name, line)
			}
		}
	}
}

func TestAgent_DuplicateToolNames(t *testing.T) {
	svc := newShop(t)
	s := newLLM(t, func(int, request) reply { return textReply("ok") })
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, s, l, memory.Config{})
	tools := svc.tools(t)
	tools[1].To.Common().Name = "find order"
	tools[0].To.Common().Name = "find_order"
	if _, err := steps.Build(w.agent(l, tools, false), w.env); err == nil || err.Error() != `tools t1 and t2 have the same name "find_order"` {
		t.Error(err)
	}
}

// Arguments come from variables; outputs are set by name.
func TestInvokeTool(t *testing.T) {
	svc := newShop(t)
	s := newLLM(t, func(int, request) reply { return textReply("unused") })
	l := declare(t, nil, "order: int", "loud: boolean?", "state: text", "whole: citation_url", "note: text?")
	w := newTestEnv(t, s, l, memory.Config{})
	tool := svc.tools(t)[0].To
	tool.Common().Outputs = declare(t, nil, "status: text", "due: text", "comment: text?")
	step := &spec.InvokeTool{StepBase: spec.StepBase{ID: "call"}, Tool: spec.Ref[spec.Tool]{To: tool},
		InputBindings:  spec.Bindings{{Name: "id", Var: l.ref("order")}, {Name: "verbose", Var: l.ref("loud")}},
		OutputBindings: spec.Bindings{{Name: "status", Var: l.ref("state")}, {Name: "comment", Var: l.ref("note")}}}
	r := build(t, step, w.env)
	got := drive(t, l, r, l.row(map[string]any{"order": int64(8812), "loud": true}), l.row(nil), l.row(map[string]any{"order": int64(1)}))
	expect(t, "rows", got[:2], `{"order":8812,"loud":true,"state":"in transit"}`, "error: input id of the tool: variable order is not set")
	if !strings.HasPrefix(got[2], "error: ") || !strings.Contains(got[2], "HTTP 404") {
		t.Error(got[2])
	}
	expect(t, "service", svc.asked, "GET /orders/8812?verbose=true", "GET /orders/1")
	step.OutputBindings = spec.Bindings{{Name: "due", Var: l.ref("state")}, {Name: "none", Var: l.ref("note")}}
	if _, err := steps.Build(step, w.env); err == nil || err.Error() != `tool t1 has no output "none"` {
		t.Error(err)
	}
	tool.Common().Outputs = declare(t, nil, "price: float")
	step.OutputBindings = spec.Bindings{{Name: "price", Var: l.ref("state")}}
	expect(t, "a missing output", drive(t, l, build(t, step, w.env), l.row(map[string]any{"order": int64(8812)})),
		`error: tool find_order: the result has no "price"; it has due, status`)
}
