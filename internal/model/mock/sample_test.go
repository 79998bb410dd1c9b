package mock_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// The echo of a request with a schema is a record.
func TestEcho_MatchesSchema(t *testing.T) {
	form := `{"$defs": {
	    "Case": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Case"}, "why": {"type": "string"}, "more": {"type": "string"}}, "required": ["next", "why"]}},
	  "type": "object", "required": ["text"], "properties": {
	    "text": {"type": "string"}, "score": {"type": "number"}, "sure": {"type": "boolean"}, "on": {"type": "string", "format": "date"},
	    "tags": {"type": "array", "items": {"type": "string"}}, "role": {"type": "string", "enum": ["user", "tool"]},
	    "none": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "gone": {"$ref": "#/$defs/Gone"}, "case": {"$ref": "#/$defs/Case"}}}`
	m := build(t, &spec.MockRule{Echo: true})
	req := talk("Hello")
	req.Schema = &model.Schema{Name: "Answer", JSON: json.RawMessage(form)}
	r, err := model.Call(t.Context(), m, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Message.Text()), &got); err != nil {
		t.Fatalf("%s: %v", r.Message.Text(), err)
	}
	text, _ := got["text"].(string)
	inner, _ := got["case"].(map[string]any)
	if !strings.HasPrefix(text, "[mock] I received 1 message") || got["score"] != 0.0 || got["sure"] != false || got["on"] != "2000-01-01" ||
		got["role"] != "user" || got["none"] != 0.0 || got["gone"] != nil || inner["why"] != text || inner["more"] != nil {
		t.Errorf("got %s", r.Message.Text())
	}
	req.Schema.JSON = json.RawMessage(`[`)
	if _, err := model.Call(t.Context(), m, req, nil); err == nil {
		t.Error("a schema that cannot be read was taken")
	}
}
