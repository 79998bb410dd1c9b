package openai_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// opener makes a client of one protocol.
type opener func(openai.Config) (*openai.Client, error)

// known describes a model that the catalogue has.
func known(t *testing.T, provider, name string) model.Info {
	t.Helper()
	row, ok := catalogue.Lookup(provider, name)
	if !ok {
		t.Fatalf("the catalogue has no %s", name)
	}
	return model.Info{ID: "m", Provider: provider, Name: name, Known: row}
}

// conversation is a client with the requests that its server got.
type conversation struct {
	model  model.Chat
	server *modeltest.Server
}

func converse(t *testing.T, open opener, info model.Info, params map[string]any, answers ...http.HandlerFunc) conversation {
	t.Helper()
	s := modeltest.Serve(t, answers...)
	c := contractConfig(modeltest.Target{Info: info, URL: s.URL, HTTP: s.Client(), Params: params})
	c.Own = info.Provider == "openai"
	m, err := open(c)
	testkit.Must(t, err)
	return conversation{m, s}
}

// say sends messages and returns the answer.
func (c conversation) say(t *testing.T, stream bool, messages ...chat.Message) *model.Response {
	t.Helper()
	got, err := model.Call(t.Context(), c.model, model.Request{Stream: stream, Messages: messages}, nil)
	testkit.Must(t, err)
	return got
}

// sent returns a value of a request.
func (c conversation) sent(request int, key string) []any {
	list, _ := c.server.Requests()[request].Body[key].([]any)
	return list
}

// results returns a result for each call of a message.
func results(m chat.Message) (all []chat.Message) {
	for _, c := range m.Calls() {
		all = append(all, chat.Message{Role: chat.Tool, ToolCallID: c.ID, Blocks: []chat.Block{{Type: "text", Text: "shipped"}}})
	}
	return all
}

const findCall = `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]`

// A call is forced where the model, by the catalogue or its first answer, can be forced; else the demand is reported as dropped.
func TestRequest_ForcedCalls(t *testing.T) {
	const dropped = "the demand to call a tool, because the provider cannot force a call"
	answer := modeltest.Respond(200, "application/json", `{"choices":[{"message":{"content":"Here."},"finish_reason":"stop"}]}`)
	refusal := modeltest.Respond(400, "application/json", `{"error":{"message":"Thinking mode does not support this tool_choice","type":"invalid_request_error"}}`)
	for name, c := range map[string]struct {
		info    model.Info
		answers []http.HandlerFunc
		want    []any // the tool_choice of each request of two calls
		dropped bool
	}{
		"a model that is forced":   {known(t, "mistral", "mistral-large-4"), []http.HandlerFunc{answer}, []any{"required", "required"}, false},
		"an unknown model":         {model.Info{ID: "m", Name: "mine"}, []http.HandlerFunc{answer}, []any{"required", "required"}, false},
		"GLM takes auto only":      {known(t, "zai", "glm-5.3"), []http.HandlerFunc{answer}, []any{nil, nil}, true},
		"a model that then thinks": {known(t, "deepseek", "deepseek-v4-pro"), []http.HandlerFunc{refusal, answer}, []any{"required", nil, nil}, true},
	} {
		v := converse(t, openai.New, c.info, nil, c.answers...)
		for range 2 {
			got, err := model.Call(t.Context(), v.model, model.Request{MustCall: true, Tools: []model.Tool{{Name: "find"}}, Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, nil)
			testkit.Must(t, err)
			if has := slices.Contains(got.Dropped, dropped); has != c.dropped {
				t.Errorf("%s: dropped %v", name, got.Dropped)
			}
		}
		var sent []any
		for _, r := range v.server.Requests() {
			sent = append(sent, r.Body["tool_choice"])
		}
		if d := cmp.Diff(c.want, sent); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// chatAnswers are messages with a call as servers send them, whole and in pieces, and what the next
// request must have of them.
var chatAnswers = map[string]struct {
	provider, name string
	open           opener
	params         map[string]any
	whole          string
	pieces         []string
	want           string // of the message, without role and calls
	past           bool   // also in the next turn
}{
	"reasoning_content": {"", "some-model", openai.New, nil,
		`"content":null,"reasoning_content":"I <must> look."`, []string{`"reasoning_content":"I <must>"`, `"reasoning_content":" look."`},
		`{"content":null,"reasoning_content":"I <must> look."}`, false},
	"reasoning": {"", "some-model", openai.New, nil,
		`"content":"Wait.","reasoning":"Hm."`, []string{`"reasoning":"Hm."`, `"content":"Wait."`}, `{"content":"Wait.","reasoning":"Hm."}`, false},
	"deepseek": {"deepseek", "deepseek-v4-pro", openai.New, nil,
		`"content":"","reasoning_content":"Hm."`, []string{`"reasoning_content":"Hm."`}, `{"content":null,"reasoning_content":"Hm."}`, true},
	"deepseek without reasoning": {"deepseek", "deepseek-v4-pro", openai.New, nil,
		`"content":""`, []string{`"content":""`}, `{"content":null,"reasoning_content":" "}`, true},
	"glm": {"zai", "glm-5.3", openai.New, map[string]any{"thinking": map[string]any{"type": "enabled", "clear_thinking": false}},
		`"content":"","reasoning_content":"Hm."`, []string{`"reasoning_content":"Hm."`}, `{"content":null,"reasoning_content":"Hm."}`, true},
	"openrouter": {"", "some/model", openai.New, nil,
		`"content":"","reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"S","index":0,"id":null},{"type":"reasoning.encrypted","data":"E","index":1}]`,
		[]string{`"reasoning":"H","reasoning_details":[{"type":"reasoning.text","text":"H","index":0,"id":null}]`,
			`"reasoning":"m.","reasoning_details":[{"type":"reasoning.text","text":"m.","signature":"S","index":0}]`, `"reasoning_details":[{"type":"reasoning.encrypted","data":"E","index":1}]`},
		`{"content":null,"reasoning_details":[{"id":null,"index":0,"signature":"S","text":"Hm.","type":"reasoning.text"},{"data":"E","index":1,"type":"reasoning.encrypted"}]}`, false},
	"minimax": {"minimax", "MiniMax-M3", openai.New, nil,
		`"content":"<think>\nHm.\n</think>\n\nWait."`, []string{`"content":"<thi"`, `"content":"nk>\nHm."`, `"content":"\n</think>\n\nWait."`},
		`{"content":"<think>\nHm.\n</think>\n\nWait."}`, true},
	"think without a name": {"", "some-model", openai.New, nil,
		`"content":"<think>Hm.</think>Wait."`, []string{`"content":"<think>Hm.</think>Wait."`}, `{"content":"Wait."}`, true},
	"mistral": {"mistral", "mistral-large-4", openai.NewMistral, nil,
		`"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}],"closed":true},{"type":"text","text":"Wait."}]`,
		[]string{`"content":[{"type":"thinking","thinking":[{"type":"text","text":"H"}]}]`, `"content":[{"type":"thinking","thinking":[{"type":"text","text":"m."}],"closed":true}]`, `"content":"Wait."`},
		`{"content":[{"closed":true,"thinking":[{"text":"Hm.","type":"text"}],"type":"thinking"},{"text":"Wait.","type":"text"}]}`, true},
	"mistral with a reference": {"mistral", "mistral-large-4", openai.NewMistral, nil,
		`"content":[{"type":"text","text":"As in "},{"type":"reference","reference_ids":[1]}]`, []string{`"content":[{"type":"text","text":"As in "},{"type":"reference","reference_ids":[1]}]`},
		`{"content":[{"text":"As in ","type":"text"},{"reference_ids":[1],"type":"reference"}]}`, true},
}

// TestReturn_Chat has conversations with servers that want back what they sent with a call: under the
// same name, after a store, in the turn of the call or in all turns; another model gets nothing of it.
func TestReturn_Chat(t *testing.T) {
	for name, c := range chatAnswers {
		t.Run(name, func(t *testing.T) {
			info := model.Info{ID: "m", Name: c.name}
			if c.provider != "" {
				info = known(t, c.provider, c.name)
			}
			call := findCall
			if c.provider == "mistral" {
				call = `"tool_calls":[{"index":0,"id":"abcdefghi","type":"function","function":{"name":"find","arguments":"{}"}}]`
			}
			whole := modeltest.Respond(200, "application/json", `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",`+c.whole+`,`+call+`}}]}`)
			var events []string
			for _, piece := range append(c.pieces, call) {
				events = append(events, `{"choices":[{"index":0,"delta":{`+piece+`}}]}`)
			}
			streamed := sse(append(events, finish("tool_calls"), "[DONE]")...)
			for _, stream := range []bool{false, true} {
				first := whole
				if stream {
					first = streamed
				}
				v := converse(t, c.open, info, c.params, first, whole, whole)
				question := chat.Text(chat.User, "Where?")
				answer := modeltest.Stored(t, v.say(t, stream, question).Message)
				turn := append([]chat.Message{question, answer}, results(answer)...)
				v.say(t, false, turn...)
				v.say(t, false, append(turn, chat.Text(chat.Assistant, "Here."), question)...)
				var want object
				testkit.Must(t, json.Unmarshal([]byte(c.want), &want))
				if d := cmp.Diff(want, rest(v.sent(1, "messages")[1])); d != "" {
					t.Errorf("stream %v: %s", stream, d)
				}
				if !c.past {
					want = object{"content": want["content"]}
				}
				if d := cmp.Diff(want, rest(v.sent(2, "messages")[1])); d != "" {
					t.Errorf("stream %v, the next turn: %s", stream, d)
				}
				other := converse(t, openai.New, model.Info{ID: "other", Name: "other"}, nil, whole)
				other.say(t, false, turn...)
				for name := range rest(other.sent(0, "messages")[1]) {
					if name != "content" {
						t.Errorf("another model gets %s", name)
					}
				}
			}
		})
	}
}

// rest returns a message without its role and calls.
func rest(message any) object {
	m := message.(object)
	delete(m, "role")
	delete(m, "tool_calls")
	return m
}

// A call has its signature in all turns, and a tool with a grammar gets a text.
func TestReturn_Calls(t *testing.T) {
	signed := `{"index":0,"id":"c1","type":"function","function":{"name":"find","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S<1>"}}}`
	custom := `{"index":1,"id":"c2","type":"custom","custom":{"name":"run","input":"a \"b\""}}`
	tools := []model.Tool{{Name: "find"}, {Name: "run", Parameters: []byte(`{"type":"object","properties":{"code":{"type":"string"}}}`), Grammar: &model.Grammar{Syntax: "lark", Definition: "start: x"}}}
	for _, stream := range []bool{false, true} {
		answer := modeltest.Respond(200, "application/json", `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[`+signed+`,`+custom+`]}}]}`)
		if stream {
			answer = sse(`{"choices":[{"index":0,"delta":{"tool_calls":[`+signed+`]}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[`+custom+`]}}]}`, finish("tool_calls"), "[DONE]")
		}
		v := converse(t, openai.New, known(t, "openai", "gpt-5.5"), nil, answer, answer)
		req := model.Request{Stream: stream, Tools: tools, Messages: []chat.Message{chat.Text(chat.User, "Where?")}}
		got, err := model.Call(t.Context(), v.model, req, nil)
		testkit.Must(t, err)
		if calls := got.Message.Calls(); len(calls) != 2 || calls[1].Arguments != `{"code":"a \"b\""}` {
			t.Errorf("got %+v", calls)
		}
		message := modeltest.Stored(t, got.Message)
		req.Messages = append(append(req.Messages, message), results(message)...)
		_, err = model.Call(t.Context(), v.model, req, nil)
		testkit.Must(t, err)
		sent := v.sent(1, "messages")[1].(object)["tool_calls"].([]any)
		want := []any{object{"id": "c1", "type": "function", "function": object{"name": "find", "arguments": "{}"}, "extra_content": object{"google": object{"thought_signature": "S<1>"}}},
			object{"id": "c2", "type": "custom", "custom": object{"name": "run", "input": `a "b"`}}}
		if d := cmp.Diff(want, sent); d != "" {
			t.Error(d)
		}
		declared := v.sent(0, "tools")[1]
		if d := cmp.Diff(object{"type": "custom", "custom": object{"name": "run", "format": object{"type": "grammar", "grammar": object{"syntax": "lark", "definition": "start: x"}}}}, declared); d != "" {
			t.Error(d)
		}
	}
}

// OpenAI's own service gets the names and markers that others do not know.
func TestRequest_OwnService(t *testing.T) {
	long := chat.Text(chat.System, strings.Repeat("Be brief. ", 400))
	for provider, want := range map[string]string{
		"openai": `{"max_completion_tokens":50,"message":[{"prompt_cache_breakpoint":{"mode":"explicit"},"text":"long","type":"text"}]}`,
		"":       `{"max_tokens":50,"message":"long"}`,
	} {
		info := known(t, provider, "gpt-6-sol")
		v := converse(t, openai.New, info, map[string]any{"max_tokens": 50}, modeltest.Respond(200, "application/json", wholeAnswer(modeltest.Answer{Chunks: []string{"Yes."}})))
		v.say(t, false, long, chat.Text(chat.User, "x"))
		body := v.server.Requests()[0].Body
		got := object{"message": body["messages"].([]any)[0].(object)["content"]}
		if parts, ok := got["message"].([]any); ok {
			parts[0].(object)["text"] = "long"
		} else {
			got["message"] = "long"
		}
		for _, name := range []string{"max_tokens", "max_completion_tokens", "prompt_cache_options"} {
			if body[name] != nil {
				got[name] = body[name]
			}
		}
		if modeltest.JSON(got) != want {
			t.Errorf("%q: got %s", provider, modeltest.JSON(got))
		}
	}
}
