package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// drawn is an answer with a text, a source and an image.
func drawn() *chat.Message {
	return &chat.Message{Role: chat.Assistant, Blocks: []chat.Block{
		{Type: "text", Text: "A cat"},
		{Type: "citation_url", Text: `{"url":"https://example.com/cats","title":"Cats"}`},
		{Type: "image", Data: []byte("png"), MimeType: "image/png"},
	}}
}

const (
	source  = `{"type":"url_citation","url_citation":{"start_index":0,"end_index":0,"title":"Cats","url":"https://example.com/cats"}}`
	picture = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}`
)

func TestMedia_Chat(t *testing.T) {
	whole := &chatAnswer{}
	whole.text("A cat")
	whole.answer(drawn())
	whole.finish("stop")
	if got := string(marshal(whole.body())); !strings.Contains(got, `"content":"A cat"`) || !strings.Contains(got, `"annotations":[`+source+`],"images":[`+picture+`]`) {
		t.Errorf("whole: %s", got)
	}
	stream := newChatStream(chatHead{}, "run_1", false)
	stream.text("A cat")
	stream.answer(drawn())
	stream.finish("stop")
	if got := string(stream.take()); !strings.Contains(got, `"delta":{"annotations":[`+source+`],"images":[`+picture+`]}`) {
		t.Errorf("stream: %s", got)
	}
}

func TestMedia_Response(t *testing.T) {
	flow := schema.NewFlow(&spec.Flow{ID: "draw"})
	r := newResponse(&turn{request: &request{}, flow: flow})
	r.text("A cat")
	r.answer(drawn())
	r.finish("stop")
	raw, err := json.Marshal(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"text":"A cat","annotations":[{"type":"url_citation","start_index":0,"end_index":0,"title":"Cats","url":"https://example.com/cats"}],"logprobs":[]`,
		`"type":"image_generation_call","status":"completed","result":"cG5n"`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
	if events := string(r.take()); !strings.Contains(events, "event: response.output_text.annotation.added\n") || strings.Count(events, "event: response.output_item.done\n") != 2 {
		t.Errorf("events %s", events)
	}
}
