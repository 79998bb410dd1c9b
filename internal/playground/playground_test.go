package playground_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/examples"
	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
	"github.com/qtype-dev/qtype/internal/playground"
)

func session(t testing.TB) *playground.Session {
	t.Helper()
	schema, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := playground.New(context.Background(), "test", string(schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// raw calls a function and returns its result and its error.
func raw(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *playground.Session, name string, params any) (json.RawMessage, string) {
	t.Helper()
	encoded, err := json.Marshal(params)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var answer struct {
		Result json.RawMessage
		Error  string
	}
	got := s.Call(context.Background(), name, encoded)
	if err := json.Unmarshal(got, &answer); err != nil {
		t.Fatalf("%s answered %q: %v", name, got, err)
	}
	return answer.Result, answer.Error
}

// call calls a function that must succeed.
func call[R any](t *testing.T, s *playground.Session, name string, params any) R {
	t.Helper()
	result, failed := raw(t, s, name, params)
	if failed != "" {
		t.Fatalf("%s: %s", name, failed)
	}
	var r R
	if err := json.Unmarshal(result, &r); err != nil {
		t.Fatalf("%s returned %s: %v", name, result, err)
	}
	return r
}

type params map[string]any

type position struct{ Line, Character int }

type report struct {
	Items []struct {
		Range         struct{ Start, End position }
		Code, Message string
		Severity      int
		Data          struct{ Suggestion string }
	}
}

const app = `id: shop
memories:
  - {id: talk_memory, policy: token_window, max_tokens: 40}
models:
  - {type: Model, id: clerk, provider: mock, rules: [{echo: true}]}
flows:
  - id: talk
    variables:
      - {id: message, type: ChatMessage}
      - {id: answer, type: ChatMessage}
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: respond, model: clerk, memory: talk_memory, inputs: [message], outputs: [answer]}
`

func TestCheck(t *testing.T) {
	s := session(t)
	if got := call[report](t, s, "check", params{"text": app}); len(got.Items) != 0 {
		t.Errorf("a correct document has diagnostics: %+v", got.Items)
	}
	got := call[report](t, s, "check", params{"text": strings.Replace(app, "memory: talk_memory", "memory: talk_memry", 1)})
	if len(got.Items) == 0 {
		t.Fatal("a misspelt id has no diagnostic")
	}
	found := got.Items[0]
	at := strings.Index(strings.Split(app, "\n")[13], "talk_memory")
	if found.Range.Start != (position{13, at}) || found.Range.End != (position{13, at + len("talk_memry")}) || found.Data.Suggestion != "talk_memory" {
		t.Errorf("the diagnostic is %+v", found)
	}
}

func TestComplete(t *testing.T) {
	text := strings.Replace(app, "memory: talk_memory", "memory: ", 1)
	line := strings.Split(text, "\n")[13]
	got := call[struct {
		Items []struct {
			Label    string
			TextEdit struct{ NewText string }
		}
	}](t, session(t), "complete", params{"text": text, "line": 13, "character": strings.Index(line, "memory: ") + len("memory: ")})
	if len(got.Items) != 1 || got.Items[0].Label != "talk_memory" {
		t.Errorf("the proposals are %+v", got.Items)
	}
}

func TestHover(t *testing.T) {
	got := call[struct{ Contents struct{ Value string } }](t, session(t), "hover", params{"text": app, "line": 2, "character": 28})
	if !strings.Contains(got.Contents.Value, "policy") {
		t.Errorf("the hover is %q", got.Contents.Value)
	}
}

func TestFormat(t *testing.T) {
	s := session(t)
	got := call[struct{ Text string }](t, s, "format", params{"text": "id:   a\nflows:\n      - id: b # note\n"})
	if !strings.HasPrefix(got.Text, "id: a\n") || !strings.Contains(got.Text, "# note") {
		t.Errorf("formatted as %q", got.Text)
	}
	if _, failed := raw(t, s, "format", params{"text": "a: [\n"}); failed == "" {
		t.Error("an invalid document was formatted")
	}
}

func TestDraw(t *testing.T) {
	s := session(t)
	got := call[struct {
		SVG, Mermaid, Title string
		Memories            []struct{ ID, Policy string }
	}](t, s, "draw", params{"text": app})
	if !strings.HasPrefix(got.SVG, "<svg ") || !strings.HasPrefix(got.Mermaid, "flowchart") || got.Title != "shop" {
		t.Errorf("drawn as %.100s, %.100s, %q", got.SVG, got.Mermaid, got.Title)
	}
	if len(got.Memories) != 1 || got.Memories[0].ID != "talk_memory" || got.Memories[0].Policy != "token_window" {
		t.Errorf("the memories are %+v", got.Memories)
	}
	if _, failed := raw(t, s, "draw", params{"text": "id: [1"}); failed != "the document has errors" {
		t.Errorf("an invalid document: %q", failed)
	}
}

// What a document contains is text in the picture, not markup.
func TestDraw_Markup(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x onerror=alert(1)>`
	text := strings.Replace(app, "id: shop", "id: shop\ndescription: '"+evil+"'", 1)
	text = strings.Replace(text, "id: talk\n", "id: talk\n    description: '"+evil+"'\n", 1)
	got := call[struct{ SVG string }](t, session(t), "draw", params{"text": text})
	if lower := strings.ToLower(got.SVG); strings.Contains(lower, "<script") || strings.Contains(lower, "<img") {
		t.Errorf("the picture has markup of the document: %s", got.SVG)
	}
}

func TestExplain(t *testing.T) {
	s := session(t)
	got := call[struct{ Code, Title, Doc, Wrong, Right string }](t, s, "explain", params{"code": " qt202 "})
	if got.Code != "QT202" || got.Title == "" || got.Doc == "" || got.Wrong == "" {
		t.Errorf("QT202 is %+v", got)
	}
	if all := call[[]struct{ Code string }](t, s, "explain", params{}); len(all) < 50 {
		t.Errorf("%d codes", len(all))
	}
	if _, failed := raw(t, s, "explain", params{"code": "<b>"}); !strings.Contains(failed, "<b>") {
		t.Errorf("an unknown code: %q", failed)
	}
}

type replayed struct {
	Lines []struct {
		Line, Tokens, Used, Limit, Messages, Evicted int
		Unit                                         string
	}
	Shown struct {
		Line   int
		Window []struct{ Content string }
	}
	Error *struct {
		Line    int
		Message string
	}
}

func TestReplay(t *testing.T) {
	var transcript strings.Builder
	for i := range 10 {
		fmt.Fprintf(&transcript, "{\"role\": \"user\", \"content\": \"Message %d has some words.\"}\n", i)
	}
	s := session(t)
	got := call[replayed](t, s, "replay", params{"text": app, "memory": "talk_memory", "transcript": transcript.String()})
	evicted := 0
	for i, l := range got.Lines {
		if l.Line != i+1 || l.Limit != 40 || l.Unit != "tokens" || l.Used < 1 || l.Used > 40 {
			t.Errorf("line %+v", l)
		}
		evicted += l.Evicted
	}
	if len(got.Lines) != 10 || evicted == 0 || got.Error != nil || got.Shown.Line != 10 {
		t.Errorf("replayed %+v", got)
	}
	early := call[replayed](t, s, "replay", params{"text": app, "memory": "talk_memory", "transcript": transcript.String(), "line": 2})
	if early.Shown.Line != 2 || len(early.Shown.Window) != 2 || early.Shown.Window[0].Content != "Message 0 has some words." {
		t.Errorf("the window after line 2 is %+v", early.Shown)
	}
}

func TestReplay_Wrong(t *testing.T) {
	s := session(t)
	got := call[replayed](t, s, "replay", params{"text": app, "memory": "talk_memory", "transcript": "{\"role\": \"user\", \"content\": \"a\"}\n\n{\"op\": \"fly\"}"})
	if got.Error == nil || got.Error.Line != 3 || len(got.Lines) != 1 {
		t.Errorf("an unknown operation: %+v", got)
	}
	for name, p := range map[string]params{
		"no memory":  {"text": app, "memory": "x", "transcript": ""},
		"errors":     {"text": "flows: 1", "memory": "x", "transcript": ""},
		"large":      {"text": app, "memory": "talk_memory", "transcript": strings.Repeat("x", 1<<20+1)},
		"many lines": {"text": app, "memory": "talk_memory", "transcript": strings.Repeat("\n", 3000)},
	} {
		if _, failed := raw(t, s, "replay", p); failed == "" {
			t.Errorf("%s: no error", name)
		}
	}
}

// No file and no environment variable reaches a document.
func TestIsolation(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "part.yaml")
	if err := os.WriteFile(file, []byte("secret-of-the-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLAYGROUND_TEST", "secret-of-the-environment")
	s := session(t)
	for _, value := range []string{"!include " + file, "!include file://" + file, "${PLAYGROUND_TEST}", "!include http://127.0.0.1:1/a.yaml", "!include_raw " + file} {
		text := "id: a\ndescription: " + value + "\nnope: 1\n"
		got, failed := raw(t, s, "check", params{"text": text})
		if failed != "" || strings.Contains(string(got), "secret-of") || strings.HasPrefix(value, "!") && !strings.Contains(string(got), "not read here") {
			t.Errorf("%s: %s %s", value, got, failed)
		}
		if got, _ := raw(t, s, "draw", params{"text": "id: a\ndescription: " + value + "\n"}); strings.Contains(string(got), "secret-of") {
			t.Errorf("%s is drawn with its content", value)
		}
	}
}

// The examples that the page offers have no errors in it.
func TestExamples(t *testing.T) {
	all, err := playground.Examples(examples.Files)
	if err != nil {
		t.Fatal(err)
	}
	s := session(t)
	replayable := 0
	for _, e := range all {
		for _, item := range call[report](t, s, "check", params{"text": e.Text}).Items {
			if item.Severity == 1 {
				t.Errorf("%s: %s", e.Name, item.Message)
			}
		}
		drawn := call[struct{ Memories []struct{ ID string } }](t, s, "draw", params{"text": e.Text})
		for _, m := range drawn.Memories {
			replayable++
			if got := call[replayed](t, s, "replay", params{"text": e.Text, "memory": m.ID, "transcript": e.Transcript}); got.Error != nil || len(got.Lines) == 0 {
				t.Errorf("%s: memory %s: %+v", e.Name, m.ID, got)
			}
		}
	}
	if len(all) < 4 || replayable < 2 {
		t.Errorf("%d examples, %d memories", len(all), replayable)
	}
}

// Calls with wrong parameters are errors.
func TestCall_Wrong(t *testing.T) {
	s := session(t)
	for _, c := range []struct{ name, params string }{
		{"", "{}"}, {"nope", "{}"}, {"check", ""}, {"check", "[]"}, {"check", `{"text": 1}`}, {"check", `{"other": ""}`}, {"check", "null x"},
		{"hover", `{"text": "", "line": "a"}`}, {"replay", `{"line": 1e99}`}, {"explain", `{"code": []}`}, {"draw", `{`},
	} {
		var answer struct{ Error string }
		if err := json.Unmarshal(s.Call(context.Background(), c.name, []byte(c.params)), &answer); err != nil || answer.Error == "" && c.params != "null x" {
			t.Errorf("%s(%s): %v %q", c.name, c.params, err, answer.Error)
		}
	}
	if _, failed := raw(t, s, "check", params{"text": strings.Repeat("#", 1<<20+1)}); !strings.Contains(failed, "at most") {
		t.Errorf("a large document: %q", failed)
	}
	for _, at := range []params{{"line": -1, "character": -5}, {"line": 1 << 30, "character": 1 << 30}} {
		at["text"] = app
		if _, failed := raw(t, s, "complete", at); failed != "" {
			t.Errorf("%v: %s", at, failed)
		}
	}
}

// No document and no transcript makes a function panic or end the session.
func TestCall_AnyText(t *testing.T) {
	var documents []string
	for _, text := range lsptest.Documents(t) {
		documents = append(documents, text)
	}
	s := session(t)
	rapid.Check(t, func(t *rapid.T) {
		text := lsptest.DrawBrokenText(t, documents)
		line, character := rapid.IntRange(-1, 60).Draw(t, "line"), rapid.IntRange(-1, 90).Draw(t, "character")
		for _, name := range []string{"check", "complete", "hover", "format", "draw", "replay"} {
			p := params{"text": text}
			switch name {
			case "complete", "hover":
				p["line"], p["character"] = line, character
			case "replay":
				p["text"], p["memory"], p["transcript"] = app, "talk_memory", text
			}
			if _, failed := raw(t, s, name, p); strings.Contains(failed, "internal error") {
				t.Fatalf("%s: %s", name, failed)
			}
		}
	})
	if got := call[report](t, s, "check", params{"text": app}); len(got.Items) != 0 {
		t.Errorf("the session is damaged: %+v", got.Items)
	}
}
