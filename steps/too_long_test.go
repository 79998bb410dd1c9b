package steps_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/steps"
)

// strictServer has a model with a small context window: it counts four tokens per word and
// rejects longer requests as llama-cpp-python does.
type strictServer struct {
	window   int
	silent   string // the body of a rejection; empty for that of llama-cpp-python
	counts   []int  // of the accepted requests
	rejected int
	last     []wireMessage
}

func (s *strictServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	_ = json.NewDecoder(r.Body).Decode(&req)
	tokens := 0
	for _, m := range req.Messages {
		text, _ := m.Content.(string)
		tokens += 4*len(strings.Fields(text)) + 5
	}
	w.Header().Set("Content-Type", "application/json")
	s.last = req.Messages
	if tokens > s.window {
		s.rejected++
		w.WriteHeader(http.StatusBadRequest)
		if s.silent != "" {
			_, _ = w.Write([]byte(s.silent))
			return
		}
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, 0 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, s.window, tokens, tokens)
		return
	}
	s.counts = append(s.counts, tokens)
	if s.silent != "" { // such servers report no usage either
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"one two three four five six"},"finish_reason":"stop"}]}`))
		return
	}
	fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"one two three four five six"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":6}}`, tokens)
}

// TestLLMInference_TooLong: a conversation continues although the server counts four times
// as many tokens as the estimate: the first rejected request is sent again without its oldest
// rounds, and later ones are not rejected.
func TestLLMInference_TooLong(t *testing.T) {
	server := &strictServer{window: 300}
	s := &llm{Server: httptest.NewServer(server)}
	t.Cleanup(s.Close)
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, s, l, memory.Config{Policy: "unbounded"})
	r := build(t, w.inference(l, []string{"say"}, "answer", "You help."), w.env)
	var events []string
	ctx := steps.WithEvents(t.Context(), func(ev steps.Event) { events = append(events, ev.Text) }, steps.EventShortened)
	for i := range 30 {
		question := fmt.Sprintf("question %d with some more words", i)
		row := l.row(map[string]any{"say": question})
		row.Session = "s"
		if out := driveCtx(ctx, t, r, row)[0]; out.Err != nil {
			t.Fatal(i, out.Err)
		}
		if server.last[0].Role != "system" || server.last[1].Role != "user" || server.last[len(server.last)-1].Content != question {
			t.Fatalf("request %d: %v", i, lines(server.last))
		}
	}
	if server.rejected > 1 || len(events) != server.rejected {
		t.Errorf("%d requests were rejected, %d events: %q", server.rejected, len(events), events)
	}
	report, err := explain.Turn(t.Context(), w.shared, "s", 0)
	testkit.Must(t, err)
	var text strings.Builder
	testkit.Must(t, report.Write(&text))
	for _, want := range []string{"the window was fitted with factor", "the provider counted", "left out: messages 1 to"} {
		if server.rejected > 0 && !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}

// TestLLMInference_TooLongWithoutSizes: a conversation continues although the server names
// neither the size of a request nor its limit, or not even a reason. What it has accepted
// and rejected is stored: it rejects a few requests until the window is close to its limit,
// and then none, also in another process. Without a reason the size is a guess, which is tried again.
func TestLLMInference_TooLongWithoutSizes(t *testing.T) {
	for body, guessed := range map[string]bool{`{"error":{"message":"invalid params, context window exceeds limit"}}`: false, `{"error":{"message":"Bad Request"}}`: true} {
		server := &strictServer{window: 600, silent: body}
		s := &llm{Server: httptest.NewServer(server)}
		t.Cleanup(s.Close)
		l := declare(t, nil, "say: text", "answer: text")
		w := newTestEnv(t, s, l, memory.Config{Policy: "unbounded"})
		r := build(t, w.inference(l, []string{"say"}, "answer", "You help."), w.env)
		for i := range 60 {
			if i == 40 && !guessed && server.rejected > 6 {
				t.Errorf("%d requests were rejected", server.rejected)
			}
			before := server.rejected
			row := l.row(map[string]any{"say": fmt.Sprintf("question %d with some more words", i)})
			row.Session = "s"
			if out := driveCtx(t.Context(), t, r, row)[0]; out.Err != nil {
				t.Fatal(i, out.Err)
			}
			if i >= 40 && !guessed && server.rejected > before {
				t.Errorf("turn %d was rejected", i)
			}
		}
		if guessed && server.rejected > 30 {
			t.Errorf("%d requests were rejected without a reason", server.rejected)
		}
		if used := server.counts[len(server.counts)-1]; used < server.window/2 {
			t.Errorf("the last request has %d tokens of %d", used, server.window)
		}
	}
}

// TestLLMInference_Rejected: an error that has nothing to do with the size of a request is
// reported, and changes nothing. One without a reason costs at most one more request.
func TestLLMInference_Rejected(t *testing.T) {
	for _, c := range []struct {
		body  string
		calls int
	}{
		{`{"error":{"message":"Unknown parameter: 'foo'.","type":"invalid_request_error","param":"foo","code":"unknown_parameter"}}`, 1},
		{`{"error":{"message":"Your credit balance is too low","type":"invalid_request_error"}}`, 1},
		{`{"error":{"message":"Bad Request"}}`, 2},
	} {
		s := newSuspect(t)
		for range 5 {
			testkit.Must(t, s.say("something"))
		}
		s.rejects, s.calls = c.body, 0
		if err := s.say("something"); err == nil || !strings.Contains(err.Error(), "HTTP 400") || s.calls != c.calls {
			t.Errorf("%s: %v after %d calls", c.body, err, s.calls)
		}
		s.rejects, s.calls = "", 0
		if err := s.say("something"); err != nil || s.calls != 1 || len(s.llm.last().Messages) != 11 {
			t.Errorf("%s: %v after %d calls with %d messages", c.body, err, s.calls, len(s.llm.last().Messages))
		}
	}
}

// TestLLMInference_RejectedOnce: a session whose provider has once rejected a request without a
// reason, and accepted a smaller one, has all of its messages in the next turn, or, if the
// request was much larger than all before, after some turns.
func TestLLMInference_RejectedOnce(t *testing.T) {
	for question, turns := range map[string]int{"something": 1, strings.Repeat("something ", 200): 12} {
		s := newSuspect(t)
		for range 5 {
			testkit.Must(t, s.say("something"))
		}
		s.rejects, s.calls, s.once = `{"error":{"message":"Bad Request"}}`, 0, true
		testkit.Must(t, s.say(question))
		if sent := len(s.llm.last().Messages); s.calls != 2 || sent == 11 || len(s.events) != 1 || !strings.Contains(s.events[0], "without a reason (HTTP 400)") {
			t.Errorf("%d calls, the last one with %d messages: %q", s.calls, sent, s.events)
		}
		report, err := explain.Turn(t.Context(), s.env.shared, "s", 0)
		testkit.Must(t, err)
		var text strings.Builder
		testkit.Must(t, report.Write(&text))
		if !strings.Contains(text.String(), "without a reason, perhaps as too long") {
			t.Errorf("the report does not name the guess:\n%s", text.String())
		}
		for range turns {
			testkit.Must(t, s.say("something"))
		}
		if sent, want := len(s.llm.last().Messages), 2*(5+turns)+1; sent != want {
			t.Errorf("%d messages were sent after %d turns, want %d", sent, turns, want)
		}
	}
}

// suspect is a session at a server that rejects requests.
type suspect struct {
	llm     *llm
	env     *testEnv
	say     func(question string) error
	rejects string // the body of errors; empty for answers
	once    bool   // only the next request is rejected
	calls   int
	events  []string
}

func newSuspect(t *testing.T) *suspect {
	s := &suspect{}
	s.llm = newLLM(t, func(int, request) reply {
		s.calls++
		body := s.rejects
		if s.once {
			s.rejects = ""
		}
		if body != "" {
			return reply{status: http.StatusBadRequest, failed: body}
		}
		return textReply("fine")
	})
	l := declare(t, nil, "say: text", "answer: text")
	s.env = newTestEnv(t, s.llm, l, memory.Config{Policy: "unbounded"})
	r := build(t, s.env.inference(l, []string{"say"}, "answer", ""), s.env.env)
	ctx := steps.WithEvents(t.Context(), func(ev steps.Event) { s.events = append(s.events, ev.Text) }, steps.EventShortened)
	s.say = func(question string) error {
		row := l.row(map[string]any{"say": question})
		row.Session = "s"
		if out := driveCtx(ctx, t, r, row)[0]; out.Err != nil {
			return out.Err
		}
		return nil
	}
	return s
}

// TestLLMInference_NeverFits: a question that alone is too long is an error that explains it, after
// one request.
func TestLLMInference_NeverFits(t *testing.T) {
	server := &strictServer{window: 50}
	s := &llm{Server: httptest.NewServer(server)}
	t.Cleanup(s.Close)
	l := declare(t, nil, "say: text", "answer: text")
	w := newTestEnv(t, s, l, memory.Config{Policy: "unbounded"})
	r := build(t, w.inference(l, []string{"say"}, "answer", "You help."), w.env)
	row := l.row(map[string]any{"say": strings.Repeat("word ", 40)})
	out := driveCtx(t.Context(), t, r, row)[0]
	if out.Err == nil || !strings.Contains(out.Err.Error(), "maximum context length is 50") || !strings.Contains(out.Err.Error(), "newest round") || server.rejected != 1 {
		t.Errorf("%d requests, got %v", server.rejected, out.Err)
	}
}
