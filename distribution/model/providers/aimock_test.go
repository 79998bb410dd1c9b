package providers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// caller sends a user's text to a model of another program's server.
type caller func(t *testing.T, text string, change func(*model.Request)) (*model.Response, string, error)

// newCaller returns the caller of a model at a server; streamed or not.
func newCaller(t *testing.T, m spec.Model, stream bool) caller {
	t.Helper()
	c, err := provider.New(&m, cloudEnv())
	testkit.Must(t, err)
	return func(t *testing.T, text string, change func(*model.Request)) (*model.Response, string, error) {
		t.Helper()
		request := model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.System, "Be brief."), chat.Text(chat.User, text)}}
		if change != nil {
			change(&request)
		}
		var streamed strings.Builder
		r, err := model.Call(t.Context(), c, request, func(ev model.Event) { streamed.WriteString(ev.Text) })
		return r, streamed.String(), err
	}
}

// served is a column of the table of answers by aimock.
type served struct {
	name  string
	check func(t *testing.T, call caller, stream bool) error
}

func answersOf() []served {
	const hello = "Good morning, Ädä. 早上好"
	fails := func(text string, valid func(*model.Error) bool) func(*testing.T, caller, bool) error {
		return func(t *testing.T, call caller, _ bool) error {
			_, _, err := call(t, text, nil)
			var failure *model.Error
			if !errors.As(err, &failure) || !valid(failure) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}
	}
	return []served{
		{"Texts", func(t *testing.T, call caller, stream bool) error {
			r, streamed, err := call(t, "say hello", nil)
			if err != nil || r.Message.Text() != hello || r.Finish != "stop" || stream && streamed != hello {
				return fmt.Errorf("got %+v, streamed %q: %w", r, streamed, err)
			}
			return nil
		}},
		{"Tokens", func(t *testing.T, call caller, _ bool) error {
			r, _, err := call(t, "say hello", nil)
			if err != nil || r.Usage.Input != 21 || r.Usage.Output != 5 {
				return fmt.Errorf("got %+v: %w", r, err)
			}
			return nil
		}},
		{"Tools", callTools},
		{"JSON schema", func(t *testing.T, call caller, _ bool) error {
			schema := sdkRequests()["schema"].Schema
			r, _, err := call(t, "a mood", func(r *model.Request) { r.Schema = schema })
			if err != nil || r.Message.Text() != `{"mood":"calm"}` {
				return fmt.Errorf("got %+v: %w", r, err)
			}
			return nil
		}},
		{"Token limit", func(t *testing.T, call caller, _ bool) error {
			_, _, err := call(t, "too long", nil)
			var incomplete *model.IncompleteError
			if !errors.As(err, &incomplete) || incomplete.Finish != "length" {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}},
		{"Rejection with Retry-After", fails("busy", func(e *model.Error) bool { return e.Status == 429 && e.Temporary && e.RetryAfter == 7*time.Second })},
		{"Wrong key", fails("no key", func(e *model.Error) bool { return e.Status == 401 && !e.Temporary })},
		{"Broken answer", func(t *testing.T, call caller, stream bool) error {
			if !stream {
				return nil
			}
			return fails("cut off", func(e *model.Error) bool { return e.Temporary })(t, call, stream)
		}},
	}
}

// callTools checks two calls in one answer, and the answer to their results.
func callTools(t *testing.T, call caller, _ bool) error {
	tools := sdkRequests()["tools"].Tools
	r, _, err := call(t, "call tools", func(r *model.Request) { r.Tools = tools })
	if err != nil {
		return err
	}
	made := r.Message.Calls()
	if len(made) != 2 || made[0].Name != "weather" || made[1].Name != "now" || !strings.Contains(made[0].Arguments, "Köln") {
		return fmt.Errorf("got %+v", r)
	}
	answer := r.Message
	r, _, err = call(t, "call tools", func(r *model.Request) {
		r.Tools = tools
		r.Messages = append(r.Messages, answer,
			chat.Message{Role: chat.Tool, Name: "weather", ToolCallID: made[0].ID, Blocks: []chat.Block{{Type: "text", Text: "rain"}}},
			chat.Message{Role: chat.Tool, Name: "now", ToolCallID: made[1].ID, Blocks: []chat.Block{{Type: "text", Text: "noon"}}})
	})
	if err != nil || r.Message.Text() != "Rain at noon." {
		return fmt.Errorf("got %+v: %w", r, err)
	}
	return nil
}

// missing are what aimock 1.43 does not have, by the name of a model in sdkTargets; nil for all.
func missing() map[string][]string {
	return map[string][]string{
		"openai, Responses":       {"Token limit"},
		"azure-openai, Responses": {"Token limit"},
		"mistral":                 {"Tokens"}, // in a stream only where OpenAI's option is set, which Mistral does not have
		"ollama":                  {"Tokens", "Token limit"},
		"gcp-vertex, Claude":      nil,
		"aws-bedrock, Claude":     {"Tools"}, // markers of the cache next to tools
	}
}

// TestDocs_AIMock calls aimock, a server of another project that has the protocols of the
// providers, and compares the table of docs/models.md with the results; -update rewrites it.
func TestDocs_AIMock(t *testing.T) {
	s, err := servertest.AIMock()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	url, answers := "http://"+s.Address(), answersOf()
	var b strings.Builder
	b.WriteString("| Model | Requests have the types of |")
	for _, a := range answers {
		b.WriteString(" " + a.name + " |")
	}
	b.WriteString(" Embeddings |\n|" + strings.Repeat(" --- |", len(answers)+3) + "\n")
	for _, target := range sdkTargets() {
		fmt.Fprintf(&b, "| `%s`%s | %s |", target.model.Provider, strings.TrimPrefix(target.name, target.model.Provider), packages()[target.types])
		for _, a := range answers {
			b.WriteString(cell(t, target, a, url))
		}
		fmt.Fprintf(&b, " %s |\n", embeds(t, target, url))
	}
	if !t.Failed() {
		compareTable(t, "aimock", b.String())
	}
}

// cell calls a model with and without a stream.
func cell(t *testing.T, target sdkTarget, a served, url string) string {
	t.Helper()
	lacks, some := missing()[target.name]
	expected := some && (lacks == nil || slices.Contains(lacks, a.name))
	passed := true
	for _, stream := range []bool{false, true} {
		if err := a.check(t, newCaller(t, at(target, target.model.ModelID, url), stream), stream); err != nil {
			passed = false
			if !expected {
				t.Errorf("%s, %s, stream=%v: %v", target.name, a.name, stream, err)
			}
		}
	}
	if passed && expected {
		t.Errorf("%s, %s: aimock has it", target.name, a.name)
	}
	return map[bool]string{true: " passed |", false: " – |"}[passed]
}

// embeds calls the embedding model of a target.
func embeds(t *testing.T, target sdkTarget, url string) string {
	t.Helper()
	if target.embedding == "" {
		return "–"
	}
	e, err := provider.NewEmbedder(&spec.EmbeddingModel{Model: at(target, target.embedding, url), Dimensions: 3}, cloudEnv())
	testkit.Must(t, err)
	vectors, _, err := e.Embed(t.Context(), []string{"tea", "salt"})
	if err != nil || len(vectors) != 2 || vectors[1][2] != -1 {
		t.Errorf("%s, embeddings: %v, %v", target.name, vectors, err)
	}
	return "passed"
}
