package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/command"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// scripted is a chat server that returns answers in order, a text or the call of a
// tool, and records the requests.
type scripted struct {
	answers  []string // a text; "CALL name {…}" calls a tool
	requests []string // their bodies
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	text := s.answers[min(len(s.requests), len(s.answers)-1)]
	s.requests = append(s.requests, body.String())
	message := map[string]any{"role": "assistant", "content": text}
	if call, ok := strings.CutPrefix(text, "CALL "); ok {
		name, arguments, _ := strings.Cut(call, " ")
		message = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": "call_1", "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}}}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}},
		"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5}})
}

// fixtures is the directory with the inputs of the goldens of package convert.
const fixtures = "../../converters/testdata/"

// TestConvert_ConvertedWorkflowsRun converts a file, runs the document with a scripted
// model and checks the outputs of the flow: it takes the right branch.
func TestConvert_ConvertedWorkflowsRun(t *testing.T) {
	for name, c := range map[string]struct {
		file, input string
		answers     []string
		want        map[string]any
		requests    []string // a part of each request
	}{
		"the answer is there": {file: "xflow/example.yaml", input: `{"request": {"question": "Where?"}}`, answers: []string{`{"response": "Here."}`},
			want: map[string]any{"response": "Here.", "status": "done"}, requests: []string{`"User: Where?"`}},
		"a tool is called": {file: "xflow/example.yaml", input: `{"request": {"question": "Where?"}}`,
			answers: []string{`CALL SEARCH_DOCUMENTS {"query": "cats"}`, `{"response": "Found."}`},
			want:    map[string]any{"response": "Found.", "status": "done"}, requests: []string{`SEARCH_DOCUMENTS`, `http://cats`}},
		"the answer is null": {file: "xflow/example.yaml", input: `{"request": {}}`, answers: []string{`{"response": null}`},
			want: map[string]any{"response": nil, "status": "failed"}, requests: []string{`"User: "`}},
		"the first outcome": {file: "xflow/outcomes.yaml", input: `{"customer": {"name": "Ada"}, "message": "Hm"}`, answers: []string{`{"label": "refund", "confidence": 0.2}`},
			want: map[string]any{"route": "person", "reason": "the model is not sure", "note": nil, "approved": nil}},
		"arithmetic": {file: "xflow/outcomes.yaml", input: `{"customer": {"name": "Ada"}, "message": "Hm"}`, answers: []string{`{"label": "refund", "confidence": 0.9, "amount": 90}`},
			want: map[string]any{"route": "person", "approved": false, "note": "Ada: person"}},
		"the tier": {file: "xflow/outcomes.yaml", input: `{"customer": {"name": "Ada", "tier": "gold"}, "message": "Hm"}`, answers: []string{`{"label": "refund", "confidence": 0.9}`},
			want: map[string]any{"route": "person", "approved": false}},
		"a pattern": {file: "xflow/outcomes.yaml", input: `{"customer": {"name": "Ada"}, "message": "Hm"}`, answers: []string{`{"label": "damage", "confidence": 0.9}`},
			want: map[string]any{"route": "automatic", "approved": true, "ticket": map[string]any{"kind": "refund", "tags": []any{"a", "b"}, "priority": 2.0}}},
		"an end": {file: "xflow/outcomes.yaml", input: `{"customer": {"name": "Ada"}, "message": "Hm"}`, answers: []string{`{"label": "praise", "confidence": 0.9, "urgent": true}`},
			want: map[string]any{"route": nil, "label": "praise"}},
		"none holds": {file: "xflow/outcomes.yaml", input: `{"customer": {"name": "Ada"}, "message": "Hm"}`, answers: []string{`{"label": "praise", "confidence": 0.9}`},
			want: map[string]any{"route": "thanks"}},
		"a circle": {file: "xflow/cycle.yaml", input: `{"topic": "cats"}`,
			answers: []string{`{"text": "one"}`, `{"score": 5, "advice": "longer"}`, `{"text": "two"}`, `{"score": 9}`},
			want:    map[string]any{"text": "two", "score": 9.0, "status": "good"}, requests: []string{`Write about cats. "`, `Judge: one`, `Advice: longer`, `Judge: two`}},
		"a circle that is left": {file: "xflow/cycle.yaml", input: `{"topic": "cats"}`, answers: []string{`{"text": "one"}`, `{"score": 1}`},
			want: map[string]any{"text": "one", "status": nil}},
		"a state that leads to itself": {file: "xflow/self.yaml", input: `{}`, answers: []string{`{"last": "a", "finished": false}`, `{"last": "b", "finished": true}`},
			want: map[string]any{"last": "b", "finished": true}, requests: []string{`after nothing`, `after a`}},
		"a switch": {file: "xflow/switch.yaml", input: `{"items": [{"name": "xa", "price": 200}], "note": "n"}`, answers: []string{""}, want: map[string]any{"size": "dear"}},
		"default":  {file: "xflow/switch.yaml", input: `{"items": [{"name": "ya", "price": 200}], "note": "n"}`, answers: []string{""}, want: map[string]any{"size": "few", "first": "ya"}},
		"states alone": {file: "xflow/states.yaml", input: `{"question": "Well?"}`, answers: []string{"I am sorry."},
			want: map[string]any{"response": "I am sorry.", "status": "failed"}},
		"one memory in two states": {file: "xflow/anchors.yaml", input: `{"question": "Well?"}`, answers: []string{"A1", "A2", "A3"},
			want: map[string]any{"response": "A3"}, requests: []string{"", `"A1"},{"role":"user","content":"Again: A1"`}},
		"data an agent made": {file: "xflow/two_agents.yaml", input: `{"question": "Well?"}`, answers: []string{`{"answer": "Yes, so it is", "parts": [1, 2.5]}`},
			want: map[string]any{"verdict": "good", "parts": []any{1.0, 2.5}}},
		"too much of it": {file: "xflow/two_agents.yaml", input: `{"question": "Well?"}`, answers: []string{`{"answer": "Yes", "parts": [9, 2.5]}`},
			want: map[string]any{"verdict": "bad"}},
		"none of it": {file: "xflow/two_agents.yaml", input: `{"question": "Well?"}`, answers: []string{`{"answer": null, "parts": []}`},
			want: map[string]any{"verdict": "bad", "answer": nil}},
		"names": {file: "xflow/names.yaml", input: `{"in_": "X", "user_name": "Y"}`, answers: []string{`{"the answer": "42", "status": "s", "in": "i"}`},
			want: map[string]any{"weird_key": "42", "answer": "é\u2028 yes: [no] #1", "flag": true, "n": -3.0}, requests: []string{`In X by Y costs {x} ${HOME}`}},
		"a constant": {file: "xflow/functions.yaml", input: `{"applicant": {"name": "Bob", "age": 3}}`, answers: []string{""},
			want: map[string]any{"verdict": "known", "over": nil}},
		"a function": {file: "xflow/functions.yaml", input: `{"applicant": {"name": "Al", "age": 20}}`, answers: []string{""},
			want: map[string]any{"verdict": "en:adult", "over": 2.0}},
		"no function": {file: "xflow/functions.yaml", input: `{"applicant": {"name": "Al", "age": 2}}`, answers: []string{""},
			want: map[string]any{"verdict": "child", "adult": false, "oops": nil}},
		"the first way": {file: "xflow/branches.yaml", input: `{"kind": "a", "only_a": 4}`, answers: []string{""},
			want: map[string]any{"a": 5.0, "b": nil, "sum_": 15.0, "r": "late"}},
		"the second way": {file: "xflow/branches.yaml", input: `{"kind": "b", "only_b": {"x": 1}}`, answers: []string{""},
			want: map[string]any{"a": nil, "b": 1.0, "sum_": 1.0, "r": "late"}},
		"neither way": {file: "xflow/branches.yaml", input: `{"kind": "c"}`, answers: []string{""}, want: map[string]any{"sum_": 10.0}},
		"dollars": {file: "xflow/dollars.yaml", input: `{"p": "7"}`, answers: []string{`{"r": "ok"}`},
			want: map[string]any{"r": "ok", "lit": "a $ b", "d": "$"}, requests: []string{`Price $7 ${`}},
		"expressions": {file: "xflow/expressions.yaml", answers: []string{""},
			input: `{"score": 85, "lines": [{"name": "a", "qty": 2, "price": 3.5}, {"name": "b", "qty": 1, "price": 200}], "user": {"first": "Ädа", "tier": "gold"}, "text": "A B"}`,
			want: map[string]any{"level": "B", "total": 207.0, "names": "a", "first": "a", "big": true, "greet": "Hello Ädа !", "best": "b",
				"sorted": []any{"b", "a"}, "initials": "Ä.", "clean": "a_b", "flags": map[string]any{"vip": true, "n": 2.0}}},
		"names of functions": {file: "xflow/reserved.yaml", input: `{}`, answers: []string{`{"not": "n", "filter": "f", "答え": "a"}`},
			want: map[string]any{"not_": "n", "filter_": "f", "len_": 3.0, "null": "x"}, requests: []string{`3 s z u v 1 2 3 4`}},
		"two types": {file: "xflow/conflict.yaml", input: `{}`, answers: []string{`{"v": "text", "item": {"a": "1"}}`, `{"v": 3, "w": "early"}`, `{"w": "late"}`},
			want: map[string]any{"v": "text", "w": "late", "item": map[string]any{"a": "x", "c": true}, "hex": 16.0}, requests: []string{``, `"content":"text"`}},
		"an answer that stays": {file: "xflow/maybe.yaml", input: `{"q": "x", "stop": true}`, answers: []string{"A1", "A2"}, want: map[string]any{"response": "A1"}},
		"an answer that is replaced": {file: "xflow/maybe.yaml", input: `{"q": "x", "stop": false}`, answers: []string{"A1", "A2"},
			want: map[string]any{"response": "A2"}, requests: []string{`You are a helpful AI Assistant.`, `After: A1`}},
		"counters": {file: "xflow/counters.yaml", input: `{"n": 0}`, answers: []string{""},
			want: map[string]any{"n": 6.0, "log": []any{"x", "x", "x", "x"}, "done": "n=4"}},
		"agents in a row": {file: "xflow/support.yaml", input: `{"customer": {"id": "c", "name": "Ada"}, "message": "Pay!"}`,
			answers: []string{`{"category": "billing", "urgency": 2, "summary": "Money"}`, `{"reply": "Soon.", "refund": 20}`},
			want:    map[string]any{"reply": "Soon.", "closed": true, "escalated": nil}, requests: []string{`Customer Ada (standard) writes: Pay!`, `"content":"Money"`}},
		"an agent transfers": {file: "xflow/support.yaml", input: `{"customer": {"id": "c", "name": "Ada", "tier": "gold"}, "message": "Help"}`,
			answers: []string{`{"category": "other", "urgency": 1}`, `{"reply": "No idea", "resolved": false}`},
			want:    map[string]any{"reply": "A person will call you.", "closed": true, "escalated": true}},
		"schemas": {file: "xflow/schemas.yaml", input: `{"text": "Two"}`, answers: []string{`{"lines": [{"sku": "a", "qty": 7}, {"sku": "b", "qty": 4}], "customer": {"name": "Ada"}, "speed": "fast", "day": 3}`},
			want: map[string]any{"kind": "big", "speed": "fast", "day": 3.0, "gift": nil}, requests: []string{`"qty"`}},
		"another way through schemas": {file: "xflow/schemas.yaml", input: `{"text": "Two"}`, answers: []string{`{"lines": [{"sku": "a", "qty": 1}], "gift": {"sku": "c", "qty": 1}, "customer": {"name": "Ada", "vip": true}, "speed": "fast", "day": 3}`},
			want: map[string]any{"kind": "gift", "customer": map[string]any{"name": "Ada", "vip": true}}},
		"JSON": {file: "xflow/numbers.json", input: `{}`, answers: []string{""}, want: map[string]any{"a": 1000.0, "b": 0.01, "c": "1e3"}},
		"an older AI Refinery": {file: "airefinery/older.yaml", input: `"Hello"`, answers: []string{"Good day."}, want: map[string]any{"answer": "Good day."},
			requests: []string{`{not} this:\nHello`}},
		"a memory that is not declared": {file: "airefinery/contexts.yaml", input: `"Hello"`, answers: []string{`CALL A {"query": "Q"}`, "Hi.", "Good day."},
			want: map[string]any{"answer": "Good day."}, requests: []string{`You assign`, `You are a bot.  Q {env[x]} {date}`, `Hi.`}},
		"AI Refinery": {file: "airefinery/project.yaml", input: `"Hello"`, answers: []string{`CALL Support_Agent {"query": "Hello"}`, "Hi.", "Good day."},
			want: map[string]any{"answer": "Good day."}, requests: []string{`You assign`, `service desk`, `Hi.`}},
		"an agent that a program answers": {file: "airefinery/desk.yaml", input: `"Hello"`, answers: []string{`CALL Event_Planner {"query": "Plan"}`, `CALL Stock {"query": "How many?"}`, "There are some.", "Good day."},
			want: map[string]any{"answer": "Good day."}, requests: []string{`Never promise`, `1. Look up`, `from a program`, `There are some.`}},
		"a SuperAgent alone": {file: "airefinery/single.yaml", input: `"Hello"`, answers: []string{`CALL Researcher {"query": "Q"}`, "Facts.", "Good day."},
			want: map[string]any{"answer": "Good day."}, requests: []string{`1. Ask for the audience.`, `Collect facts about Q`, `Facts.`}},
		"an AI service": {file: "langchain4j/Chat.java", input: `{"words": 5, "question": "Why?"}`, answers: []string{"Good day."}, want: map[string]any{"answer": "Good day."},
			requests: []string{"Answer in 5 words: Why?"}},
		"a graph": {file: "langgraph/chatbot.py", input: `"Hello"`, answers: []string{"Good day."}, want: map[string]any{"answer": "Good day."},
			requests: []string{"You are brief."}},
		"a bare memory_config": {file: "airefinery/example.yaml", input: `"Hello"`, answers: []string{"Good day."}, want: map[string]any{"answer": "Good day."}},
		"a bare memory":        {file: "xflow/memory.yaml", input: `"Hello"`, answers: []string{"Good day."}, want: map[string]any{"answer": "Good day."}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scripted{answers: c.answers}
			row := runConverted(t, server, c.file, c.input)
			for key, want := range c.want {
				if got, ok := row[key]; !ok || text(got) != text(want) {
					t.Errorf("%s is %v, want %v; the row: %v", key, row[key], want, row)
				}
			}
			for i, part := range c.requests {
				if i >= len(server.requests) || !strings.Contains(unescaped(server.requests[i]), part) {
					t.Errorf("request %d does not hold %s: %v", i+1, part, server.requests)
				}
			}
		})
	}
}

// text returns a value of a row as text.
func text(v any) string {
	if m, ok := v.(map[string]any); ok && m["blocks"] != nil {
		v = m["blocks"].([]any)[0].(map[string]any)["content"]
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// unescaped returns a request with its strings decoded.
func unescaped(body string) string {
	return strings.ReplaceAll(strings.ReplaceAll(body, `": "`, `":"`), `}, {`, `},{`)
}

// runConverted converts a file, checks the document, runs it once and returns the row.
func runConverted(t *testing.T, server http.Handler, file, input string) map[string]any {
	t.Helper()
	at := httptest.NewServer(server)
	defer at.Close()
	t.Setenv("OPENAI_API_KEY", "sk-test")
	t.Setenv("OPENAI_BASE_URL", at.URL+"/v1")
	t.Setenv("NO_PROXY", "*")
	folder := t.TempDir()
	app := filepath.Join(folder, "app.qtype.yaml")
	path, err := filepath.Abs(fixtures + file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	tool := filepath.Join(folder, "tool")
	program := "#!/bin/sh\nsed 's/.*query\": *\"\\([a-z]*\\)\".*/{\"documents\": [\"http:\\/\\/\\1\"]}/'\n"
	if err := os.WriteFile(tool, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	call(t, "convert", strings.Split(file, "/")[0], path, "-o", app)
	if out, code := call(t, "validate", "--strict", app); code != cli.ExitDone && strings.Count(out, "error[") != strings.Count(out, "error[QT443]") { // a memory that is small in the original too
		t.Fatalf("the document is not valid:\n%s", out)
	}
	args := []string{"run", app, "-i", input, "--session", "s", "--ephemeral"}
	document, err := os.ReadFile(app)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SEARCH_DOCUMENTS", "LOOK", "NOW", "SHIP", "get_orders"} {
		if bytes.Contains(document, []byte("id: "+name+"\n")) {
			args = append(args, "--client-tool", name+"=./tool")
		}
	}
	args = append(args, answered(t, folder, document)...)
	out, code := call(t, args...)
	var row map[string]any
	if err := json.Unmarshal([]byte(out), &row); err != nil || code != cli.ExitDone {
		t.Fatalf("exit status %d, %v: %s", code, err, out)
	}
	return row
}

// answered returns the flags for the agents of a project that a program answers.
func answered(t *testing.T, folder string, document []byte) []string {
	t.Helper()
	agent := filepath.Join(folder, "agent")
	if err := os.WriteFile(agent, []byte("#!/bin/sh\ncat >/dev/null\necho '{\"answer\": \"from a program\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, found := range regexp.MustCompile(`--client-tool (\w+_client)=COMMAND`).FindAllSubmatch(document, -1) {
		flags = append(flags, "--client-tool", string(found[1])+"="+agent)
	}
	return flags
}

// TestConvert_AgentsRunOffline runs each flow of the converted AI Refinery projects that
// takes a request, without keys and servers.
func TestConvert_AgentsRunOffline(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	files, err := filepath.Glob(fixtures + "airefinery/*.golden.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	flow := regexp.MustCompile(`(?m)^  - id: (\S+)(?:\n    .*)*?\n    inputs: \[(query|question)\]`)
	for _, path := range files {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(document, []byte("type: MCPTool")) { // needs its server
			continue
		}
		_, flows, _ := bytes.Cut(document, []byte("\nflows:\n"))
		tools := answered(t, t.TempDir(), document)
		for _, found := range flow.FindAllSubmatch(flows, -1) {
			id, input := string(found[1]), string(found[2])
			out, code := call(t, append([]string{"run", path, "-f", id, "-i", `{"` + input + `": "Hello?"}`, "--session", "s", "--ephemeral"}, tools...)...)
			if code != cli.ExitDone || !strings.Contains(out, `"error":null`) {
				t.Errorf("%s: flow %s: exit status %d: %s", path, id, code, out)
			}
		}
	}
}

// call runs a command line in this process and returns its standard output.
func call(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = command.Execute(context.Background(), table(), &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}}, args)
	if code == cli.ExitUsage || code == cli.ExitFailed && args[0] == "run" {
		t.Logf("%v: %s", args, stderr.String())
	}
	return stdout.String(), code
}
