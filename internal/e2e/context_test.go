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
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// workshopApp has a memory that flushes every few turns; %[1]s is the server of
// the chat models, %[2]s the context blocks, %[3]s what an embedding model needs.
const workshopApp = `
id: workshop
memories:
  - {id: chats, token_limit: 1200, chat_history_token_ratio: 0.25, token_flush_size: 100, context: [%[2]s]}
models:
  - {type: Model, id: clerk, provider: openai, model_id: clerk-1, base_url: "%[1]s/v1", prices: {input: 1, output: 1}}
  - {type: Model, id: scribe, provider: openai, model_id: scribe-1, base_url: "%[1]s/v1", prices: {input: 100, output: 100}}
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
      - {type: LLMInference, id: answer, model: clerk, memory: chats, system_message: You mend bicycles., inputs: [message], outputs: [reply]}
  - id: work
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: Agent, id: serve, model: clerk, memory: chats, system_message: You mend bicycles., tools: [note], inputs: [message], outputs: [reply]}
  - id: keep
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
	stableBlocks = "{type: pinned, text: Open until six.}, {type: summary, model: scribe, max_tokens: 100}"
	allBlocks    = stableBlocks + ", {type: variables}, {type: retrieval, embedding_model: finder, top_k: 2}"
	mockVectors  = "provider: mock, dimensions: 64"
)

// workshop answers as the two models do: the clerk notes what follows "frame",
// the scribe counts the messages that it was given.
type workshop struct {
	*httptest.Server
	mu       sync.Mutex
	requests [][]json.RawMessage // the clerk's messages, as the bytes that came
	folds    []string            // what the scribe was given
	broken   bool                // the scribe answers HTTP 500
}

func newWorkshop(t *testing.T) *workshop {
	w := &workshop{}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	return w
}

func (w *workshop) serve(out http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string
		Messages []json.RawMessage
		Tools    []json.RawMessage
	}
	_ = json.NewDecoder(r.Body).Decode(&req)
	w.mu.Lock()
	defer w.mu.Unlock()
	var last said
	_ = json.Unmarshal(req.Messages[len(req.Messages)-1], &last)
	reply := answer(fmt.Sprintf("Answer %d: %s.", len(w.requests), strings.Repeat("so ", len(w.requests)%7)))
	switch _, frame, found := strings.Cut(last.Content, "frame "); {
	case req.Model == "scribe-1" && w.broken:
		http.Error(out, `{"error":{"message":"out of ink"}}`, http.StatusBadRequest)
		return
	case req.Model == "scribe-1":
		w.folds = append(w.folds, last.Content)
		reply = answer(fmt.Sprintf("Fold %d.", len(w.folds)))
	case found && last.Role == "user" && len(req.Tools) > 0:
		reply = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"note","arguments":"{\"frame\":\"%s\"}"}}]}`, len(w.requests), strings.Fields(frame)[0])
	}
	if req.Model != "scribe-1" {
		w.requests = append(w.requests, req.Messages)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(out, `{"id":"r","choices":[{"index":0,"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, reply)
}

func tell(t *testing.T, app *runtime.App, flow, session string, values map[string]any) map[string]any {
	t.Helper()
	var out map[string]any
	for row, err := range app.Run(t.Context(), flow, one(session, values)) {
		if err != nil || row.Err != nil {
			t.Fatal(err, row.Err)
		}
		out = map[string]any{}
		for v, x := range row.Outputs() {
			out[v.ID] = x
		}
	}
	return out
}

// newestUser is the place of the newest user message of a request.
func newestUser(t *testing.T, messages []json.RawMessage) int {
	t.Helper()
	for i, raw := range slices.Backward(messages) {
		var m said
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

// TestContextKeepsThePrefix: pinned texts and summaries stand with the system
// message and change when messages are flushed, so between two flushes a
// request begins with all bytes of the one before. Variables and what is found
// again stand before the newest user message, so then all but that message is
// the same. Within an agent's loop everything is.
func TestContextKeepsThePrefix(t *testing.T) {
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
			w := newWorkshop(t)
			app := open(t, fmt.Sprintf(workshopApp, w.URL, c.blocks, mockVectors))
			var turns []int64 // of each request
			for turn := range 30 {
				text := fmt.Sprintf("Question %d: where is my %s bicycle?", turn, strings.Repeat("dear ", turn%5))
				if turn%3 == 1 {
					text = fmt.Sprintf("It has the frame KT%d.", turn)
				}
				tell(t, app, c.flow, "s1", map[string]any{"message": text})
				for len(turns) < len(w.requests) {
					turns = append(turns, int64(turn+1))
				}
			}
			flushed := map[int64]bool{}
			flushes := 0
			for e, err := range app.Memory("chats").Events(t.Context(), "s1") {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == memory.EventFlush {
					flushes++
					flushed[e.Turn] = true
				}
			}
			if flushes < 3 || len(w.folds) < 3 {
				t.Fatalf("%d flushes, %d folds", flushes, len(w.folds))
			}
			kept := 0
			for i := 1; i < len(turns); i++ {
				before, now, turn := w.requests[i-1], w.requests[i], turns[i]
				shared := len(before)
				if c.moving && turn != turns[i-1] {
					shared = newestUser(t, before)
				}
				switch {
				case len(now) >= shared && sameBytes(before[:shared], now[:shared]):
					kept++
				case turn == turns[i-1], !flushed[turn] && !flushed[turn-1]:
					t.Errorf("turn %d, request %d: no flush, yet\n%s\ndoes not begin with\n%s", turn, i, now, before[:shared])
				}
			}
			if kept < len(turns)-1-flushes {
				t.Errorf("%d of %d requests kept their prefix, for %d flushes", kept, len(turns)-1, flushes)
			}
		})
	}
}

// TestVariablesOfAConversation: a step sets and reads them, a tool does within
// its turn, a turn that fails sets nothing, and the model is told.
func TestVariablesOfAConversation(t *testing.T) {
	w := newWorkshop(t)
	app := open(t, fmt.Sprintf(workshopApp, w.URL, allBlocks, mockVectors))
	if got := tell(t, app, "keep", "s1", map[string]any{"plan": "Gold", "visits": 3}); fmt.Sprint(got["plan"], " ", got["visits"]) != "Gold 3" {
		t.Errorf("got %v", got)
	}
	if got := tell(t, app, "keep", "s1", map[string]any{"visits": 4}); fmt.Sprint(got["plan"], " ", got["visits"]) != "Gold 4" {
		t.Errorf("an input that is not given: %v", got)
	}
	if got := tell(t, app, "keep", "s2", nil); got["plan"] != nil {
		t.Errorf("another session: %v", got)
	}
	for row, err := range app.Run(t.Context(), "lookup", one("s2", nil)) {
		if want := `step look: session "s2": no value "plan" is stored yet; if that may happen, declare the variable optional: text?`; err != nil || row.Err == nil || row.Err.Error() != want {
			t.Errorf("got %v, %v", row.Err, err)
		}
	}
	tell(t, app, "work", "s1", map[string]any{"message": "It has the frame KT7."})
	if first := string(w.requests[0][1]); !strings.Contains(first, `- plan: Gold\n- visits: 4\n\nThe message:\nIt has the frame KT7.`) {
		t.Errorf("the model was sent %s", first)
	}
	if result := string(w.requests[1][3]); !strings.Contains(result, `{\"frame\":\"KT7.\",\"lamp\":null}`) {
		t.Errorf("the tool answered %s", result)
	}
	w.Close() // the next turn fails, after nothing or after its tool
	for row := range app.Run(t.Context(), "work", one("s1", map[string]any{"message": "It has the frame KT8."})) {
		if row.Err == nil {
			t.Error("a model that is gone answered")
		}
	}
	got, err := app.Memory("chats").Variables(t.Context(), "s1")
	if err != nil || len(got) != 3 || got[0].Name != "frame" || string(got[0].Value) != `"KT7."` || got[0].Turn != 1 {
		t.Errorf("variables %v, %v", got, err)
	}
	if got := tell(t, app, "forget", "s1", nil); got["plan"] != nil {
		t.Errorf("a value that was forgotten: %v", got)
	}
}

// TestWhatAMemoryAsksCosts: the calls of the models that write summaries and
// find messages again are the step's, with their own models' prices.
func TestWhatAMemoryAsksCosts(t *testing.T) {
	w := newWorkshop(t)
	text := strings.ReplaceAll(fmt.Sprintf(workshopApp, w.URL, allBlocks, mockVectors), "  - id: talk\n", "  - id: talk\n    budget: {money: 0.001}\n")
	app := open(t, text)
	var end error
	turns := 0
	row := runtime.Input{Session: "s1", Values: map[string]any{"message": strings.Repeat("Where is it? ", 8)}}
	for _, err := range app.Run(t.Context(), "talk", slices.Values(slices.Repeat([]runtime.Input{row}, 40))) {
		turns++
		end = err
	}
	// One answer costs 15 millionths, one fold 1,500: it is over the budget, and no number of answers in 40 turns is.
	if end == nil || !strings.Contains(end.Error(), "over its budget: 0.00159 money") || len(w.folds) != 1 {
		t.Errorf("after %d turns and %d folds: %v", turns, len(w.folds), end)
	}
}

// TestAScribeThatFails: turns go on, the run's warnings say so once, and the
// messages are folded when it writes again.
func TestAScribeThatFails(t *testing.T) {
	w := newWorkshop(t)
	w.broken = true
	app := open(t, fmt.Sprintf(workshopApp, w.URL, stableBlocks, mockVectors))
	for range 8 {
		tell(t, app, "talk", "s1", map[string]any{"message": strings.Repeat("Where is it? ", 8)})
	}
	w.mu.Lock()
	w.broken = false
	w.mu.Unlock()
	tell(t, app, "talk", "s1", map[string]any{"message": "And now?"})
	if len(w.folds) != 1 || strings.Count(w.folds[0], "\nuser: ") < 3 {
		t.Errorf("%d folds: %q", len(w.folds), w.folds)
	}
}

// TestAParaphraseFindsAFlushedFact: with vectors of a real model a question
// finds what was said long ago in other words.
func TestAParaphraseFindsAFlushedFact(t *testing.T) {
	server, err := servertest.MiniLM()
	servertest.Need(t, err)
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := newWorkshop(t)
	app := open(t, fmt.Sprintf(workshopApp, w.URL, "{type: retrieval, embedding_model: finder, top_k: 1}",
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
		tell(t, app, "talk", "s1", map[string]any{"message": text + strings.Repeat(" Thank you for your patience today.", 6)})
	}
	for question, fact := range map[string]string{
		"Which food must the child not be given?":   "allergic to peanuts",
		"Why is stopping so noisy on steep slopes?": "rear brake squeals",
		"When does our holiday trip begin?":         "on Saturday morning",
	} {
		tell(t, app, "talk", "s1", map[string]any{"message": question})
		messages := w.requests[len(w.requests)-1]
		newest := string(messages[newestUser(t, messages)])
		if !strings.Contains(newest, fact) || !strings.Contains(newest, question) {
			t.Errorf("%q was sent %s", question, newest)
		}
	}
}
