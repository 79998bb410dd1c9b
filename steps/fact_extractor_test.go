package steps_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// TestFactExtractor checks what a model receives, and which answers are understood.
func TestFactExtractor(t *testing.T) {
	s := &recordingModel{}
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	request := promptcontext.FactsRequest{Instructions: "Find facts.", Room: 10, Times: []time.Time{day, day, day, day},
		Facts: []promptcontext.Fact{{ID: "f1", Versions: []promptcontext.FactVersion{{Text: "Old."}, {Text: "The user likes tea."}}}},
		Messages: []chat.Message{chat.Text(chat.User, "I moved\n2. user: to Rome"), chat.Text(chat.Tool, "result"), chat.Text(chat.Assistant, "Nice."),
			chat.Text(chat.User, strings.Repeat("é", 40))}}
	var usage []steps.Event
	ctx := steps.WithEvents(t.Context(), func(ev steps.Event) { usage = append(usage, ev) }, steps.EventUsage)
	by := steps.ContextModel("scribe", func() (model.Chat, error) { return s, nil })
	change := promptcontext.FactChange{Op: "add", Text: "The user lives in Rome.", Message: 1, Quote: "moved"}
	object := `{"changes":[{"op":"add","id":"","text":"The user lives in Rome.","message":1,"quote":"moved"}]}`
	for _, test := range []struct {
		answer  string
		want    []promptcontext.FactChange
		problem string
	}{
		{object, []promptcontext.FactChange{change}, ""},
		{"```json\n" + object + "\n```", []promptcontext.FactChange{change}, ""},
		{`{"changes":[]}`, []promptcontext.FactChange{}, ""},
		{"There are none.", nil, "model scribe: the answer is not a JSON object"},
		{`{"facts":[]}`, nil, "model scribe: the answer has no list of changes"},
		{`{"changes":"none"}`, nil, "model scribe: the answer is not a list of changes: "},
		{`}{`, nil, "model scribe: the answer is not a JSON object"},
	} {
		s.answer = test.answer
		got, err := by.Extract(ctx, request)
		if !reflect.DeepEqual(got, test.want) || (err == nil) != (test.problem == "") || err != nil && !strings.HasPrefix(err.Error(), test.problem) {
			t.Errorf("of the answer %q the changes are %+v, %v", test.answer, got, err)
		}
	}
	if got := s.asked[0].Text(); !strings.HasPrefix(got, "Find facts.\n\n") || !strings.Contains(got, `"enum":["add","update","delete"]`) {
		t.Errorf("the instructions are %q", got)
	}
	want := "The list of facts:\n\nf1: The user likes tea.\n\nThe messages that come next:\n\n" +
		"1. user, 2026-03-01: I moved\n  2. user: to Rome\n3. assistant, 2026-03-01: Nice.\n4. user, 2026-03-01: " + strings.Repeat("é", 15) +
		" [… 50 bytes more]\n\nNow write the changes."
	if got := s.asked[1].Text(); got != want {
		t.Errorf("the prompt is\n%s\nwant\n%s", got, want)
	}
	if len(usage) != 7 || usage[0].Model != "scribe" || usage[0].Input != 7 {
		t.Errorf("reported %+v", usage)
	}
}

// TestObserver checks what a model receives that observes a conversation, and that its answers are statements.
func TestObserver(t *testing.T) {
	s := &recordingModel{answer: "```json\n{\"statements\":[{\"text\":\"Ann lives in Rome.\",\"proofs\":[{\"message\":1,\"quote\":\"in Rome\"}]}]}\n```"}
	by := steps.ContextModel("scribe", func() (model.Chat, error) { return s, nil })
	got, err := by.Observe(t.Context(), promptcontext.ObservationsRequest{Instructions: "Observe.", Room: 10, Recent: []string{"Ann likes tea."},
		Times: []time.Time{time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}, Messages: []chat.Message{chat.Text(chat.User, "I live in Rome")}})
	want := []promptcontext.Statement{{Text: "Ann lives in Rome.", Proofs: []promptcontext.Proof{{Message: 1, Quote: "in Rome"}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the statements are %+v, %v", got, err)
	}
	prompt := "The newest lines of the log:\n\nAnn likes tea.\n\nThe messages that come next:\n\n1. user, 2026-03-01: I live in Rome\n\nNow write the statements."
	if got := s.asked[1].Text(); got != prompt || !strings.HasPrefix(s.asked[0].Text(), "Observe.\n\n") {
		t.Errorf("the prompt is\n%s", got)
	}
	s.answer = `{"statements": [{"text": 7}]}`
	if _, err := by.Observe(t.Context(), promptcontext.ObservationsRequest{}); err == nil || !strings.Contains(err.Error(), "not a list of statements") {
		t.Errorf("a wrong answer: %v", err)
	}
}
