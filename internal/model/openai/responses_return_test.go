package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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

// output returns a response with items, whole or as a stream without deltas.
func output(stream bool, items ...string) http.HandlerFunc {
	whole := `{"object":"response","status":"completed","output":[` + strings.Join(items, ",") + `]}`
	if !stream {
		return modeltest.Respond(200, "application/json", whole)
	}
	var events []string
	for i, item := range items {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	}
	return sse(append(events, `{"type":"response.completed","response":`+whole+`}`)...)
}

// decoded returns JSON values.
func decoded(t *testing.T, texts ...string) []any {
	t.Helper()
	values := make([]any, len(texts))
	for i, text := range texts {
		testkit.Must(t, json.Unmarshal([]byte(text), &values[i]))
	}
	return values
}

const (
	sealed     = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"A < b"}],"encrypted_content":"E<1>","status":"completed"}`
	sealedToo  = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"E2"}`
	searched   = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"order 7"}}`
	unknown    = `{"type":"telepathy_call","id":"tp_1","mind":{"a":[1,2]},"arguments":{"x":1}}`
	commentary = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`
	called     = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"find","arguments":"{\"n\":7}","status":"completed","namespace":"orders","caller":{"type":"program","caller_id":"p1"}}`
	custom     = `{"type":"custom_tool_call","id":"ctc_1","call_id":"c2","name":"run","input":"a b"}`
	drawn      = `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"iVBORw0KGgo=","output_format":"png"}`
	toolsItem  = `{"type":"mcp_list_tools","id":"mcpl_1","server_label":"docs","tools":[{"name":"search"}]}`
	approval   = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"search","arguments":"{\"q\":\"A < b\"}"}`
	approvals  = `{"type":"mcp_approval_request","id":"mcpr_2","server_label":"docs","name":"erase","arguments":"all"}`
	compaction = `{"type":"compaction","id":"cmp_1","encrypted_content":"C"}`
	asked      = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Where?"}]}`
	callBack   = `{"type":"function_call","call_id":"c1","name":"find","arguments":"{\"n\":7}","namespace":"orders","caller":{"type":"program","caller_id":"p1"}}`
	customBack = `{"type":"custom_tool_call","call_id":"c2","name":"run","input":"a b"}`
	noteBack   = `{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]}`
	resultOne  = `{"type":"function_call_output","call_id":"c1","output":"shipped","caller":{"type":"program","caller_id":"p1"}}`
	resultTwo  = `{"type":"custom_tool_call_output","call_id":"c2","output":"shipped"}`
)

// TestReturn_Responses has outputs whose items go back after a store, in their order and as they came.
func TestReturn_Responses(t *testing.T) {
	for name, c := range map[string]struct {
		items, want []string
	}{
		"reasoning before commentary and calls":       {[]string{sealed, commentary, called, sealedToo, custom}, []string{asked, sealed, noteBack, callBack, sealedToo, customBack, resultOne, resultTwo}},
		"hosted and unknown items":                    {[]string{sealed, searched, unknown, called}, []string{asked, sealed, searched, unknown, callBack, resultOne}},
		"a generated image":                           {[]string{sealed, drawn, called}, []string{asked, sealed, drawn, callBack, resultOne}},
		"a compaction":                                {[]string{sealed, compaction, sealedToo, called}, []string{compaction, sealedToo, callBack, resultOne}},
		"a compaction after the call":                 {[]string{sealed, called, compaction}, []string{compaction, callBack, resultOne}},
		"reasoning that is cut off":                   {[]string{called, sealed}, []string{asked, callBack, resultOne}},
		"reasoning that the server would have stored": {[]string{`{"type":"reasoning","id":"rs_9","summary":[]}`, called}, []string{asked, callBack, resultOne}},
	} {
		for _, stream := range []bool{false, true} {
			v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil, output(stream, c.items...))
			question := chat.Text(chat.User, "Where?")
			got := v.say(t, stream, question)
			if got.Message.Text() != "" || got.Finish != "tool_calls" {
				t.Errorf("%s: text %q, finish %s", name, got.Message.Text(), got.Finish)
			}
			answer := modeltest.Stored(t, got.Message)
			turn := append([]chat.Message{question, answer}, results(answer)...)
			v.say(t, stream, turn...)
			if d := cmp.Diff(decoded(t, c.want...), v.sent(1, "input")); d != "" {
				t.Errorf("%s, stream %v: %s", name, stream, d)
			}
			other := converse(t, openai.NewResponses, model.Info{ID: "o", Name: "gpt-5.5"}, nil, output(false, commentary))
			other.say(t, false, turn...)
			if sent := modeltest.JSON(other.sent(0, "input")); strings.Contains(sent, "encrypted") || strings.Contains(sent, "telepathy") || !strings.Contains(sent, `"function_call"`) {
				t.Errorf("%s: another model gets %s", name, sent)
			}
		}
	}
}

// A request for an approval is a call of the hosted tool, and the result of the call is the decision.
func TestReturn_Approvals(t *testing.T) {
	tools := []model.Tool{{Name: "manual", Hosted: "mcp", Settings: []byte(`{"server_label":"docs","server_url":"https://docs.example/mcp"}`)}, {Name: "find"}}
	for _, stream := range []bool{false, true} {
		v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil, output(stream, sealed, toolsItem, approval, approvals, called))
		ask := func(messages ...chat.Message) *model.Response {
			got, err := model.Call(t.Context(), v.model, model.Request{Stream: stream, Tools: tools, Messages: messages}, nil)
			testkit.Must(t, err)
			return got
		}
		question := chat.Text(chat.User, "Where?")
		answer := modeltest.Stored(t, ask(question).Message)
		wantCalls := []chat.ToolCall{{ID: "mcpr_1", Name: "manual", Arguments: `{"name":"search","arguments":{"q":"A < b"}}`},
			{ID: "mcpr_2", Name: "manual", Arguments: `{"name":"erase","arguments":"all"}`}, {ID: "c1", Name: "find", Arguments: `{"n":7}`}}
		if d := cmp.Diff(wantCalls, answer.Calls()); d != "" {
			t.Error(d)
		}
		decided := results(answer)
		decided[0].Blocks[0].Text, decided[1].Blocks[0].Text = model.Approved, "error: not on Sundays"
		turn := append([]chat.Message{question, answer}, decided...)
		ask(turn...)
		want := decoded(t, asked, sealed, toolsItem, approval, approvals, callBack,
			`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`,
			`{"type":"mcp_approval_response","approval_request_id":"mcpr_2","approve":false,"reason":"error: not on Sundays"}`, resultOne)
		if d := cmp.Diff(want, v.sent(1, "input")); d != "" {
			t.Errorf("stream %v: %s", stream, d)
		}
		other := converse(t, openai.New, model.Info{ID: "o", Name: "gpt-5.5"}, nil, modeltest.Respond(200, "application/json", `{"choices":[{"message":{"content":"Here."},"finish_reason":"stop"}]}`))
		other.say(t, false, turn...)
		if sent := modeltest.JSON(other.sent(0, "messages")); strings.Contains(sent, "mcpr_") || strings.Contains(sent, model.Approved) || !strings.Contains(sent, `"shipped"`) {
			t.Errorf("another model gets %s", sent)
		}
	}
}

// A request for an approval of a tool that the request does not have is an error.
func TestResponses_ApprovalOfUnknownServer(t *testing.T) {
	v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil, output(false, approval))
	_, err := model.Call(t.Context(), v.model, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
	if err == nil || !strings.Contains(err.Error(), `an approval is requested for a call of "docs", and the request has no tool with this server_label`) {
		t.Errorf("got %v", err)
	}
}

// The text of an answer is that of its final message; what the model writes before is commentary.
func TestResponses_Phases(t *testing.T) {
	final := strings.NewReplacer("commentary", "final_answer", "I look.", "Here.", `"annotations":[]`,
		`"annotations":[{"type":"url_citation","url":"https://shop.example","title":"Shop","start_index":0,"end_index":4},{"type":"file_citation","file_id":"f"}]`).Replace(commentary)
	deltas := sse(`{"type":"response.output_item.added","item":{"type":"message","phase":"commentary","content":[]}}`, `{"type":"response.output_text.delta","delta":"I look."}`,
		`{"type":"response.output_item.done","item":`+commentary+`}`, `{"type":"response.output_item.added","item":{"type":"message","phase":"final_answer"}}`,
		`{"type":"response.output_text.delta","delta":"He"}`, `{"type":"response.output_text.delta","delta":"re."}`,
		`{"type":"response.output_item.done","item":`+final+`}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)
	for name, answer := range map[string]http.HandlerFunc{"whole": output(false, commentary, final), "stream": output(true, commentary, final), "deltas": deltas} {
		v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil, answer)
		var text, notes strings.Builder
		got, err := model.Call(t.Context(), v.model, model.Request{Stream: name != "whole", Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, func(ev model.Event) {
			text.WriteString(ev.Text)
			notes.WriteString(ev.Commentary)
		})
		testkit.Must(t, err)
		if got.Message.Text() != "Here." || name != "whole" && (text.String() != "Here." || notes.String() != "I look.") {
			t.Errorf("%s: text %q, deltas %q and %q", name, got.Message.Text(), text.String(), notes.String())
		}
		last := got.Message.Blocks[len(got.Message.Blocks)-1]
		if last.Type != "citation_url" || last.Text != `{"title":"Shop","url":"https://shop.example"}` {
			t.Errorf("%s: the last block is %+v", name, last)
		}
		v.say(t, false, chat.Text(chat.User, "Where?"), modeltest.Stored(t, got.Message), chat.Text(chat.User, "Where?"))
		want := decoded(t, asked, noteBack, strings.NewReplacer("commentary", "final_answer", "I look.", "Here.").Replace(noteBack), asked)
		if d := cmp.Diff(want, v.sent(1, "input")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Parameters with the names of chat completions, and objects of the document, are merged.
func TestResponses_Parameters(t *testing.T) {
	schema := &model.Schema{Name: "s", JSON: []byte(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)}
	format := `"format":{"name":"s","schema":{"additionalProperties":false,"properties":{},"required":[],"type":"object"},"strict":true,"type":"json_schema"}`
	for _, c := range []struct {
		params map[string]any
		schema *model.Schema
		want   object
	}{
		{map[string]any{"reasoning": map[string]any{"summary": "auto"}, "reasoning_effort": "high"}, nil, object{"reasoning": `{"effort":"high","summary":"auto"}`}},
		{map[string]any{"reasoning": map[string]any{"effort": "low"}, "reasoning_effort": "high"}, nil, object{"reasoning": `{"effort":"low"}`}},
		{map[string]any{"text": map[string]any{"verbosity": "low"}}, schema, object{"text": `{` + format + `,"verbosity":"low"}`}},
		{map[string]any{"verbosity": "low"}, nil, object{"text": `{"verbosity":"low"}`}},
		{map[string]any{"max_tokens": 1, "max_completion_tokens": 2}, nil, object{"max_output_tokens": `2`, "max_tokens": `null`}},
		{map[string]any{"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "a"}}}, schema, object{"text": `{"format":{"name":"a","type":"json_schema"}}`}},
		{map[string]any{"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": "f"}}}, nil, object{"tool_choice": `{"name":"f","type":"function"}`}},
		{map[string]any{"include": []string{"web_search_call.results"}}, nil, object{"include": `["web_search_call.results","reasoning.encrypted_content"]`}},
		{map[string]any{"prompt_cache_key": "k", "context_management": []any{}}, nil, object{"prompt_cache_key": `"k"`, "context_management": `[]`}},
	} {
		v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6-sol"), c.params, output(false, commentary))
		_, err := model.Call(t.Context(), v.model, model.Request{Schema: c.schema, Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
		testkit.Must(t, err)
		for name, want := range c.want {
			if got := modeltest.JSON(v.server.Requests()[0].Body[name]); got != want {
				t.Errorf("%v: %s is %s, want %s", c.params, name, got, want)
			}
		}
	}
}

// Hosted tools have OpenAI's names; deferred tools come with a search; other hosted tools are errors.
func TestResponses_Tools(t *testing.T) {
	tools := []model.Tool{
		{Name: "search", Hosted: "web_search", Settings: []byte(`{"search_context_size":"low"}`)}, {Name: "code", Hosted: "code_execution"},
		{Name: "find", Deferred: true}, {Name: "file", Strict: true, Parameters: []byte(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"],"additionalProperties":false}`)}, {Name: "run", Description: "runs", Grammar: &model.Grammar{Syntax: "regex", Definition: "a*"}},
	}
	v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6-sol"), nil, output(false, commentary))
	ask := func(tools ...model.Tool) error {
		_, err := model.Call(t.Context(), v.model, model.Request{Tools: tools, Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
		return err
	}
	testkit.Must(t, ask(tools...))
	want := decoded(t, `{"type":"web_search","search_context_size":"low"}`, `{"type":"code_interpreter","container":{"type":"auto"}}`,
		`{"type":"function","name":"find","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}`,
		`{"type":"function","name":"file","parameters":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"],"additionalProperties":false},"strict":true}`,
		`{"type":"custom","name":"run","description":"runs","format":{"type":"grammar","syntax":"regex","definition":"a*"}}`, `{"type":"tool_search"}`)
	if d := cmp.Diff(want, v.sent(0, "tools")); d != "" {
		t.Error(d)
	}
	if err := ask(model.Tool{Name: "maps", Hosted: "google_search"}); err == nil || !strings.Contains(err.Error(), "tool maps: the Responses API has no hosted tool google_search") {
		t.Errorf("got %v", err)
	}
}

// The catalogue knows which models stream always or never; the caller gets deltas if it wants them, and the
// first request has the right form.
func TestStream_ByCatalogue(t *testing.T) {
	for _, c := range []struct {
		open     opener
		info     model.Info
		answer   http.HandlerFunc
		streamed bool
	}{
		{openai.NewResponses, known(t, "openai", "gpt-5-pro"), output(false, sealed, commentary, strings.NewReplacer("commentary", "final_answer", "I look.", "Here.").Replace(commentary)), false},
		{openai.New, known(t, "qwen", "qwq-plus"), sse(`{"choices":[{"delta":{"reasoning_content":"A < b"}}]}`, `{"choices":[{"delta":{"content":"Here."},"finish_reason":"stop"}]}`, `[DONE]`), true},
	} {
		for _, wanted := range []bool{false, true} {
			v := converse(t, c.open, c.info, nil, c.answer)
			var text, reasoning strings.Builder
			got, err := model.Call(t.Context(), v.model, model.Request{Stream: wanted, Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, func(ev model.Event) {
				text.WriteString(ev.Text)
				reasoning.WriteString(ev.Reasoning)
			})
			testkit.Must(t, err)
			requests := v.server.Requests()
			if len(requests) != 1 || (requests[0].Body["stream"] == true) != c.streamed || got.Message.Text() != "Here." {
				t.Errorf("%s: the requests are %v, the answer %q", c.info.Name, requests, got.Message.Text())
			}
			if want := map[bool]string{true: "A < b Here."}[wanted]; strings.TrimSpace(reasoning.String()+" "+text.String()) != want {
				t.Errorf("%s, wanted %v: the deltas are %q and %q", c.info.Name, wanted, reasoning.String(), text.String())
			}
		}
	}
}

// A response that failed is an error, also without an error object.
func TestResponses_Failed(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":"failed","output":[],"error":{"code":"server_error","message":"it broke"}}`: "it broke",
		`{"status":"failed","output":[],"error":null}`:                                         "the response has the status failed and no error",
		`{"status":"failed"}`:                "the response has the status failed and no error",
		`{"status":"queued","output":[]}`:    "the response has the status queued and no error",
		`{"status":"cancelled","output":[]}`: "the response has the status cancelled and no error",
	} {
		for _, stream := range []bool{false, true} {
			answer := modeltest.Respond(200, "application/json", body)
			if stream {
				answer = sse(`{"type":"response.failed","response":` + body + `}`)
			}
			v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6-sol"), nil, answer)
			if f := failure(t, v.model, stream); !strings.Contains(f.Message, want) || !f.Temporary {
				t.Errorf("%s: got %q, temporary %v", body, f.Message, f.Temporary)
			}
		}
	}
}

// The code of an error event says whether another call may succeed.
func TestResponses_ErrorEvents(t *testing.T) {
	for event, want := range map[string]model.Error{
		`"code":"rate_limit_exceeded"`:            {Status: 429, Code: "rate_limit_exceeded", Temporary: true},
		`"code":"server_error"`:                   {Status: 500, Code: "server_error", Temporary: true},
		`"code":"insufficient_quota"`:             {Status: 429, Code: "insufficient_quota"},
		`"code":"invalid_prompt"`:                 {Status: 400, Code: "invalid_prompt"},
		`"code":"image_content_policy_violation"`: {Status: 400, Code: "image_content_policy_violation"},
		`"code":"context_length_exceeded"`:        {Status: 400, Code: "context_length_exceeded", TooLong: true},
		`"code":"something_new"`:                  {Status: 500, Code: "something_new", Temporary: true},
		`"code":null`:                             {Status: 500, Code: "server_error", Temporary: true},
		`"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"No."}`: {Status: 429, Code: "rate_limit_exceeded", Temporary: true},
	} {
		v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6-sol"), nil, sse(`{"type":"error","message":"No.","param":null,"sequence_number":3,`+event+`}`))
		f := failure(t, v.model, true)
		if f.Message != "No." || f.Status != want.Status || f.Code != want.Code || f.Temporary != want.Temporary || f.TooLong != want.TooLong {
			t.Errorf("%s: got %+v", event, f)
		}
	}
}

// TestUsage has the tokens that providers charge differently, and the tier that was used.
func TestUsage(t *testing.T) {
	chatBody := `{"service_tier":"priority","choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"}}],"usage":{"prompt_tokens":90,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":30,"audio_tokens":4},"completion_tokens_details":{"reasoning_tokens":6}}}`
	hit := `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"}}],"usage":{"prompt_tokens":90,"completion_tokens":9,"prompt_cache_hit_tokens":64}}`
	xai := `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"}}],"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}}`
	kimi := `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"},"usage":{"prompt_tokens":90,"completion_tokens":9,"total_tokens":99,"cached_tokens":64}}]}`
	response := `{"status":"completed","service_tier":"flex","output":[` + commentary + `],"usage":{"input_tokens":90,"output_tokens":9,"input_tokens_details":{"cached_tokens":5,"cache_write_tokens":30,"cache_write_tokens_details":{"ttl_30m_tokens":10,"ttl_12h_tokens":20}},"output_tokens_details":{"reasoning_tokens":6}}}`
	for _, c := range []struct {
		open opener
		body string
		want model.Usage
	}{
		{openai.New, chatBody, model.Usage{Input: 90, Output: 9, Cached: 5, CacheWrite: 30, AudioInput: 4, Reasoning: 6, Tier: "priority"}},
		{openai.New, hit, model.Usage{Input: 90, Output: 9, Cached: 64}},
		{openai.New, xai, model.Usage{Input: 32, Output: 103, Reasoning: 94}},
		{openai.New, kimi, model.Usage{Input: 90, Output: 9, Cached: 64}},
		{openai.NewResponses, response, model.Usage{Input: 90, Output: 9, Cached: 5, CacheWrite: 30, CacheWrites: catalogue.CacheWrites{Minutes30: 10, Hours12: 20}, Reasoning: 6, Tier: "flex"}},
	} {
		v := converse(t, c.open, model.Info{ID: "m", Name: "some-model"}, nil, modeltest.Respond(200, "application/json", c.body))
		if d := cmp.Diff(c.want, v.say(t, false, chat.Text(chat.User, "x")).Usage); d != "" {
			t.Error(d)
		}
	}
}

// Two messages of one answer are two texts, and parts of one message are one, in the deltas too.
func TestResponses_TextsOfOneAnswer(t *testing.T) {
	const message = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"On"},{"type":"output_text","text":"e."}]}`
	second := strings.NewReplacer("On", "Tw", "e.", "o.").Replace(message)
	delta := func(text string) string {
		return fmt.Sprintf(`{"type":"response.output_text.delta","delta":%q}`, text)
	}
	const begin, end = `{"type":"response.output_item.added","item":{"type":"message"}}`, `{"type":"response.output_item.done","item":`
	for name, answer := range map[string]http.HandlerFunc{
		"items":   output(true, message, second),
		"deltas":  sse(begin, delta("On"), delta("e."), end+message+"}", begin, delta("Tw"), delta("o."), end+second+"}", `{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		"cut off": sse(begin, delta("On"), delta("e."), end+message+"}", begin, delta("Tw"), delta("o."), `{"type":"response.incomplete","response":{"status":"incomplete","output":[]}}`),
	} {
		v := converse(t, openai.NewResponses, known(t, "openai", "gpt-6.1-sol"), nil, answer)
		var text strings.Builder
		got, err := model.Call(t.Context(), v.model, model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, func(ev model.Event) { text.WriteString(ev.Text) })
		testkit.Must(t, err)
		if got.Message.Text() != "One.\nTwo." || text.String() != got.Message.Text() {
			t.Errorf("%s: the text is %q, the deltas %q", name, got.Message.Text(), text.String())
		}
	}
}
