package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMessage_JSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text", `{"role":"user","blocks":[{"type":"text","content":"hi <b> & \"q\""}]}`, ""},
		{"empty", `{"role":"assistant","blocks":[]}`, ""},
		{"null mime type", `{"role":"user","blocks":[{"type":"text","content":"a","mime_type":null}]}`, `{"role":"user","blocks":[{"type":"text","content":"a"}]}`},
		{"bytes as text", `{"role":"user","blocks":[{"type":"file","content":"ab"}]}`, `{"role":"user","blocks":[{"type":"file","content":{"base64":"YWI="}}]}`},
		{"bytes", `{"role":"user","blocks":[{"type":"image","content":{"base64":"AAEC/w=="},"mime_type":"image/png"}]}`, ""},
		{"address", `{"role":"user","blocks":[{"type":"image","content":{"url":"https://a.example/b.png"}}]}`, ""},
		{"big number", `{"role":"user","blocks":[{"type":"int","content":12345678901234567890}]}`, ""},
		{"citation", `{"role":"model","blocks":[{"type":"citation_url","content":{"url":"u","title":null}}]}`, ""},
		{"calls", `{"role":"assistant","name":"bo","blocks":[],"tool_calls":[{"id":"c1","name":"f","arguments":"{\"a\": 1}"}]}`, ""},
		{"call between texts", `{"role":"assistant","blocks":[{"type":"text","content":"a"},{"type":"tool_call","id":"c1","name":"f","arguments":"{}"},{"type":"commentary","content":"b"}]}`, ""},
		{"stopped", `{"role":"assistant","blocks":[{"type":"text","content":"The beg"}],"stopped":true}`, ""},
		{"call with an item", `{"role":"assistant","blocks":[{"type":"tool_call","id":"c1","name":"f","arguments":"{}","item":{"field":"thoughtSignature","json":"\"<&>\""}}],"origin":{"api":"gemini","server":"s","model":"m"}}`, ""},
		{"reasoning", `{"role":"assistant","blocks":[{"type":"reasoning","content":"hm","item":{"field":"thinking","json":"{ \"a\": 1 }"}},{"type":"item","content":"","item":{"field":"redacted_thinking"}}],"tool_calls":[{"id":"c1","name":"f","arguments":"{}"}],"origin":{"api":"a","server":"s","model":"m"}}`, ""},
		{"result", `{"role":"tool","blocks":[{"type":"text","content":"3"}],"tool_call_id":"c1"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m chat.Message
			if err := json.Unmarshal([]byte(c.in), &m); err != nil {
				t.Fatal(err)
			}
			if m.ID == "" {
				t.Error("a message that was read has no id")
			}
			m.ID = ""
			if c.want == "" {
				c.want = c.in
			}
			if got := encode(t, m); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// encode returns m as JSON without HTML escapes.
func encode(t *testing.T, m chat.Message) string {
	t.Helper()
	raw, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestMessage_UnmarshalJSON_Errors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`[]`, `a message must be a JSON object, not a list`},
		{`{"role":"usr","blocks":[]}`, `unknown role "usr", did you mean "user"?`},
		{`{"role":"x","blocks":[]}`, `unknown role "x": a role is assistant, chatbot, developer, function, model, system, tool, user`},
		{`{"role":5,"blocks":[]}`, `"role" must be a string, not a number`},
		{`{"blocks":[]}`, `a message needs a "role"`},
		{`{"role":"user"}`, `a message needs "blocks"`},
		{`{"role":"user","blocks":[],"stopped":1}`, `"stopped" must be true or false, not a number`},
		{`{"role":"user","blocks":"x"}`, `"blocks" must be a list, not a string`},
		{`{"role":"user","block":[]}`, `a message has no field "block", did you mean "blocks"?`},
		{`{"Role":"user","blocks":[]}`, `a message has no field "Role", did you mean "role"?`},
		{`{"role":"user","role":"user","blocks":[]}`, `a message has the key "role" twice`},
		{`{"role":"user","blocks":[{"type":"txt","content":"a"}]}`, `blocks[0]: unknown block type "txt", did you mean "text"?`},
		{`{"role":"user","blocks":[{"type":"text"}]}`, `blocks[0]: a block needs a "content"`},
		{`{"role":"user","blocks":[{"type":"text","content":"a","name":"f"}]}`, `blocks[0]: a block of type text has no field "name"`},
		{`{"role":"user","blocks":[{"type":"tool_call","id":"c"}]}`, `blocks[0]: a tool call needs a "name"`},
		{`{"role":"user","blocks":[{"type":"item","content":"","item":{"x":1}}]}`, `blocks[0]: "item" has no field "x"`},
		{`{"role":"user","blocks":[{"content":"a"}]}`, `blocks[0]: a block needs a "type"`},
		{`{"role":"user","blocks":[null]}`, `blocks[0]: a block must be a JSON object, not null`},
		{`{"role":"user","blocks":[{"type":"image","content":{"base64":"%%"}}]}`, `blocks[0]: bytes must be base64 text`},
		{`{"role":"user","blocks":[{"type":"image","content":7}]}`, `blocks[0]: the content of a block of bytes must be a JSON object, not a number`},
	} {
		var m chat.Message
		err := m.UnmarshalJSON([]byte(c.in))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestParseOpenAI(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     chat.Message
		out      string
	}{
		{"text", `{"role":"user","content":"hi","name":"bo"}`,
			chat.Message{Role: chat.User, Name: "bo", Blocks: []chat.Block{{Type: "text", Text: "hi"}}},
			`{"role":"user","content":"hi","name":"bo"}`},
		{"null content", `{"role":"assistant","content":null}`, chat.Message{Role: chat.Assistant}, `{"role":"assistant","content":""}`},
		{"nested call", `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{ }"}}]}`,
			chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c1", Name: "f", Arguments: "{ }"}),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{ }"}}]}`},
		{"flat call, arguments an object", `{"role":"assistant","tool_calls":[{"id":"c1","name":"f","arguments":{"b": 1, "a": [2]}}]}`,
			chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c1", Name: "f", Arguments: `{"b":1,"a":[2]}`}),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"b\":1,\"a\":[2]}"}}]}`},
		{"result", `{"role":"tool","tool_call_id":"c1","content":"3"}`,
			chat.Message{Role: chat.Tool, ToolCallID: "c1", Blocks: []chat.Block{{Type: "text", Text: "3"}}},
			`{"role":"tool","content":"3","tool_call_id":"c1"}`},
		{"text parts", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "a"}, {Type: "text", Text: "b"}}},
			`{"role":"user","content":"a\nb"}`},
		{"media parts", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,AAE="}},{"type":"image_url","image_url":{"url":"https://x.example/i"}},{"type":"input_audio","input_audio":{"data":"AAE=","format":"mp3"}},{"type":"file","file":{"file_id":"f1"}}]}`,
			chat.Message{Role: chat.User, Blocks: []chat.Block{
				{Type: "text", Text: "a"}, {Type: "image", Data: []byte{0, 1}, MimeType: "image/gif"}, {Type: "image", Text: "https://x.example/i"},
				{Type: "audio", Data: []byte{0, 1}, MimeType: "audio/mp3"}, {Type: "file", Text: "f1"}}},
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,AAE="}},{"type":"image_url","image_url":{"url":"https://x.example/i"}},{"type":"input_audio","input_audio":{"data":"AAE=","format":"mp3"}},{"type":"file","file":{"file_id":"f1"}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := chat.ParseOpenAI([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			id := m.ID
			m.ID = ""
			if d := cmp.Diff(c.want, m); d != "" || id == "" {
				t.Errorf("id %q, %s", id, d)
			}
			if got := string(chat.OpenAI(m)); got != c.out {
				t.Errorf("got  %s\nwant %s", got, c.out)
			}
		})
	}
}

func TestParseOpenAI_Errors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `a message must be a JSON object, not nothing`},
		{`{"role":"user"`, `a message is cut off: the JSON text ends too early`},
		{`{"role":"user"} x`, `a message is followed by more text`},
		{`{"role":"user","content":"a","contnt":1}`, `a message has no field "contnt", did you mean "content"?`},
		{`{"role":"user","content":3}`, `"content" must be a string, a list of parts or null, not a number`},
		{`{"role":"user","content":[{"type":"image"}]}`, `content[0]: unknown part type "image"`},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,x"}}]}`, `content[0]: a data URL must be base64: data:TYPE;base64,…`},
		{`{"role":"assistant","tool_calls":[{"id":"a"}]}`, `tool_calls[0]: a tool call needs a "name"`},
		{`{"role":"assistant","tool_calls":[{"name":"f","arguments":[1]}]}`, `tool_calls[0]: "arguments" must be a string or an object, not a list`},
		{`{"role":"assistant","tool_calls":[{"function":{"name":"f","args":"{}"}}]}`, `tool_calls[0]: "function" has no field "args"`},
	} {
		_, err := chat.ParseOpenAI([]byte(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestMessage_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genMessage().Draw(t, "message")
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back chat.Message
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if d := cmp.Diff(m, back); d != "" {
			t.Fatalf("%s: %s", raw, d)
		}
		if _, err := chat.ParseOpenAI(chat.OpenAI(m)); err != nil {
			t.Fatalf("%s: %v", chat.OpenAI(m), err)
		}
	})
}

func genMessage() *rapid.Generator[chat.Message] {
	return rapid.Custom(func(t *rapid.T) chat.Message {
		text := rapid.String()
		m := chat.Message{ID: rapid.StringN(1, 8, -1).Draw(t, "id"), Role: rapid.SampledFrom(chat.Roles()).Draw(t, "role"),
			Name: text.Draw(t, "name"), ToolCallID: text.Draw(t, "answers")}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			if rapid.Bool().Draw(t, "media") {
				m.Blocks = append(m.Blocks, chat.Block{Type: rapid.SampledFrom([]string{"image", "file", "audio", "video", "bytes"}).Draw(t, "type"),
					Data: append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "data")...), MimeType: "image/png"})
			} else {
				m.Blocks = append(m.Blocks, chat.Block{Type: "text", Text: text.Draw(t, "text")})
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m = m.With(chat.ToolCall{ID: text.Draw(t, "call"), Name: "f", Arguments: text.Draw(t, "arguments")})
		}
		return m
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"role":"user","blocks":[{"type":"image","content":{"base64":"AA=="}}]}`))
	f.Add([]byte(`{"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := chat.ParseOpenAI(data); err == nil {
			if _, err := chat.ParseOpenAI(chat.OpenAI(m)); err != nil {
				t.Fatalf("%s was written as %s: %v", data, chat.OpenAI(m), err)
			}
		}
		var m, back chat.Message
		if m.UnmarshalJSON(data) != nil {
			return
		}
		raw, err := m.MarshalJSON()
		if err != nil || back.UnmarshalJSON(raw) != nil || cmp.Diff(m, back) != "" {
			t.Fatalf("%s was written as %s: %v", data, raw, cmp.Diff(m, back))
		}
	})
}
