package evalrun_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// desk is an application of an agent that cancels orders.
const desk = `id: app
models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {after: tool, text: It is done.}
      - {match: 'order (\d+)', tool_calls: [{name: cancel, arguments: {number: "$1"}}]}
      - {match: twice, tool_calls: [{name: cancel, arguments: {number: "7"}}, {name: cancel, arguments: {number: "8"}}]}
      - {match: boom, error: no answer}
      - {text: Which order?}
  - {type: Model, id: referee, provider: mock, rules: [{match: '"conversation":.*"calls":.*cancel', text: '{"score": 1, "reason": "it has cancelled"}'}, {text: '{"score": 0, "reason": "nothing"}'}]}
memories: [{id: notes}]
tools:
  - {type: ClientTool, id: cancel, name: cancel, description: Cancels an order., inputs: [{id: number, type: text}], outputs: [{id: state, type: text}]}
flows:
  - id: talk
    variables: [{id: question, type: ChatMessage}, {id: shop, type: text}, {id: answer, type: ChatMessage}]
    inputs: [question, shop]
    outputs: [answer, shop]
    steps: [{type: Agent, id: act, model: clerk, memory: notes, tools: [cancel], inputs: [question], outputs: [answer]}]
`

const deskState = `state: {orders: [{number: '7', state: new}, {number: '8', state: sent}]}
tools:
  - {id: cancel, table: orders, where: {number: $number, state: new}, set: {state: cancelled}}
  - {id: cancel, table: orders, where: {number: $number}, error: too late}
`

// deskFolder writes the application and an evaluation.
func deskFolder(t *testing.T, app, evaluation string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(app), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype-eval.yaml"), []byte(evaluation), 0o600))
	return dir
}

// TestUsers_Checks has users who are played by rules, each with one check.
func TestUsers_Checks(t *testing.T) {
	const rules = `inputs: {shop: books}, opening: Please cancel., rules: [{match: Which, text: order 7}, {match: boom, error: gone}, {text: 'Thanks. [END]'}]`
	for user, want := range map[string]string{
		"checks: {effects: [{id: cancel, arguments: {number: '7'}}], calls: [{id: cancel, calls: 1}], call_order: [cancel], contains: [It is done], not_contains: [sorry], expect: ['answer.text contains \"done\"'], state: [{table: orders, where: {state: cancelled}, rows: 1}]}": "",
		"checks: {effects: []}":                                     `orders lacks {"number":"7","state":"new"}; orders has {"number":"7","state":"cancelled"}`,
		"checks: {calls: [{id: cancel, calls: 0}]}":                 "tool cancel was called 1 time, not 0",
		"checks: {calls: [{id: cancel, arguments: {number: '8'}}]}": "no call of tool cancel has these arguments",
		"checks: {state: [{table: orders, where: {state: new}}]}":   "table orders has 0 rows with these values, not 1 or more",
		"checks: {contains: [sorry]}":                               `the application has not said "sorry"`,
		"checks: {not_contains: [is done]}":                         `the application has said "is done"`,
		"checks: {expect: ['answer.text contains \"sorry\"']}":      `the condition answer.text contains "sorry" is false`,
		"max_turns: 1": "the user has not ended the conversation in 1 turn",
		"state: {orders: [{number: '7', state: sent}]}, checks: {contains: [It is done], effects: []}": "",
	} {
		dir := deskFolder(t, desk, deskState+"users: [{id: ada, "+rules+", "+user+"}]\n")
		r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml"})
		if err != nil {
			t.Fatalf("%s: %s", user, err)
		}
		s := r.Results[0].Scores["checks"]
		if s.Reason != want || (s.Value == 1) != (want == "") || s.Error != "" {
			t.Errorf("%s: got %+v, want %q", user, s, want)
		}
	}
}

// TestUsers_Conversation checks what a report has of conversations, with trials, variants and a judge.
func TestUsers_Conversation(t *testing.T) {
	dir := deskFolder(t, desk, deskState+`trials: 2
users:
  - {id: ada, inputs: {shop: books}, opening: Please cancel., rules: [{match: Which, text: order 7}, {text: '[END]'}], checks: {effects: [{id: cancel, arguments: {number: '7'}}]}}
  - {id: bob, inputs: {shop: books}, rules: [{match: '^$', text: both twice}, {text: 'Bye. [END]'}], checks: {effects: [{id: cancel, arguments: {number: '7'}}], calls: [{id: cancel, calls: 2}]}}
  - {id: eve, inputs: {shop: books}, opening: boom, rules: [{text: '[END]'}]}
  - {id: kim, inputs: {shop: books}, opening: Please cancel., rules: [{error: gone}]}
metrics: [{type: checks}, {type: judge, output: answer, model: referee, rubric: The order is cancelled.}, {type: tokens}]
variants: [{id: base}, {id: other, inputs: {shop: toys}}]
`)
	r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	score := func(s *evalrun.Score) string {
		text, err := json.Marshal(s)
		testkit.Must(t, err)
		return string(text)
	}
	var got []string
	for _, one := range r.Results {
		var user string
		testkit.Must(t, json.Unmarshal(one.Inputs["user"], &user))
		said, err := json.Marshal(one.Said)
		testkit.Must(t, err)
		got = append(got, fmt.Sprintf("%s %s %s %d: %s %s %v %s", one.Variant, user, one.Inputs["shop"], one.Trial, said, score(one.Scores["checks"]), one.Scores["judge"].Value, one.Error))
	}
	const ada = `[{"role":"user","text":"Please cancel."},{"role":"application","text":"Which order?"},{"role":"user","text":"order 7"},` +
		`{"role":"application","text":"It is done.","calls":[{"tool":"cancel","arguments":"{\"number\":\"7\"}","result":"{\"number\":\"7\",\"state\":\"cancelled\"}"}]}] {"value":1} 1 `
	if want := `base ada "books" 1: ` + ada; got[0] != want {
		t.Errorf("got\n%s\nwant\n%s", got[0], want)
	}
	if want := `other ada "toys" 2: ` + ada; got[9] != want {
		t.Errorf("got\n%s\nwant\n%s", got[9], want)
	}
	if !strings.Contains(got[2], "error: tool cancel: too late") || !strings.Contains(got[2], `{"role":"user","text":"Bye."}] {"value":1} 1`) {
		t.Error(got[2])
	}
	if !strings.Contains(got[4], `{"value":0,"reason":"the row failed"} 0 `) || !strings.Contains(got[4], "no answer") {
		t.Error(got[4])
	}
	if !strings.Contains(got[6], `{"value":0,"error":"the simulated user failed"} 0 the simulated user: `) {
		t.Error(got[6])
	}
	if s := r.Variants[0].Metrics["checks"]; s.Count != 6 || s.Errors != 0 || s.Mean < 0.66 || s.Mean > 0.67 {
		t.Errorf("%+v", s)
	}
}

// TestUsers_Recordings records conversations with models of a server once, and replays them without it.
func TestUsers_Recordings(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		testkit.Must(t, json.NewDecoder(r.Body).Decode(&req))
		n, last := calls.Add(1), req.Messages[len(req.Messages)-1]
		text := fmt.Sprintf("Order %s is on its way (%d).", last.Content, n)
		switch {
		case req.Model == "customer" && last.Content == "(The conversation begins. Write the first message.)":
			text = "Where is order 7?"
		case req.Model == "customer":
			text = "Thank you! [END]"
		case req.Model == "referee":
			text = `{"score": 0.5, "reason": "a guess"}`
		}
		w.Header().Set("Content-Type", "application/json")
		answer, err := json.Marshal(text)
		testkit.Must(t, err)
		fmt.Fprintf(w, `{"choices": [{"message": {"role": "assistant", "content": %s}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}`, answer)
	}))
	model := func(id string) string {
		return fmt.Sprintf("  - {type: Model, id: %s, provider: openai, model_id: %[1]s, inference_params: {api: chat_completions}, auth: key, base_url: %s}\n", id, server.URL)
	}
	app := "id: app\nauths: [{type: api_key, id: key, api_key: sk-secret-of-the-test}]\nmodels:\n" + model("clerk") + model("customer") + model("referee") + `memories: [{id: notes}]
flows:
  - id: talk
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: clerk, memory: notes, inputs: [question], outputs: [answer]}]
`
	dir := deskFolder(t, app, `recordings: app.recordings.json
trials: 2
users: [{id: ada, model: customer, goal: Learn where order 7 is., facts: [Your name is Ada.], temper: impatient, checks: {contains: [is on its way]}}]
metrics: [{type: checks}, {type: judge, model: referee, rubric: The answer is right.}, {type: tokens}]
`)
	run := func(mode recording.Mode) (*evalrun.Report, string) {
		t.Helper()
		r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml", Record: mode})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range r.Results {
			one.Seconds = 0
			for _, call := range one.Trace {
				call.Seconds = 0
			}
		}
		text, err := json.Marshal(r.Results)
		testkit.Must(t, err)
		return r, string(text)
	}
	recorded, first := run(recording.Record)
	if s := recorded.Variants[0].Metrics; s["checks"].Mean != 1 || s["judge"].Mean != 0.5 || s["tokens"].Mean != 12 || calls.Load() != 8 {
		t.Fatalf("%+v, %d calls: %s", s, calls.Load(), first)
	}
	server.Close()
	if _, again := run(recording.Replay); again != first {
		t.Errorf("the replay differs:\n%s\n%s", again, first)
	}
	file, err := os.ReadFile(filepath.Join(dir, "app.recordings.json"))
	testkit.Must(t, err)
	if strings.Contains(string(file), "sk-secret") {
		t.Error("the recordings have the key")
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(strings.Replace(app, "memory: notes,", "memory: notes, system_message: Be brief.,", 1)), 0o600))
	if r, _ := run(recording.Replay); !strings.Contains(r.Results[0].Error, "the request to model clerk differs from its recording") {
		t.Errorf("a changed prompt is replayed: %+v", r.Results[0])
	}
}

// TestUsers_Examples runs the users of the examples, who find a planted mistake in each application.
func TestUsers_Examples(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	for name, mistake := range map[string][3]string{
		"agent_tools": {`{number: "$1"}`, `{number: "8813"}`, "no call of tool find_order has these arguments"},
		"approval":    {"'(?i)refund order (\\d+)'", "'(?i)(return|refund)'", "tool refund was called 1 time, not 0"},
	} {
		app, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", name, "app.qtype.yaml"))
		testkit.Must(t, err)
		evaluation, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", name, "app.qtype-eval.yaml"))
		testkit.Must(t, err)
		r, err := evaluate(t, deskFolder(t, string(app), string(evaluation)), evalrun.Config{Path: "app.qtype-eval.yaml"})
		if err != nil || r.Failed() || r.Rows != 3 {
			t.Fatalf("%s: %v, %+v", name, err, r)
		}
		wrong := strings.Replace(string(app), mistake[0], mistake[1], 1)
		r, err = evaluate(t, deskFolder(t, wrong, string(evaluation)), evalrun.Config{Path: "app.qtype-eval.yaml"})
		if err != nil || wrong == string(app) || !r.Failed() || r.Variants[0].Metrics["checks"].Mean == 1 {
			t.Fatalf("%s: the mistake is not found: %v, %+v", name, err, r)
		}
		var reasons []string
		for _, one := range r.Results {
			reasons = append(reasons, one.Scores["checks"].Reason)
		}
		if text := strings.Join(reasons, "\n"); !strings.Contains(text, mistake[2]) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestUsers_Reasons: reports name the checks that users do not meet, and the users.
func TestUsers_Reasons(t *testing.T) {
	const users = `users:
  - {id: ada, inputs: {shop: books}, rules: [{match: '^$', text: Hello}, {text: 'Bye. [END]'}], checks: {calls: [{id: cancel, calls: 1}]}}
  - {id: bob, inputs: {shop: books}, rules: [{match: '^$', text: Hello}, {text: 'Bye. [END]'}]}
metrics: [{type: checks, min: 0.9}]
`
	dir := deskFolder(t, desk, deskState+users)
	r, err := evaluate(t, dir, evalrun.Config{Path: "app.qtype-eval.yaml"})
	testkit.Must(t, err)
	if want := "base: checks is 0.500, less than 0.900: tool cancel was called 0 times, not 1"; len(r.Violations) != 1 || r.Violations[0] != want {
		t.Errorf("got %q, want %q", r.Violations, want)
	}
	var page strings.Builder
	testkit.Must(t, r.Markdown(&page))
	if want := "- user ada: tool cancel was called 0 times, not 1\n"; !strings.Contains(page.String(), want) {
		t.Errorf("got %s, want %s", page.String(), want)
	}
}
