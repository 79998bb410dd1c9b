package bedrock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/smithy-go/eventstream"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

func open(t modeltest.Target) (model.Chat, error) {
	return bedrock.New(bedrock.ChatConfig{Config: t.Config()})
}

// frame encodes an event with the SDK's own encoder.
func frame(kind, name string, payload any) string {
	m := eventstream.Message{Payload: []byte(modeltest.JSON(payload))}
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(":"+kind+"-type", eventstream.StringValue(name))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

func usage(a modeltest.Answer) object {
	return object{"inputTokens": a.Input, "outputTokens": a.Output, "totalTokens": a.Input + a.Output}
}

func whole(a modeltest.Answer) string {
	content := []object{{"text": strings.Join(a.Chunks, "")}}
	for _, c := range a.Calls {
		content = append(content, object{"toolUse": object{"toolUseId": c.ID, "name": c.Name, "input": wire.Arguments(c.Arguments)}})
	}
	return modeltest.JSON(object{"output": object{"message": object{"role": "assistant", "content": content}},
		"stopReason": a.Stop("max_tokens", "tool_use", "end_turn"), "usage": usage(a), "metrics": object{"latencyMs": 1}})
}

func stream(a modeltest.Answer) []string {
	index := 0
	records := []string{frame("event", "messageStart", object{"role": "assistant"})}
	delta := func(d object) {
		records = append(records, frame("event", "contentBlockDelta", object{"delta": d, "contentBlockIndex": index, "p": "abc"}))
	}
	stop := func() {
		records = append(records, frame("event", "contentBlockStop", object{"contentBlockIndex": index}))
		index++
	}
	if a.Reasoning != "" {
		delta(object{"reasoningContent": object{"text": a.Reasoning}})
		delta(object{"reasoningContent": object{"signature": "sealed"}})
		stop()
	}
	for _, text := range a.Chunks {
		delta(object{"text": text})
	}
	stop()
	for _, c := range a.Calls {
		records = append(records, frame("event", "contentBlockStart", object{"start": object{"toolUse": object{"toolUseId": c.ID, "name": c.Name}}, "contentBlockIndex": index}))
		for i := 0; i < len(c.Arguments); i += 7 {
			delta(object{"toolUse": object{"input": c.Arguments[i:min(i+7, len(c.Arguments))]}})
		}
		stop()
	}
	return append(records, frame("event", "messageStop", object{"stopReason": a.Stop("max_tokens", "tool_use", "end_turn")}),
		frame("event", "metadata", object{"usage": usage(a), "metrics": object{"latencyMs": 1}}))
}

func parse(t testing.TB, r modeltest.Request) modeltest.Conversation {
	h := modeltest.Conversation{Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Model: "some-model"}
	switch r.Path {
	case "/model/some-model/converse":
	case "/model/some-model/converse-stream":
		h.Stream = true
	default:
		t.Errorf("called %s", r.Path)
	}
	config, _ := r.Body["inferenceConfig"].(object)
	h.Temperature, h.MaxTokens = config["temperature"], config["maxTokens"]
	if system, ok := r.Body["system"].([]any); ok {
		h.System = system[0].(object)["text"].(string)
	}
	names := map[any]any{}
	for _, m := range r.Body["messages"].([]any) {
		role := m.(object)["role"]
		for _, b := range m.(object)["content"].([]any) {
			switch b := b.(object); {
			case b["toolUse"] != nil:
				use := b["toolUse"].(object)
				names[use["toolUseId"]] = use["name"]
				h.Messages = append(h.Messages, fmt.Sprint(role, " calls ", use["name"], " ", modeltest.JSON(use["input"])))
			case b["toolResult"] != nil:
				result := b["toolResult"].(object)
				h.Messages = append(h.Messages, fmt.Sprint("result of ", names[result["toolUseId"]], ": ", result["content"].([]any)[0].(object)["text"]))
			default:
				h.Messages = append(h.Messages, fmt.Sprint(role, ": ", b["text"]))
			}
		}
	}
	config, _ = r.Body["toolConfig"].(object)
	tools, _ := config["tools"].([]any)
	for _, tool := range tools {
		s := tool.(object)["toolSpec"].(object)
		var arguments []string
		for name := range s["inputSchema"].(object)["json"].(object)["properties"].(object) {
			arguments = append(arguments, name)
		}
		h.Tools = append(h.Tools, fmt.Sprint(s["name"], "(", strings.Join(arguments, ","), ")"))
	}
	return h
}

func TestContract(t *testing.T) {
	modeltest.Run(t, modeltest.Wire{
		Open: open, Whole: whole, Stream: stream, Closing: 2, Kind: "application/vnd.amazon.eventstream", Parse: parse, Reasoning: true,
		ErrorBody:   func(_ int, message string) string { return modeltest.JSON(object{"message": message}) },
		ErrorRecord: frame("exception", "internalServerException", object{"message": "it broke"}),
	})
}

// sent returns the body of the request that a model of the server sends.
func sent(t *testing.T, params map[string]any, name string, req model.Request) (object, *model.Response) {
	t.Helper()
	answer := modeltest.Answer{Chunks: []string{"Yes."}}
	if req.Schema != nil {
		answer = modeltest.Answer{Calls: []chat.ToolCall{{ID: "c", Name: req.Schema.Name, Arguments: `{"city":"Köln"}`}}}
	}
	handler := modeltest.Respond(200, "application/json", whole(answer))
	if req.Stream {
		handler = modeltest.Respond(200, "application/vnd.amazon.eventstream", strings.Join(stream(answer), ""))
	}
	s := modeltest.Serve(t, handler)
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: name}, URL: s.URL, HTTP: s.Client(), Params: params})
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.Call(t.Context(), m, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := url.PathUnescape(s.Requests()[0].Path); !strings.Contains(want, name) || strings.Contains(s.Requests()[0].Path, "v1:0") {
		t.Errorf("called %s", s.Requests()[0].Path)
	}
	return s.Requests()[0].Body, got
}

func TestRequest_Parameters(t *testing.T) {
	got, _ := sent(t, map[string]any{"top_p": 0.5, "stop": "END", "max_tokens": 9, "thinking": map[string]any{"type": "enabled"}, "top_k": 3,
		"guardrail_identifier": "g", "guardrail_version": "1", "additional_model_request_fields": map[string]any{"x": 1}, "performanceConfig": map[string]any{"latency": "optimized"}},
		"us.anthropic.claude-3-5-sonnet-20241022-v1:0", model.Request{Messages: []chat.Message{chat.Text(chat.Assistant, "Hello."), chat.Text(chat.User, " "), {Role: chat.User, Blocks: []chat.Block{
			{Type: "image", Data: []byte("\x89PNG\r\n\x1a\n")}, {Type: "file", Data: []byte("%PDF-"), MimeType: "application/pdf"}, {Type: "image", Text: "s3://shop/a.jpg"}}}}})
	want := object{
		"messages": []any{
			object{"role": "user", "content": []any{object{"text": "(earlier messages are omitted)"}}},
			object{"role": "assistant", "content": []any{object{"text": "Hello."}}},
			object{"role": "user", "content": []any{
				object{"image": object{"format": "png", "source": object{"bytes": "iVBORw0KGgo="}}},
				object{"document": object{"format": "pdf", "name": "document 1", "source": object{"bytes": "JVBERi0="}}},
				object{"image": object{"format": "jpeg", "source": object{"s3Location": object{"uri": "s3://shop/a.jpg"}}}},
				object{"text": "The document is attached."}}}},
		"inferenceConfig":              object{"topP": 0.5, "maxTokens": 9.0, "stopSequences": []any{"END"}},
		"additionalModelRequestFields": object{"thinking": object{"type": "enabled"}, "top_k": 3.0, "x": 1.0},
		"guardrailConfig":              object{"guardrailIdentifier": "g", "guardrailVersion": "1"},
		"performanceConfig":            object{"latency": "optimized"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Images of the results of tools are parts of the results; other media are named.
func TestRequest_ToolImages(t *testing.T) {
	got, _ := sent(t, map[string]any{}, "us.anthropic.claude-3-5-sonnet-20241022-v1:0", model.Request{Messages: modeltest.ToolImages()})
	want := object{"role": "user", "content": []any{
		object{"toolResult": object{"toolUseId": "call00001", "content": []any{object{"text": "a plot"}, object{"image": object{"format": "png", "source": object{"bytes": "iVBORw0KGgo="}}},
			object{"text": "[a sound of type audio/ogg, which cannot be passed to this model]"}}}},
		object{"toolResult": object{"toolUseId": "call00002", "content": []any{object{"text": "noon"}}}}}}
	if d := cmp.Diff(want, got["messages"].([]any)[2]); d != "" {
		t.Error(d)
	}
}

// Markers of the prompt cache are after the tools, the system message and a conversation
// that goes on, for models that Bedrock caches prompts of.
func TestRequest_CachePoints(t *testing.T) {
	for _, c := range []struct {
		model                string
		cache                string
		system, tools, turns bool
	}{
		{"us.anthropic.claude-sonnet-4-6", "auto", true, true, true},
		{"anthropic.claude-3-7-sonnet-20250219-v1:0", "auto", true, true, true},
		{"us.anthropic.claude-opus-5-5", "1h", true, true, true},
		{"us.amazon.nova-lite-v1:0", "auto", true, false, true},
		{"us.anthropic.claude-sonnet-4-6", "none", false, false, false},
		{"anthropic.claude-3-5-sonnet-20240620-v1:0", "auto", false, false, false},
		{"anthropic.claude-v2:1", "auto", false, false, false},
		{"meta.llama3-70b-instruct-v1:0", "auto", false, false, false},
		{"arn:aws:bedrock:us-east-1:1:application-inference-profile/a", "auto", false, false, false},
	} {
		s := modeltest.Serve(t, modeltest.Respond(200, "application/json", whole(modeltest.Answer{Chunks: []string{"Yes."}})))
		target := modeltest.Target{Info: model.Info{ID: "m", Name: c.model}, URL: s.URL, HTTP: s.Client()}
		m, err := bedrock.New(bedrock.ChatConfig{Config: target.Config(), Cache: c.cache})
		if err != nil {
			t.Fatal(err)
		}
		req := model.Request{Messages: append([]chat.Message{chat.Text(chat.System, "Be brief.")}, modeltest.ToolImages()...), Tools: []model.Tool{{Name: "now"}}}
		if _, err := model.Call(t.Context(), m, req, nil); err != nil {
			t.Fatal(err)
		}
		point := object{"cachePoint": object{"type": "default"}}
		if c.cache == "1h" {
			point["cachePoint"].(object)["ttl"] = "1h"
		}
		marked := func(list any) bool {
			all := list.([]any)
			return cmp.Equal(all[len(all)-1], any(point))
		}
		body := s.Requests()[0].Body
		turns := body["messages"].([]any)
		if marked(body["system"]) != c.system || marked(body["toolConfig"].(object)["tools"]) != c.tools || marked(turns[len(turns)-1].(object)["content"]) != c.turns {
			t.Errorf("%s, %s: sent %s", c.model, c.cache, modeltest.JSON(body))
		}
		if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "Once.")}}, nil); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(modeltest.JSON(s.Requests()[1].Body), "cachePoint") {
			t.Errorf("%s: a marker in a single question", c.model)
		}
	}
}

// A schema is the input of a tool that the model must call; the call is the answer.
func TestRequest_Schema(t *testing.T) {
	schema := &model.Schema{Name: "place", JSON: []byte(`{"type":"object","properties":{"city":{"type":"string"}}}`)}
	for _, streamed := range []bool{false, true} {
		body, got := sent(t, nil, "amazon.nova-lite-v1:0", model.Request{Stream: streamed, Schema: schema, Messages: []chat.Message{chat.Text(chat.User, "Where?")}})
		config, _ := body["toolConfig"].(object)
		if d := cmp.Diff(object{"tool": object{"name": "place"}}, config["toolChoice"]); d != "" {
			t.Error(d)
		}
		if got.Message.Text() != `{"city":"Köln"}` || len(got.Message.Calls()) != 0 || got.Finish != "stop" {
			t.Errorf("got %+v", got)
		}
	}
}

// Bedrock rejects calls in a conversation without declarations of their tools.
func TestRequest_CallsWithoutTools(t *testing.T) {
	body, _ := sent(t, nil, "mistral.mistral-large-v1:0", model.Request{Messages: []chat.Message{chat.Text(chat.User, "Köln?"),
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "a:1", Name: "weather", Arguments: "{}"}), {Role: chat.Tool, ToolCallID: "a:1", Blocks: []chat.Block{{Type: "text", Text: "rain"}}}}})
	tools, _ := body["toolConfig"].(object)
	if got := modeltest.JSON(tools); got != `{"tools":[{"toolSpec":{"inputSchema":{"json":{"properties":{},"type":"object"}},"name":"weather"}}]}` {
		t.Error(got)
	}
}

// Signed thoughts are sent back with the results of the calls that follow them, and
// tokens of the prompt cache are counted.
func TestAnswer_Thoughts(t *testing.T) {
	call := []chat.ToolCall{{ID: "c1", Name: "now", Arguments: "{}"}}
	records := stream(modeltest.Answer{Reasoning: "Hm.", Calls: call})
	records[len(records)-1] = frame("event", "metadata", object{"usage": object{"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokens": 7, "cacheWriteInputTokens": 3,
		"cacheDetails": []object{{"ttl": "1h", "inputTokens": 2}, {"ttl": "5m", "inputTokens": 1}}}, "serviceTier": object{"type": "flex"}})
	s := modeltest.Serve(t, modeltest.Respond(200, "application/vnd.amazon.eventstream", strings.Join(records, "")))
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "x"}, URL: s.URL, HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	req := model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.User, "When?")}, Tools: []model.Tool{{Name: "now"}}}
	got, err := model.Call(t.Context(), m, req, nil)
	if err != nil || got.Usage != (model.Usage{Input: 13, Output: 2, Cached: 7, CacheWrite: 3, CacheWrites: catalogue.CacheWrites{Minutes5: 1, Hour1: 2}, Tier: "flex"}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	req.Messages = append(req.Messages, got.Message, chat.Message{Role: chat.Tool, ToolCallID: "c1", Blocks: []chat.Block{{Type: "text", Text: "noon"}}})
	if _, err = model.Call(t.Context(), m, req, nil); err != nil {
		t.Fatal(err)
	}
	messages := s.Requests()[1].Body["messages"].([]any)
	first := messages[1].(object)["content"].([]any)[0]
	if d := cmp.Diff(object{"reasoningContent": object{"reasoningText": object{"text": "Hm.", "signature": "sealed"}}}, first); d != "" {
		t.Error(d)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		handler   http.HandlerFunc
		want      string
		code      string
		temporary bool
	}{
		"code of the header": {modeltest.Respond(400, "application/json", `{"message":"Input is too long for requested model."}`, "x-amzn-ErrorType", "ValidationException:http://internal.amazon.com/"),
			"HTTP 400: Input is too long for requested model.", "ValidationException", false},
		"throttled within a stream": {modeltest.Respond(200, "application/vnd.amazon.eventstream", frame("exception", "throttlingException", object{"message": "Too many requests"})),
			"HTTP 429: Too many requests", "throttlingException", true},
		"unknown exception": {modeltest.Respond(200, "application/vnd.amazon.eventstream", frame("exception", "newException", object{})), "HTTP 500: newException", "newException", true},
		"damaged frame":     {modeltest.Respond(200, "application/vnd.amazon.eventstream", "\x00\x00\x00\x20abcdefghijklmnopqrstuvwxyz012345"), "damaged event stream", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Serve(t, c.handler)
			m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "x"}, URL: s.URL, HTTP: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			_, err = model.Call(t.Context(), m, model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
			var e *model.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Code != c.code || e.Temporary != c.temporary {
				t.Errorf("got %+v: %v", e, err)
			}
		})
	}
}

func TestUnsupportedContent(t *testing.T) {
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "x"}, URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string]chat.Block{
		"audio cannot be sent":                                   {Type: "audio", Data: []byte("x")},
		"image must be bytes or an s3:// address":                {Type: "image", Text: "https://a.example/b.png"},
		"file of type application/zip cannot be sent to aws-bed": {Type: "file", Data: []byte("x"), MimeType: "application/zip"},
	} {
		_, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{{Role: chat.User, Blocks: []chat.Block{b}}}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEmbedder(t *testing.T) {
	for name, c := range map[string]struct {
		dimensions int
		texts      []string
		answer     string
		header     string
		want       string
		sent       string
	}{
		"amazon.titan-embed-text-v2:0": {2, []string{"a"}, `{"embedding":[1,2],"inputTextTokenCount":3,"embeddingsByType":{"float":[1,2]}}`, "", "[[1 2]] 3", `{"dimensions":2,"inputText":"a","normalize":true}`},
		"amazon.nova-2-multimodal-embeddings-v1:0": {256, []string{"a"}, `{"embeddings":[{"embeddingType":"TEXT","embedding":[1,2]}]}`, "5", "[[1 2]] 5",
			`{"singleEmbeddingParams":{"embeddingDimension":256,"embeddingPurpose":"GENERIC_INDEX","normalize":true,"text":{"truncationMode":"NONE","value":"a"}},"taskType":"SINGLE_EMBEDDING"}`},
		"amazon.nova-2-multimodal-embeddings-v1:0, query": {0, []string{"a"}, `{"embeddings":[{"embedding":[1,2]}]}`, "5", "[[1 2]] 5",
			`{"singleEmbeddingParams":{"embeddingPurpose":"TEXT_RETRIEVAL","normalize":true,"text":{"truncationMode":"NONE","value":"a"}},"taskType":"SINGLE_EMBEDDING"}`},
		"amazon.titan-embed-text-v1":      {2, []string{"a"}, `{"embedding":[1,2],"inputTextTokenCount":3}`, "", "[[1 2]] 3", `{"inputText":"a","normalize":true}`},
		"cohere.embed-english-v3":         {2, []string{"a", "b"}, `{"embeddings":[[1,2],[3,4]],"id":"x","response_type":"embeddings_floats"}`, "5", "[[1 2] [3 4]] 5", `{"input_type":"search_document","normalize":true,"texts":["a","b"]}`},
		"us.cohere.embed-v4:0":            {2, []string{"a"}, `{"embeddings":{"float":[[1,2]]}}`, "5", "[[1 2]] 5", `{"embedding_types":["float"],"input_type":"search_document","normalize":true,"output_dimension":2,"texts":["a"]}`},
		"cohere.embed-english-v3, query":  {2, []string{"a"}, `{"embeddings":[[1,2]]}`, "", "[[1 2]] 0", `{"input_type":"search_query","normalize":true,"texts":["a"]}`},
		"eu.amazon.titan-embed-text-v2:0": {2, []string{"a"}, `{"other":1}`, "", "no embedding", ""},
		"cohere.embed-multilingual-v3":    {2, []string{"a", "b"}, `{"embeddings":[[1,2]]}`, "", "1 vectors for 2 texts", ""},
		"amazon.nova-lite-v1:0":           {2, nil, ``, "", "is not an embedding model of Bedrock that is supported", ""},
	} {
		t.Run(name, func(t *testing.T) {
			name, query := strings.CutSuffix(name, ", query")
			ctx := t.Context()
			if query {
				ctx = model.ForQueries(ctx)
			}
			s := modeltest.Serve(t, modeltest.Respond(200, "application/json", c.answer, "X-Amzn-Bedrock-Input-Token-Count", c.header))
			target := modeltest.Target{Info: model.Info{ID: "m", Name: name, Dimensions: c.dimensions}, URL: s.URL, HTTP: s.Client(), Params: map[string]any{"normalize": true}}
			e, err := bedrock.NewEmbedder(target.Config())
			got := ""
			if err == nil {
				var vectors [][]float32
				var used model.Usage
				if vectors, used, err = e.Embed(ctx, c.texts); err == nil {
					got = fmt.Sprint(vectors, " ", used.Input)
				}
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.sent == "" {
				return
			}
			body, _ := json.Marshal(s.Requests()[0].Body)
			if string(body) != c.sent {
				t.Errorf("sent %s", body)
			}
		})
	}
}
