package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

const okAnswer = `{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}]}`

// strict is requested where OpenAI accepts it, and the schema itself is not changed.
func TestRequest_ResponseFormat(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		strict bool
	}{
		"all required":     {`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/B"}},"required":["a","b"],"additionalProperties":false,"$defs":{"B":{"type":"object","properties":{"type":{"type":"array","items":{"type":"integer"}}},"required":["type"],"additionalProperties":false}}}`, true},
		"optional":         {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, false},
		"open":             {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, false},
		"open item":        {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`, false},
		"unknown keyword":  {`{"type":"object","properties":{"a":{"type":"string","contentEncoding":"base64"}},"required":["a"],"additionalProperties":false}`, false},
		"union of objects": {`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"object"}]}},"required":["a"],"additionalProperties":false}`, false},
	} {
		s := modeltest.Serve(t, modeltest.Respond(200, "application/json", okAnswer))
		m, err := openai.New(contractConfig(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()}))
		if err != nil {
			t.Fatal(err)
		}
		req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}, Schema: &model.Schema{Name: "thing", JSON: json.RawMessage(tt.schema)}}
		if _, err := model.Call(t.Context(), m, req, nil); err != nil {
			t.Fatal(err)
		}
		var schema any
		if err := json.Unmarshal([]byte(tt.schema), &schema); err != nil {
			t.Fatal(err)
		}
		inner := object{"name": "thing", "schema": schema}
		if tt.strict {
			inner["strict"] = true
		}
		if d := cmp.Diff(any(object{"type": "json_schema", "json_schema": inner}), s.Requests()[0].Body["response_format"]); d != "" {
			t.Error(name, d)
		}
	}
}

// llama-cpp-python rejects json_schema with its validation error. The next form is used,
// and later calls begin with it, also those of another model of the same name and server.
func TestStructuredOutput_Learned(t *testing.T) {
	rejected := `{"error":{"message":"[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]","type":"internal_server_error","param":null,"code":null}}`
	s := modeltest.Serve(t, modeltest.Respond(500, "application/json", rejected), modeltest.Respond(200, "application/json", okAnswer))
	known := &model.SchemaForms{}
	req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}, Schema: &model.Schema{Name: "thing", JSON: json.RawMessage(`{"type":"object"}`)}}
	for range 2 {
		m, err := provider.New(&spec.Model{ID: "m", Provider: "openai", BaseURL: s.URL + "/v1", Retry: &spec.RetryPolicy{MaxAttempts: 1}},
			provider.Options{HTTP: s.Client(), Getenv: func(string) string { return "" }, Forms: known})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Call(t.Context(), m, req, nil); err != nil {
			t.Fatal(err)
		}
	}
	var formats []string
	for _, r := range s.Requests() {
		formats = append(formats, r.Body["response_format"].(object)["type"].(string))
	}
	if got := strings.Join(formats, " "); got != "json_schema json_object json_object" {
		t.Error(got)
	}
}

// A weaker form is used where servers and models refuse the schema, or the tool that has it.
func TestStructuredOutput_Rejections(t *testing.T) {
	for message, learned := range map[string]bool{
		"This response_format type is unavailable now":                                             true,
		`tool_choice: type "tool" and "any" are not supported for this model.`:                     true,
		"Thinking mode does not support this tool_choice":                                          true,
		"Schemas contains too many optional parameters (30), which is more than the 24 allowed.":   false,
		"Too many strict tools (21). The maximum number of strict tools supported is 20.":          false,
		"Compiled grammar is too large, please simplify your tool schemas or reduce their number.": false,
	} {
		s := modeltest.Serve(t, modeltest.Respond(400, "application/json", modeltest.JSON(object{"error": object{"message": message}})), modeltest.Respond(200, "application/json", okAnswer))
		m, err := provider.New(&spec.Model{ID: "m", Provider: "openai", BaseURL: s.URL + "/v1", Retry: &spec.RetryPolicy{MaxAttempts: 1}},
			provider.Options{HTTP: s.Client(), Getenv: func(string) string { return "" }})
		testkit.Must(t, err)
		req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}, Schema: &model.Schema{Name: "thing", JSON: json.RawMessage(`{"type":"object"}`)}}
		for range 2 {
			_, err = model.Call(t.Context(), m, req, nil)
			testkit.Must(t, err)
		}
		if form := s.Requests()[2].Body["response_format"].(object)["type"]; (form == "json_object") != learned {
			t.Errorf("%s: the next request has the form %v", message, form)
		}
	}
}

// OpenAI's schema has no name on the messages of tools.
func TestRequest_ToolMessagesHaveNoName(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", okAnswer))
	m, err := openai.New(contractConfig(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()}))
	if err != nil {
		t.Fatal(err)
	}
	req := model.Request{Messages: []chat.Message{{Role: chat.User, Name: "ada", Blocks: []chat.Block{{Type: "text", Text: "x"}}},
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c", Name: "f", Arguments: "{}"}),
		{Role: chat.Tool, Name: "f", ToolCallID: "c", Blocks: []chat.Block{{Type: "text", Text: "r"}}}}}
	if _, err := model.Call(t.Context(), m, req, nil); err != nil {
		t.Fatal(err)
	}
	messages := s.Requests()[0].Body["messages"].([]any)
	if _, named := messages[2].(object)["name"]; named || messages[0].(object)["name"] != "ada" {
		t.Errorf("sent %v", messages)
	}
}
