package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/spec/diag"
)

// subAgentApp has an agent with an agent as a tool, with the same memory; %[1]s is the model
// server, %[2]s are keys of the tool.
const subAgentApp = `id: desk
models:
  - {type: Model, id: first, provider: openai, model_id: first, base_url: "%[1]s/v1"}
  - {type: Model, id: second, provider: openai, model_id: second, base_url: "%[1]s/v1"}
memories: [{id: talk}]
tools: [{type: FlowTool, id: research, flow: look_up, description: Researches a topic%[2]s}]
flows:
  - id: look_up
    variables: [{id: topic, type: text}, {id: report, type: text}]
    inputs: [topic]
    outputs: [report]
    steps:
      - {type: Agent, id: search, model: second, memory: talk, inputs: [topic], outputs: [report]}
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: Agent, id: help, model: first, memory: talk, tools: [research], inputs: [message], outputs: [answer]}
`

// researchModel calls the sub-agent for each question.
func researchModel(n int, r request) string {
	if last := r.Messages[len(r.Messages)-1]; r.Model == "first" && last.Role == "user" {
		return callMessage("", "look_up", fmt.Sprintf(`{"topic": %q}`, "about "+last.Content))
	}
	return assistantMessage(fmt.Sprint(r.Model, " ", n))
}

// A sub-agent has the session that its tool declares.
func TestFlowTool_Session(t *testing.T) {
	tests := []struct {
		session string
		want    string   // what the second call of the sub-agent's model gets
		stored  []string // sessions of the memory
	}{
		{"own", "user: about one | assistant: second 2 | user: about two", []string{"s", "s/research"}},
		{"call", "user: about two", []string{"s"}},
	}
	for _, tt := range tests {
		s := startModelServer(t, researchModel)
		app := openApp(t, fmt.Sprintf(subAgentApp, s.URL, ", session: "+tt.session))
		if got := say(t, app, "one"); got != "first 3" {
			t.Errorf("%s: the answer is %q", tt.session, got)
		}
		say(t, app, "two")
		if got := transcript(s.received()[4].Messages); got != tt.want {
			t.Errorf("%s: the sub-agent was sent %s, want %s", tt.session, got, tt.want)
		}
		var stored []string
		sessions, err := app.Memory("talk").Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range sessions {
			stored = append(stored, one.Session)
		}
		if !slices.Equal(stored, tt.stored) {
			t.Errorf("%s: the memory has the sessions %q, want %q", tt.session, stored, tt.stored)
		}
		want := []string{"s"}
		if tt.session == "own" {
			want = tt.stored
		}
		if got := app.SessionsOf("s"); !slices.Equal(got, want) {
			t.Errorf("%s: a conversation has the sessions %q, want %q", tt.session, got, want)
		}
	}
}

// A sub-agent that exceeds the budget of its tool ends; its caller gets an error and answers.
func TestFlowTool_Budget(t *testing.T) {
	s := startModelServer(t, researchModel)
	app := openApp(t, fmt.Sprintf(subAgentApp, s.URL, ", session: call, budget: {tokens: 10}"))
	if got := say(t, app, "one"); got != "first 3" {
		t.Errorf("the answer is %q", got)
	}
	last := s.received()[2].Messages
	want := "error: tool research: flow look_up: tool research is over its budget: 15 tokens, 10 are allowed"
	if got := last[len(last)-1].Content; got != want {
		t.Errorf("the caller got %q, want %q", got, want)
	}
}

// An agent that repeats a tool call with the same result gets a note, and then fails.
func TestAgent_RepeatedCalls(t *testing.T) {
	repeat := func(_ int, r request) string {
		if r.Model == "second" {
			return assistantMessage("nothing found")
		}
		return callMessage("", "look_up", `{"topic":"gold"}`)
	}
	s := startModelServer(t, repeat)
	text := fmt.Sprintf(subAgentApp, s.URL, ", session: call")
	want := `step help: the model made the tool call look_up({"topic":"gold"}) 4 times with the same result, but the limit is 3 (max_repeated_calls)`
	if got := say(t, openApp(t, text), "one"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for n, r := range s.received() {
		last := r.Messages[len(r.Messages)-1]
		noted := strings.HasSuffix(last.Content, "note: this call was made 3 times with the same result; do not repeat it, answer or do something else")
		if noted != (n == 6) { // the fourth request of the first model
			t.Errorf("request %d ends with %q", n, last.Content)
		}
	}
	polled := strings.Replace(text, "tools: [research],", "tools: [research], repeatable: [research], max_tool_executions: 5,", 1)
	want = "step help: the model requested 7 tool calls, but the limit is 5 (max_tool_executions), and it gave no answer without more calls"
	if got := say(t, openApp(t, polled), "one"); got != want {
		t.Errorf("a repeatable tool: got %q, want %q", got, want)
	}
}

// What could not run is a diagnostic at its reference.
func TestSubAgents_Diagnostics(t *testing.T) {
	sub := func(tool, agent string) string {
		return strings.Replace(fmt.Sprintf(subAgentApp, "http://localhost", tool), "tools: [research],", agent, 1)
	}
	hand := func(old, text string) string {
		return strings.Replace(fmt.Sprintf(handoffApp, "http://localhost", ""), old, text, 1)
	}
	tests := []struct{ text, want string }{
		{sub("", "tools: [research],"), `QT493 the step "search" uses the memory "talk" in the session of agent "help", which is in use during the call`},
		{sub(", session: own", "tools: [research],"), ""},
		{sub(", session: own", "handoffs: [look_up],"), `QT493 the step "search" uses the memory "talk" in the session of agent "help", which is in use during the call`},
		{sub(", session: own", "tools: [research], handoffs: [main],"), "QT430 flow cycle: main → main"},
		{sub(", session: own", "tools: [], repeatable: [research],"), `QT431 agent "help" does not have the tool "research"`},
		{sub(", session: own", "tools: [research], max_repeated_calls: 1,"), "QT"},
		{sub(", session: mine", "tools: [research],"), "QT"},
		{hand("handoffs: [billing]", "handoffs: [billing, billing]"), `QT492 agent "triage" lists the flow "billing" twice`},
		{hand("name: now", "name: hand_back"), `QT492 the tool "now" of step "bill" has the name "hand_back", which is reserved for handoffs`},
		{hand("type: Agent, id: bill", "type: LLMInference, id: bill"), "QT"},
		{hand("handoffs: [billing]", "handoffs: [bilings]"), "QT"},
		{hand("inputs: [question]", "inputs: [question, answer]"), `QT492 agent "triage" cannot transfer to the flow "billing": its input answer gets no value: all inputs but the first must be optional`},
	}
	for _, tt := range tests {
		_, list := qtype.Check(t.Context(), writeFile(t, tt.text))
		got := ""
		if i := slices.IndexFunc(list, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
			got = list[i].Code + " " + list[i].Message
		}
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
