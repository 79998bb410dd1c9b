package steps_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// labelledMessage is a message of a user with the facts that it states, each as words of
// which one must be in its text.
type labelledMessage struct {
	Message string     `json:"message"`
	Facts   [][]string `json:"facts"`
}

func labelledMessages(t *testing.T) (all []labelledMessage) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(testkit.ReadFile(t, "testdata/facts.jsonl")))
	for lines.Scan() {
		var one labelledMessage
		testkit.Must(t, json.Unmarshal(lines.Bytes(), &one))
		all = append(all, one)
	}
	return all
}

// answersFile has the answers of the model in answersModel, by message.
const (
	answersFile  = "testdata/facts_answers.json"
	answersModel = "SmolLM2-135M-Instruct, Q4_1, llama-cpp-python 0.3"
)

// recordedModel is a model that returns recorded answers, or records those of a real one.
type recordedModel struct {
	real    model.Chat // nil to return recorded answers
	answers map[string]string
}

func (r *recordedModel) Info() model.Info { return model.Info{ID: "scribe"} }

func (r *recordedModel) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	_, message, _ := strings.Cut(req.Messages[1].Text(), ": My message:")
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return func(yield func(model.Event, error) bool) {
		if r.real != nil {
			resp, err := model.Call(ctx, r.real, req, nil)
			if err != nil {
				yield(model.Event{}, err)
				return
			}
			r.answers[message] = resp.Message.Text()
		}
		answer, found := r.answers[message]
		if !found {
			yield(model.Event{}, fmt.Errorf("no answer of %s is recorded for %q", answersModel, message))
			return
		}
		yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, answer)}}, nil)
	}
}

// TestFactQuality measures the facts that a small model extracts from labelled messages, with
// recorded answers: it invents, and what it invents must not be stored. With the address of a server with the interface of OpenAI in
// QTYPE_FACTS_URL it records new ones. docs/memory.md has the figures.
func TestFactQuality(t *testing.T) {
	scribe := &recordedModel{answers: map[string]string{}}
	if address := os.Getenv("QTYPE_FACTS_URL"); address != "" {
		// So small a model proposes nothing if it may; here it must propose a change of each message.
		forced := strings.Replace(steps.FactSchema, `"type":"array"`, `"type":"array","minItems":1,"maxItems":2`, 1)
		made, err := provider.New(&spec.Model{ID: "scribe", Provider: "openai", ModelID: "default", BaseURL: address,
			StructuredOutput: "prompt", // the server takes a schema only in its own form
			InferenceParams:  map[string]any{"temperature": 0.0, "max_tokens": 200, "response_format": map[string]any{"type": "json_object", "schema": json.RawMessage(forced)}}}, provider.Options{Getenv: func(string) string { return "" }})
		testkit.Must(t, err)
		scribe.real = made
	} else {
		testkit.Must(t, json.Unmarshal([]byte(testkit.ReadFile(t, answersFile)), &scribe.answers))
	}
	rejected := 0
	warn := func(text string) {
		if strings.Contains(text, "rejected") || strings.Contains(text, "failed") {
			rejected++
		}
		t.Log(text)
	}
	m, err := memory.New(memory.Config{ID: "m", Counter: runeCounter{}, Context: promptcontext.New(warn, promptcontext.Block{Kind: promptcontext.Facts,
		Scope: memory.UserScope, Priority: 1, Extractor: steps.ContextModel("scribe", func() (model.Chat, error) { return scribe, nil })})}, memory.NewInProcess())
	testkit.Must(t, err)
	labelled, stored, right, found := 0, 0, 0, 0
	for i, one := range labelledMessages(t) {
		user := fmt.Sprintf("u%d", i)
		testkit.Must(t, m.Append(t.Context(), memory.UserSession(user, "1"), chat.Text(chat.User, "My message: "+one.Message)))
		testkit.Must(t, m.Turn(t.Context(), memory.UserSession(user, "2"), func(turn *memory.Turn) error {
			if err := turn.Add(chat.Text(chat.User, "Hello.")); err != nil {
				return err
			}
			_, err := turn.Window()
			return err
		}))
		facts, err := promptcontext.FactsOf(t.Context(), m, memory.UserSession(user, ""))
		testkit.Must(t, err)
		labelled += len(one.Facts)
		var covered []int
		for f := range facts {
			stored++
			t.Logf("%q: %q", one.Message, facts[f].Text())
			if index := one.index(facts[f].Text()); index >= 0 {
				right++
				if !slices.Contains(covered, index) {
					covered = append(covered, index)
				}
			}
		}
		found += len(covered)
	}
	t.Logf("%d facts are labelled, %d were stored, %d of them are right (precision %.2f), %d were found (recall %.2f); %d messages with rejected answers",
		labelled, stored, right, float64(right)/float64(max(stored, 1)), found, float64(found)/float64(labelled), rejected)
	if stored != right || rejected == 0 { // the model proposes a change of most messages, and invents the words of all of them
		t.Errorf("%d facts were stored, %d of them are right; %d answers were rejected", stored, right, rejected)
	}
	if scribe.real != nil {
		raw, err := json.MarshalIndent(scribe.answers, "", "  ")
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(answersFile, append(raw, '\n'), 0o600))
	}
}

// index returns which labelled fact a text states, -1 for none.
func (l *labelledMessage) index(text string) int {
	return slices.IndexFunc(l.Facts, func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(word)) })
	})
}

type runeCounter struct{}

func (runeCounter) Count(text string) int { return len([]rune(text)) / 3 }
