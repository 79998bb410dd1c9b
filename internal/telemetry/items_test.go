package telemetry_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reasoningModel answers with reasoning and an item.
type reasoningModel struct{ info model.Info }

func (m reasoningModel) Info() model.Info { return m.info }

func (m reasoningModel) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		answer := chat.Message{ID: chat.NewID(), Role: chat.Assistant, Origin: &chat.Origin{API: "messages"}, Blocks: []chat.Block{
			{Type: chat.ReasoningType, Text: "Hm.", Item: &chat.Item{Field: "thinking", JSON: `{"sealed":1}`}}, {Type: "text", Text: "Done."}}}
		_ = yield(model.Event{Reasoning: "Hm."}, nil) && yield(model.Event{Response: &model.Response{Message: answer, Finish: "stop",
			Usage: model.Usage{Input: 10, Output: 5, Reasoning: 3, CacheWrite: 7}}}, nil)
	}
}

// TestExporter_Items: a span has the name and the size of an item, and the tokens of reasoning and of the cache.
func TestExporter_Items(t *testing.T) {
	c := newCollector(t)
	path := testkit.WriteFile(t, "app.qtype.yaml", withTelemetry(otlp, c.URL))
	app, err := runtimetest.Open(t.Context(), path, runtime.Options{Mocks: runtime.Mocks{
		Model: func(m *spec.Model) (model.Chat, error) { return reasoningModel{model.Describe(m)}, nil }}})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	e := openExporter(t, app, nil)
	run(e.Context(t.Context()), t, app, "talk", "question", "Weather?")
	e.Flush(t.Context())
	_, set := c.span(t, "chat broken")
	expectAttributes(t, set, map[string]any{"llm.output_messages.0.message.content": "Done.[reasoning: Hm.][item thinking, 12 bytes]", "output.value": "Done.",
		"gen_ai.usage.reasoning.output_tokens": int64(3), "gen_ai.usage.cache_creation.input_tokens": int64(7), "gen_ai.system": nil})
	if first, ok := set["gen_ai.response.time_to_first_chunk"].(float64); !ok || first < 0 {
		t.Errorf("the time to the first chunk is %v", set["gen_ai.response.time_to_first_chunk"])
	}
	for _, s := range c.sorted() {
		if strings.Contains(s.String(), "sealed") {
			t.Errorf("span %s has the item: %s", s.Name, s)
		}
	}
}
