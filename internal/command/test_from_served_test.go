package command

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// TestTestMaker makes a test of a conversation of a server: of its second turn alone, without the address of a person, and it passes in the
// folder of the document.
func TestTestMaker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(`id: app
models: [{type: Model, id: m, provider: mock, rules: [{match: hello, text: Hello!}, {text: "I cannot, $$5."}]}]
memories: [{id: chat}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: q, type: ChatMessage}, {id: a, type: ChatMessage}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: reply, model: m, memory: chat, inputs: [q], outputs: [a]}]
`), 0o600))
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, app.Close(t.Context())) }()
	for _, q := range []string{"hello", "refund ada@shop.test"} {
		for r, err := range app.Run(t.Context(), "talk", slices.Values([]runtime.Input{{Session: "s", Columns: []string{"q"}, Cells: []any{q}}})) {
			testkit.Must(t, err)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	text, err := testMaker(path)(t.Context(), app, "chat", "s", 0)
	testkit.Must(t, err)
	for _, want := range []string{"# 1 of 2 turns", "# replaced in the conversation: 1 e-mail address\n", "\napp: app.qtype.yaml\n", "q: refund person1@example.com\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	file := filepath.Join(filepath.Dir(path), "s-2.qtype-test.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	reports, err := qtype.Test(t.Context(), []string{file}, qtype.TestOptions{})
	testkit.Must(t, err)
	if len(reports) != 1 || len(reports[0].Outcomes) != 1 || len(reports[0].Outcomes[0].Diagnostics) != 0 {
		t.Errorf("%+v", reports)
	}
	if _, err := testMaker(path)(t.Context(), app, "chat", "s", 7); err == nil || !strings.Contains(err.Error(), "has no turn 7") {
		t.Error(err)
	}
}

// TestFrom_Feedback rates turns of a served conversation: data sets are made of what was rated, and a test of what was rated down last.
func TestFrom_Feedback(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	path, store := "app.qtype.yaml", "sqlite:"+filepath.Join(dir, "memory.db")
	testkit.Must(t, os.WriteFile(path, []byte(`id: app
models: [{type: Model, id: m, provider: mock, rules: [{match: refund, text: I cannot.}, {echo: true}]}]
memories: [{id: chat}]
flows:
  - id: talk
    interface: {type: Conversational}
    feedback: {type: thumbs, explanation: true}
    variables: [{id: q, type: ChatMessage}, {id: a, type: ChatMessage}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: reply, model: m, memory: chat, inputs: [q], outputs: [a]}]
`), 0o600))
	app, err := qtype.Open(t.Context(), path, qtype.WithDefaultStore(store))
	testkit.Must(t, err)
	s := server.New(app, server.Options{})
	web := httptest.NewServer(s)
	say := func(session, text string) string {
		return testkit.Request(t, "POST", web.URL+"/flows/talk", `{"q": "`+text+`"}`, "X-Session-Id", session).Header.Get("X-Run-Id")
	}
	rate := func(run string, up bool) {
		t.Helper()
		body := fmt.Sprintf(`{"run": %q, "explanation": "said to ada@shop.test", "feedback": {"type": "thumbs", "value": %v}}`, run, up)
		if got := testkit.Request(t, "POST", web.URL+"/feedback", body); got.Status != 200 {
			t.Errorf("%+v", got)
		}
	}
	rate(say("good", "hello"), true)
	say("plain", "good morning")
	say("bad", "hello again")
	rate(say("bad", "a refund"), false)
	say("bad", "thanks")
	web.Close()
	testkit.Must(t, s.Shutdown(t.Context()))
	testkit.Must(t, app.Close(t.Context()))

	run := func(args ...string) (string, string) {
		t.Helper()
		status, out, notes := onTerminal(t.Context(), 200, append(args, "--store", store)...)
		if status != 0 {
			t.Errorf("%v: status %d: %s", args, status, notes)
		}
		return out, notes
	}
	for rated, want := range map[string]int{"up": 1, "down": 2, "any": 3} {
		if rows, _ := run("eval", "from", path, "--feedback", rated); strings.Count(rows, "\n") != want {
			t.Errorf("%s: %s", rated, rows)
		}
	}
	rows, _ := run("eval", "from", path, "--feedback", "down")
	if want := `"comment":"said to person1@example.com","expected":null,"feedback":"down","q":"a refund","rejected":"I cannot."`; !strings.Contains(rows, want) {
		t.Errorf("%s is not in\n%s", want, rows)
	}
	text, notes := run("test", "from", path, "--session", "bad", "--expect", `not (a.text contains "cannot")`)
	if want := "turn 2 is tested, which its user has rated down: said to person1@example.com\n1 of 2 turns"; !strings.HasPrefix(notes, want) || !strings.Contains(text, "name: Session bad, turn 2") {
		t.Errorf("%s\n%s", notes, text)
	}
	if _, notes := run("test", "from", path, "--session", "good"); strings.Contains(notes, "rated down") {
		t.Error(notes)
	}
}
