package steps_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// failing is the world of one conversation with random failures: a model server, a service
// that is called as a tool, and what both have received.
type failing struct {
	t        *testing.T
	mu       sync.Mutex
	random   *rand.Rand
	counter  memory.Counter
	window   int             // tokens that the server accepts in one request
	factor   float64         // its tokens for one of the memory's
	count    int             // calls that the model has requested
	acked    map[string]bool // tool calls whose result the agent has received
	stored   []string        // what the memory has
	last     []string        // the messages of the last request of the turn, without the system message
	cancel   context.CancelFunc
	failures int
	requests int
	above    int // requests with more tokens than the window, although they have earlier rounds
	cut      int // requests without the oldest messages
	turns    int // that succeeded
}

// chance reports true with a probability.
func (f *failing) chance(p float64) bool { return f.random.Float64() < p }

// answer is the model: it fails, calls tools, or answers.
func (f *failing) answer(_ int, req request) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	earlier := f.check(req.Messages)
	tokens := f.tokens(req)
	if f.requests++; tokens > f.window {
		if earlier > 0 {
			f.above++
		}
		return reply{status: http.StatusBadRequest, failed: fmt.Sprintf(
			`{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.","code":"context_length_exceeded"}}`, f.window, tokens)}
	}
	r := f.fail()
	if r == nil {
		r = f.reply()
	}
	r.tokens = tokens
	return *r
}

// tokens counts the tokens of a request as the server does.
func (f *failing) tokens(req request) int {
	n := 3
	for _, m := range req.Messages {
		c := chat.Message{Role: chat.Role(m.Role), ToolCallID: m.ToolCallID}
		if text, ok := m.Content.(string); ok {
			c.Blocks = []chat.Block{{Type: "text", Text: text}}
		}
		for _, call := range m.ToolCalls {
			c = c.With(chat.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		n += memory.Tokens(f.counter, c)
	}
	for _, t := range req.Tools {
		n += f.counter.Count(t.Function.Name) + f.counter.Count(fmt.Sprint(t.Function.Parameters))
	}
	return int(float64(n) * f.factor)
}

// fail returns a failure of the model, usually nil.
func (f *failing) fail() *reply {
	if !f.chance(0.22) {
		return nil
	}
	f.failures++
	never := make(chan struct{})
	switch f.random.IntN(7) {
	case 0:
		return &reply{status: http.StatusInternalServerError}
	case 1:
		return &reply{status: http.StatusTooManyRequests}
	case 2:
		return &reply{status: http.StatusBadRequest}
	case 3:
		return &reply{hold: never} // until the time limit
	case 4:
		return &reply{deltas: []string{"cut"}, finish: "length"}
	case 5:
		return &reply{cut: true}
	}
	f.cancel()
	return &reply{hold: never}
}

// reply returns an answer, or calls of the tool.
func (f *failing) reply() *reply {
	if !f.chance(0.5) {
		return &reply{deltas: []string{"done ", fmt.Sprint(f.random.IntN(1000))}}
	}
	var calls [][3]string
	for range 1 + f.random.IntN(3) {
		f.count++
		calls = append(calls, [3]string{fmt.Sprint("call_", f.count), "refund_order", fmt.Sprintf(`{"id":%d,"amount":1}`, f.count)})
	}
	return &reply{deltas: []string{"wait"}, calls: calls}
}

// check fails the test if a tool message has no call before it, or a call no result, or if
// the messages before the question are not the newest ones that the memory has. It returns
// the number of these.
func (f *failing) check(msgs []wireMessage) (earlier int) {
	f.last = lines(msgs[1:])
	question := len(f.last) - 1
	for question > 0 && !strings.HasPrefix(f.last[question], "user: ") {
		question--
	}
	if left := len(f.stored) - question; left < 0 || !slices.Equal(f.last[:question], f.stored[left:]) {
		f.t.Errorf("the request has\n%s\nbut the memory has\n%s", strings.Join(f.last, "\n"), strings.Join(f.stored, "\n"))
	} else if left > 0 {
		f.cut++
	}
	f.last = f.last[question:]
	open := map[string]bool{}
	for _, m := range msgs {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				f.t.Errorf("orphaned tool message %s in\n%s", m, strings.Join(lines(msgs), "\n"))
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			f.t.Errorf("calls without results %v before %s in\n%s", open, m, strings.Join(lines(msgs), "\n"))
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		f.t.Errorf("calls without results %v at the end of\n%s", open, strings.Join(lines(msgs), "\n"))
	}
	return question
}

// serve is the service that the tool calls.
func (f *failing) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	body := string(raw)
	f.mu.Lock()
	id, _, _ := strings.Cut(strings.TrimPrefix(body, `{"id":`), ",")
	if f.acked["call_"+id] {
		f.t.Errorf("an acknowledged call was repeated: %s", body)
	}
	failure := f.random.IntN(12)
	if failure < 2 {
		f.failures++
	}
	if failure == 0 {
		f.cancel()
	}
	f.mu.Unlock()
	switch failure {
	case 0:
		<-r.Context().Done()
	case 1:
		http.Error(w, "out of order", http.StatusServiceUnavailable)
	default:
		fmt.Fprintf(w, `{"refund":"%s"}`, strings.Repeat("paid back ", 10))
	}
}

// acknowledge records the calls whose results the agent has received.
func (f *failing) acknowledge(ev steps.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked[ev.CallID] = true
}

// window lists the messages of a session that the model gets in the next turn.
func (w *testEnv) windowOf(t testing.TB, session string) []string {
	t.Helper()
	var out []string
	for _, line := range w.history(t, session) {
		if text, in := strings.CutSuffix(line, " [in window]"); in && !strings.HasPrefix(text, "system: ") {
			out = append(out, text)
		}
	}
	return out
}

// converse runs one conversation.
func converse(t *testing.T, seed uint64) *failing {
	f := &failing{t: t, random: rand.New(rand.NewPCG(seed, 7)), acked: map[string]bool{}}
	f.window, f.factor = 400+f.random.IntN(500), 1+0.4*f.random.Float64()
	service := httptest.NewServer(http.HandlerFunc(f.serve))
	defer service.Close()
	server := newLLM(t, f.answer)
	defer server.Close()
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, server, l, memory.Config{Policy: "unbounded"})
	var err error
	if f.counter, err = tokenizer.For("o200k_base"); err != nil {
		t.Fatal(err)
	}
	w.model.ContextWindow, w.model.ModelID = f.window, "local-model"
	w.model.Retry = &spec.RetryPolicy{MaxAttempts: 2, InitialDelay: spec.Duration(time.Microsecond), MaxDelay: spec.Duration(time.Microsecond)}
	w.model.Timeout, w.model.RateLimit = spec.Duration(300*time.Millisecond), &spec.RateLimit{MaxWait: spec.Duration(time.Nanosecond)}
	w.model.CircuitBreaker = &spec.CircuitBreaker{}
	made, err := provider.New(w.model, provider.Options{Getenv: func(string) string { return "" }, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	w.env.Model = func(*spec.Model) (model.Chat, error) { return made, nil }
	refund := &spec.APITool{ToolBase: spec.ToolBase{ID: "t", Name: "refund order", Description: "Pays back.", Inputs: declare(t, nil, "id: int", "amount: float")},
		Endpoint: service.URL + "/refunds", Method: "POST", AllowPrivate: true}
	declared := w.agent(l, []spec.Ref[spec.Tool]{{To: refund}}, true)
	declared.ParallelTools = f.chance(0.5)
	agent := build(t, declared, w.env)
	for turn := range 2 + f.random.IntN(6) {
		f.turn(w, l, agent, turn)
		if got := w.windowOf(t, "s"); !slices.Equal(got, f.stored) {
			t.Errorf("turn %d: the memory has\n%s\nexpected\n%s", turn, strings.Join(got, "\n"), strings.Join(f.stored, "\n"))
		}
	}
	return f
}

// turn runs one turn, which is resumed with its log after a failure, and notes what the
// memory must have afterwards.
func (f *failing) turn(w *testEnv, l layout, agent steps.Runner, turn int) {
	log := &mapLog{results: map[string][]byte{}}
	f.mu.Lock()
	attempts, streams, words := 1+f.random.IntN(3), f.chance(0.5), f.random.IntN(50)
	f.mu.Unlock()
	question := fmt.Sprint("question ", turn, strings.Repeat(" and more", words))
	for range attempts {
		ctx, cancel := context.WithCancel(f.t.Context())
		f.mu.Lock()
		f.cancel, f.last = cancel, nil
		f.mu.Unlock()
		kinds := []steps.EventKind{steps.EventToolResult}
		ctx = steps.WithEvents(steps.WithCallLog(ctx, log), f.acknowledge, kinds...)
		if streams {
			ctx = steps.WithEvents(ctx, func(steps.Event) {}, steps.EventText)
		}
		row := driveCtx(ctx, f.t, agent, l.row(map[string]any{"say": question}))[0]
		cancel()
		if row.Err != nil {
			continue
		}
		// The last request has all messages of the turn before the answer. A row whose last
		// answer is a recorded one sends no request; it fails before such an answer.
		f.turns++
		f.stored = append(append(f.stored, f.last...), "assistant: "+fmt.Sprint(row.Values[l.Slot(l.ref("answer").To)]))
		return
	}
}

// If anything fails, or a turn is canceled or resumed, no request has a tool message
// without its call or a call without its result, or more tokens than the model's context
// window by the server's count while it has earlier rounds; no acknowledged call is repeated,
// and the memory has exactly the messages of the turns that succeeded. QTYPE_CONVERSATIONS is the number of conversations.
func TestAgent_Failures(t *testing.T) {
	n := 24
	if testing.Short() || testkit.Race() {
		n = 12
	}
	if text := os.Getenv("QTYPE_CONVERSATIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var all failing
	for seed := range uint64(n) {
		f := converse(t, seed)
		all.failures, all.turns, all.count = all.failures+f.failures, all.turns+f.turns, all.count+len(f.acked)
		all.requests, all.above, all.cut = all.requests+f.requests, all.above+f.above, all.cut+f.cut
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d conversations: %d requests, %d of them shortened and %d above the context window, %d failures injected, %d turns succeeded, %d calls acknowledged",
		n, all.requests, all.cut, all.above, all.failures, all.turns, all.count)
	if all.failures < n || all.turns < n || all.count < n || all.cut < n/2 {
		t.Error("too few for a test")
	}
	if all.above > 0 {
		t.Errorf("%d requests have more tokens than the context window", all.above)
	}
}
