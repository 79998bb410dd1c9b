package provider_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go/eventstream"
	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// event encodes an event of Converse with the SDK's encoder.
func event(t *testing.T, name, payload string) string {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue("event"))
	m.Headers.Set(":event-type", eventstream.StringValue(name))
	var b bytes.Buffer
	testkit.Must(t, eventstream.NewEncoder().Encode(&b, m))
	return b.String()
}

// events writes a stream of server-sent events.
func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// TestAnswers_Media: images and sounds of an answer are blocks of its message, in their order, and
// a later request has them if the provider takes them from models, else a text.
func TestAnswers_Media(t *testing.T) {
	const wave = "RIFF\x24\x00\x00\x00WAVEfmt "
	image, sound := base64.StdEncoding.EncodeToString([]byte(modeltest.PNG)), base64.StdEncoding.EncodeToString([]byte(wave))
	text := func(s string) chat.Block { return chat.Block{Type: "text", Text: s} }
	picture := chat.Block{Type: "image", Data: []byte(modeltest.PNG), MimeType: "image/png"}
	drawn := picture
	drawn.Item = &chat.Item{Field: "image_generation_call", JSON: `{"status":"completed","type":"image_generation_call"}`}
	spoken := chat.Block{Type: "audio", Data: []byte(wave), MimeType: "audio/wav"}
	const stream, note = "text/event-stream", "[an image of type image/png, which cannot be passed to this model]"
	for name, c := range map[string]struct {
		model spec.Model
		kind  string // of a stream; empty for an answer in one piece
		body  string
		want  []chat.Block
		again string // part of the next request
	}{
		"gemini": {spec.Model{Provider: "google-ai", ModelID: "gemini-3.1-flash-image"}, "",
			fmt.Sprintf(`{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"A cat:"},{"inlineData":{"mimeType":"image/png","data":%q}},{"text":"Done."}]}}]}`, image),
			[]chat.Block{text("A cat:"), picture, text("Done.")}, `"inlineData":{"data":"` + image},
		"gemini, streamed": {spec.Model{Provider: "google-ai", ModelID: "gemini-3.1-flash-image"}, stream,
			events(`{"candidates":[{"content":{"parts":[{"text":"A "}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"cat"}]}}]}`,
				fmt.Sprintf(`{"candidates":[{"finishReason":"STOP","content":{"parts":[{"inlineData":{"mimeType":"image/png","data":%q}}]}}]}`, image)),
			[]chat.Block{text("A cat"), picture}, `"inlineData":{"data":"` + image},
		"bedrock": {spec.Model{Provider: "aws-bedrock", ModelID: "amazon.nova-2-omni-v1:0"}, "",
			fmt.Sprintf(`{"output":{"message":{"role":"assistant","content":[{"text":"A cat:"},{"image":{"format":"png","source":{"bytes":%q}}}]}},"stopReason":"end_turn","usage":{}}`, image),
			[]chat.Block{text("A cat:"), picture}, note},
		"bedrock, streamed": {spec.Model{Provider: "aws-bedrock", ModelID: "amazon.nova-2-omni-v1:0"}, "application/vnd.amazon.eventstream",
			event(t, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"A cat:"}}`) + event(t, "contentBlockStart", `{"contentBlockIndex":1,"start":{"image":{"format":"png"}}}`) +
				event(t, "contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":1,"delta":{"image":{"source":{"bytes":%q}}}}`, image)) +
				event(t, "messageStop", `{"stopReason":"end_turn"}`) + event(t, "metadata", `{"usage":{}}`),
			[]chat.Block{text("A cat:"), picture}, note},
		"openai, sound": {spec.Model{Provider: "openai", ModelID: "gpt-audio"}, "",
			fmt.Sprintf(`{"choices":[{"message":{"content":null,"audio":{"id":"a","data":%q,"transcript":"Meow."}},"finish_reason":"stop"}]}`, sound),
			[]chat.Block{text("Meow."), spoken}, "[a sound of type audio/wav, which cannot be passed to this model]"},
		"openai, sound streamed": {spec.Model{Provider: "openai", ModelID: "gpt-audio"}, stream,
			events(`{"choices":[{"delta":{"audio":{"id":"a","transcript":"Me"}}}]}`, `{"choices":[{"delta":{"audio":{"data":"AAEC","transcript":"ow."}}}]}`,
				`{"choices":[{"delta":{"audio":{"data":"AwQF"}},"finish_reason":"stop"}]}`, "[DONE]"),
			[]chat.Block{text("Meow."), {Type: "audio", Data: []byte{0, 1, 2, 3, 4, 5}, MimeType: "audio/pcm"}}, "[a sound of type audio/pcm"},
		"openrouter": {spec.Model{Provider: "openai", ModelID: "google/gemini-3.1-flash-image"}, "",
			fmt.Sprintf(`{"choices":[{"message":{"content":"A cat:","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]},"finish_reason":"stop"}]}`, image),
			[]chat.Block{picture, text("A cat:")}, note},
		"responses": {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "responses"}, "",
			fmt.Sprintf(`{"status":"completed","output":[{"type":"image_generation_call","status":"completed","result":%q},{"type":"message","content":[{"type":"output_text","text":"A cat."}]}]}`, image),
			[]chat.Block{drawn, text("A cat.")}, `"result":"` + image},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "application/json"
			if c.kind != "" {
				kind = c.kind
			}
			s := modeltest.Serve(t, modeltest.Respond(200, kind, c.body))
			m, err := provider.New(at(c.model, s.URL), cloudEnv())
			testkit.Must(t, err)
			request := model.Request{Stream: c.kind != "", Messages: []chat.Message{chat.Text(chat.User, "Show a cat.")}}
			got, err := model.Call(t.Context(), m, request, nil)
			testkit.Must(t, err)
			if d := cmp.Diff(c.want, got.Message.Blocks); d != "" {
				t.Error(d)
			}
			request.Messages = append(request.Messages, got.Message, chat.Text(chat.User, "Another."))
			if _, err := model.Call(t.Context(), m, request, nil); err != nil {
				t.Error(err)
			}
			if sent := modeltest.JSON(s.Requests()[1].Body); !strings.Contains(sent, c.again) {
				t.Errorf("%s is not in %s", c.again, sent)
			}
		})
	}
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", `{"candidates":[{"finishReason":"STOP","content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%"}}]}}]}`))
	m, err := provider.New(at(spec.Model{Provider: "google-ai", ModelID: "gemini-3.1-flash-image"}, s.URL), cloudEnv())
	testkit.Must(t, err)
	if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil); err == nil || !strings.Contains(err.Error(), "the image/png of the answer is not base64") {
		t.Errorf("got %v", err)
	}
}

// at returns a model at a server.
func at(m spec.Model, url string) *spec.Model {
	m.ID, m.BaseURL, m.Retry = "m", url, &spec.RetryPolicy{MaxAttempts: 1}
	if m.Provider == "openai" {
		m.BaseURL += "/v1"
	}
	m.Auth = spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("token")}}
	return &m
}

// cloudEnv has the region and the project of clouds.
func cloudEnv() provider.Options {
	return provider.Options{Clients: clients(), AWS: awsauthtest.Builder, Getenv: env("AWS_REGION", "us-east-1", "GOOGLE_CLOUD_PROJECT", "shop")}
}
