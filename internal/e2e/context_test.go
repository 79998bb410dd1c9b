package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/runtime"
)

// contextApp has a memory that flushes every few turns; %[1]s is the model
// server, %[2]s the context blocks, %[3]s the keys of the embedding model.
const contextApp = `
id: bicycle_shop
memories:
  - {id: chats, token_limit: 1200, chat_history_token_ratio: 0.25, token_flush_size: 100, context: [%[2]s]}
models:
  - {type: Model, id: assistant, provider: openai, model_id: assistant-1, base_url: "%[1]s/v1", prices: {input: 1, output: 1}}
  - {type: Model, id: summarizer, provider: openai, model_id: summarizer-1, base_url: "%[1]s/v1", prices: {input: 100, output: 100}}
  - {type: EmbeddingModel, id: finder, %[3]s}
tools:
  - type: MemoryTool
    id: note
    name: note
    description: Notes the frame number.
    memory: chats
    inputs: [{id: frame, type: text}, {id: bell, type: boolean?}]
    outputs: [{id: frame, type: text}, {id: lamp, type: text?}]
flows:
  - id: talk
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: answer, model: assistant, memory: chats, system_message: You repair bicycles., inputs: [message], outputs: [reply]}
  - id: work
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: Agent, id: serve, model: assistant, memory: chats, system_message: You repair bicycles., tools: [note], inputs: [message], outputs: [reply]}
  - id: remember
    variables: [{id: plan, type: text?}, {id: visits, type: int?}]
    inputs: [plan, visits]
    outputs: [plan, visits]
    steps:
      - {type: MemoryVariables, id: know, memory: chats, inputs: [plan, visits], outputs: [plan, visits]}
  - id: lookup
    variables: [{id: plan, type: text}]
    inputs: []
    outputs: [plan]
    steps:
      - {type: MemoryVariables, id: look, memory: chats, outputs: [plan]}
  - id: forget
    variables: [{id: plan, type: text?}]
    inputs: []
    outputs: [plan]
    steps:
      - {type: MemoryVariables, id: drop, memory: chats, forget: [plan, nothing], outputs: [plan]}
`

const (
	stableBlocks = "{type: pinned, text: Open until six.}, {type: summary, model: summarizer, max_tokens: 100}"
	allBlocks    = stableBlocks + ", {type: variables}, {type: retrieval, embedding_model: finder, top_k: 2}"
	mockVectors  = "provider: mock, dimensions: 64"
)

// contextServer is a server with two models: assistant calls the tool note with
// the word after "frame", summarizer numbers its summaries.
type contextServer struct {
	*httptest.Server
	mu         sync.Mutex
	requests   [][]json.RawMessage // messages sent to assistant, as received
	summarized []string            // prompts sent to summarizer
	broken     bool                // summarizer returns HTTP 400
}

func newContextServer(t *testing.T) *contextServer {
	w := &contextServer{}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	return w
}

func (w *contextServer) serve(out http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string
		Messages []json.RawMessage
		Tools    []json.RawMessage
	}
	_ = json.NewDecoder(r.Body).Decode(&req)
	w.mu.Lock()
	defer w.mu.Unlock()
	var last wireMessage
	_ = json.Unmarshal(req.Messages[len(req.Messages)-1], &last)
	reply := assistantMessage(fmt.Sprintf("Answer %d: %s.", len(w.requests), strings.Repeat("so ", len(w.requests)%7)))
	switch _, frame, found := strings.Cut(last.Content, "frame "); {
	case req.Model == "summarizer-1" && w.broken:
		http.Error(out, `{"error":{"message":"out of ink"}}`, http.StatusBadRequest)
		return
	case req.Model == "summarizer-1":
		w.summarized = append(w.summarized, last.Content)
		reply = assistantMessage(fmt.Sprintf("Summary %d.", len(w.summarized)))
	case found && last.Role == "user" && len(req.Tools) > 0:
		reply = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"note","arguments":"{\"frame\":\"%s\"}"}}]}`, len(w.requests), strings.Fields(frame)[0])
	}
	if req.Model != "summarizer-1" {
		w.requests = append(w.requests, req.Messages)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(out, `{"id":"r","choices":[{"index":0,"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, reply)
}

// newestUser returns the index of the newest user message of a request.
func newestUser(t *testing.T, messages []json.RawMessage) int {
	t.Helper()
	for i, raw := range slices.Backward(messages) {
		var m wireMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if m.Role == "user" {
			return i
		}
	}
	return -1
}

func sameBytes(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return string(x) == string(y) })
}

// TestContext_KeepsPromptPrefix: pinned texts and summaries follow the system
// message and change only when messages are flushed, so between two flushes each
// request starts with all bytes of the previous one. Variables and retrieved
// messages precede the newest user message, so only the messages before it are
// shared. Within an agent's loop all messages are, unless a tool's result flushes.
func TestContext_KeepsPromptPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		blocks string
		flow   string
		moving bool
	}{
		"stable blocks":         {stableBlocks, "talk", false},
		"all blocks":            {allBlocks, "talk", true},
		"stable blocks, agent":  {stableBlocks, "work", false},
		"all blocks, and agent": {allBlocks, "work", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newContextServer(t)
			app := openApp(t, fmt.Sprintf(contextApp, w.URL, c.blocks, mockVectors))
			var turns []int64 // of each request
			for turn := range 30 {
				text := fmt.Sprintf("Question %d: where is my %s bicycle?", turn, strings.Repeat("dear ", turn%5))
				if turn%3 == 1 {
					text = fmt.Sprintf("It has the frame KT%d.", turn)
				}
				runRow(t, app, c.flow, "s1", map[string]any{"message": text})
				for len(turns) < len(w.requests) {
					turns = append(turns, int64(turn+1))
				}
			}
			flushed, flushes := flushedTurns(t, app.Memory("chats"), "s1")
			if flushes < 3 || len(w.summarized) < 3 {
				t.Fatalf("%d flushes, %d summaries", flushes, len(w.summarized))
			}
			unchanged := 0
			for i := 1; i < len(turns); i++ {
				before, now, turn := w.requests[i-1], w.requests[i], turns[i]
				shared := len(before)
				if c.moving && turn != turns[i-1] {
					shared = newestUser(t, before)
				}
				switch {
				case len(now) >= shared && sameBytes(before[:shared], now[:shared]):
					unchanged++
				case !flushed[turn] && (turn == turns[i-1] || !flushed[turn-1]):
					t.Errorf("turn %d, request %d: no flush, yet\n%s\ndoes not begin with\n%s", turn, i, now, before[:shared])
				}
			}
			if unchanged < len(turns)-1-flushes {
				t.Errorf("%d of %d requests kept their prefix, for %d flushes", unchanged, len(turns)-1, flushes)
			}
		})
	}
}

// TestContext_SessionVariables: steps and tools set and read variables, a turn
// that fails sets none, and the model receives them.
func TestContext_SessionVariables(t *testing.T) {
	w := newContextServer(t)
	app := openApp(t, fmt.Sprintf(contextApp, w.URL, allBlocks, mockVectors))
	if got := runRow(t, app, "remember", "s1", map[string]any{"plan": "Gold", "visits": 3}); fmt.Sprint(got["plan"], " ", got["visits"]) != "Gold 3" {
		t.Errorf("got %v", got)
	}
	if got := runRow(t, app, "remember", "s1", map[string]any{"visits": 4}); fmt.Sprint(got["plan"], " ", got["visits"]) != "Gold 4" {
		t.Errorf("a missing input: %v", got)
	}
	if got := runRow(t, app, "remember", "s2", nil); got["plan"] != nil {
		t.Errorf("another session: %v", got)
	}
	for row, err := range app.Run(t.Context(), "lookup", singleInput("s2", nil)) {
		if want := `step look: session "s2": no value "plan" is stored yet; if that may happen, declare the variable optional: text?`; err != nil || row.Err == nil || row.Err.Error() != want {
			t.Errorf("got %v, %v", row.Err, err)
		}
	}
	runRow(t, app, "work", "s1", map[string]any{"message": "It has the frame KT7."})
	if first := string(w.requests[0][1]); !strings.Contains(first, `- plan: Gold\n- visits: 4\n\nThe message:\nIt has the frame KT7.`) {
		t.Errorf("the model was sent %s", first)
	}
	if result := string(w.requests[1][3]); !strings.Contains(result, `{\"frame\":\"KT7.\",\"lamp\":null}`) {
		t.Errorf("the tool answered %s", result)
	}
	w.Close() // the next turn fails
	for row := range app.Run(t.Context(), "work", singleInput("s1", map[string]any{"message": "It has the frame KT8."})) {
		if row.Err == nil {
			t.Error("the turn did not fail")
		}
	}
	got, err := app.Memory("chats").Variables(t.Context(), "s1")
	if err != nil || len(got) != 3 || got[0].Name != "frame" || string(got[0].Value) != `"KT7."` || got[0].Turn != 1 {
		t.Errorf("variables %v, %v", got, err)
	}
	if got := runRow(t, app, "forget", "s1", nil); got["plan"] != nil {
		t.Errorf("a removed variable: %v", got)
	}
}

// TestContext_SummaryCallsCountTowardsBudget: calls of summary and embedding models
// count for the step, at the prices of those models.
func TestContext_SummaryCallsCountTowardsBudget(t *testing.T) {
	w := newContextServer(t)
	text := strings.ReplaceAll(fmt.Sprintf(contextApp, w.URL, allBlocks, mockVectors), "  - id: talk\n", "  - id: talk\n    budget: {money: 0.001}\n")
	app := openApp(t, text)
	var end error
	turns := 0
	row := runtime.Input{Session: "s1", Values: map[string]any{"message": strings.Repeat("Where is it? ", 8)}}
	for _, err := range app.Run(t.Context(), "talk", slices.Values(slices.Repeat([]runtime.Input{row}, 40))) {
		turns++
		end = err
	}
	// An answer costs 15 millionths, a summary 1,500: 40 answers stay within the budget, one summary exceeds it.
	if end == nil || !strings.Contains(end.Error(), "over its budget: 0.00159 money") || len(w.summarized) != 1 {
		t.Errorf("after %d turns and %d summaries: %v", turns, len(w.summarized), end)
	}
}

// TestContext_RetriesFailedSummary: turns continue without a summary, and the
// messages are summarized once the model works again.
func TestContext_RetriesFailedSummary(t *testing.T) {
	w := newContextServer(t)
	w.broken = true
	app := openApp(t, fmt.Sprintf(contextApp, w.URL, stableBlocks, mockVectors))
	for range 8 {
		runRow(t, app, "talk", "s1", map[string]any{"message": strings.Repeat("Where is it? ", 8)})
	}
	w.mu.Lock()
	w.broken = false
	w.mu.Unlock()
	runRow(t, app, "talk", "s1", map[string]any{"message": "And now?"})
	if len(w.summarized) != 1 || strings.Count(w.summarized[0], "\nuser: ") < 3 {
		t.Errorf("%d summaries: %q", len(w.summarized), w.summarized)
	}
}

// TestContext_RetrievesParaphrase: with vectors of a real model, a question finds
// a flushed message that uses other words.
func TestContext_RetrievesParaphrase(t *testing.T) {
	server, err := servertest.MiniLM()
	servertest.Need(t, err)
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := newContextServer(t)
	app := openApp(t, fmt.Sprintf(contextApp, w.URL, "{type: retrieval, embedding_model: finder, top_k: 1}",
		fmt.Sprintf(`provider: openai, model_id: all-MiniLM-L6-v2, dimensions: 384, base_url: "http://%s/v1"`, server.Address())))
	for _, text := range []string{
		"My daughter is allergic to peanuts, so please no snacks while we wait.",
		"The rear brake squeals whenever I go down the hill.",
		"We leave for a tour along the river on Saturday morning.",
		"The lamp at the front flickers on cobblestones.",
		"I would like to pay with my company's card, if that works.",
		"The bell is loose and rings on every bump in the road.",
		"My husband's saddle creaks, can one do something about that?",
	} {
		runRow(t, app, "talk", "s1", map[string]any{"message": text + strings.Repeat(" Thank you very much for today.", 6)})
	}
	for question, fact := range map[string]string{
		"Which food must the child not be given?":   "allergic to peanuts",
		"Why is stopping so noisy on steep slopes?": "rear brake squeals",
		"When does our holiday trip begin?":         "on Saturday morning",
	} {
		runRow(t, app, "talk", "s1", map[string]any{"message": question})
		messages := w.requests[len(w.requests)-1]
		newest := string(messages[newestUser(t, messages)])
		if !strings.Contains(newest, fact) || !strings.Contains(newest, question) {
			t.Errorf("%q was sent %s", question, newest)
		}
	}
}
