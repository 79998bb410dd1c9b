package bedrock_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestPassages: Claude gets passages as search results before the question, other models and a request with a
// form of the answer the text of them.
func TestPassages(t *testing.T) {
	passages := []citation.Source{{Number: 1, ID: "d1", Title: "Guide", Heading: "Start", Text: "It opens at nine."}}
	question := chat.Text(chat.User, "When?")
	for name, c := range map[string]struct {
		model  string
		params map[string]any
		schema *model.Schema
		text   string // of the passage
		want   bool
	}{
		"Claude":            {model: "us.anthropic.claude-opus-5-5", want: true},
		"an earlier Claude": {model: "anthropic.claude-3-5-sonnet-20240620-v1:0"},
		"another model":     {model: "us.amazon.nova-2-lite-v1:0"},
		"a schema":          {model: "us.anthropic.claude-opus-5-5", schema: &model.Schema{Name: "city", JSON: json.RawMessage(`{"type":"object"}`)}},
		"a form":            {model: "us.anthropic.claude-opus-5-5", params: map[string]any{"outputConfig": map[string]any{"textFormat": map[string]any{"type": "json_schema"}}}},
		"an effort":         {model: "us.anthropic.claude-opus-5-5", params: map[string]any{"outputConfig": map[string]any{"effort": "low"}}, want: true},
		"a blank passage":   {model: "us.anthropic.claude-opus-5-5", text: " "},
	} {
		t.Run(name, func(t *testing.T) {
			given := passages
			if c.text != "" {
				given = []citation.Source{{Number: 1, ID: "d1", Text: c.text}}
			}
			const prompt = "Passages: [1] It opens at nine."
			body, _ := sent(t, c.params, c.model, model.Request{Schema: c.schema, Messages: []chat.Message{chat.Text(chat.System, "Be brief."), question, chat.Text(chat.System, prompt)},
				Passages: &model.Passages{Text: prompt, Question: question.ID, Sources: given}})
			raw, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			found := strings.Contains(text, `{"searchResult":{"citations":{"enabled":true},"content":[{"text":"It opens at nine."}],"source":"d1","title":"[1] Guide (Start)"}},{"text":"When?"}`)
			if found != c.want || strings.Contains(text, prompt) == c.want || strings.Contains(text, `"type":"passage"`) {
				t.Errorf("the request is %s", text)
			}
		})
	}
}
