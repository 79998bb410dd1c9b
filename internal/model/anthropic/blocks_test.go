package anthropic_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// talk is a conversation with a server that answers with one list of blocks after the other.
type talk struct {
	t      *testing.T
	client model.Chat
	bodies []string      // of the requests
	heads  []http.Header // of the requests
	list   []chat.Message
	stream bool
	deltas strings.Builder
}

// reply is an answer of the server.
type reply struct {
	blocks string // the list of blocks
	stop   string // end_turn by default
	refuse string // the message of an error 400; empty for an answer
	more   string // members of the end of the message
	change string // input_transformations; empty for none
}

// options are what a test sets of the client.
type options struct {
	name   string // of the model
	params map[string]any
	change func(*anthropic.Config)
	vertex bool
}

func newTalk(t *testing.T, stream bool, with options, replies ...reply) *talk {
	t.Helper()
	c := &talk{t: t, stream: stream}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.bodies, c.heads = append(c.bodies, string(raw)), append(c.heads, r.Header)
		replies[min(len(c.bodies), len(replies))-1].write(w, strings.Contains(string(raw), `"stream":true`))
	}))
	t.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if !stream && with.params == nil {
		with.params = map[string]any{"max_tokens": 1000} // longer answers are always streamed
	}
	cfg := anthropic.Config{}
	cfg.Info = model.Info{ID: "m", Name: cmp.Or(with.name, "claude")}
	cfg.Info.Known, _ = catalogue.Lookup("anthropic", cfg.Info.Name)
	cfg.BaseURL, cfg.Params, cfg.HTTP = "https://api.anthropic.com", with.params, &http.Client{Transport: redirected{to}}
	if with.change != nil {
		with.change(&cfg)
	}
	if with.vertex {
		c.client, err = anthropic.NewVertex(cfg, []string{"models", "m"})
	} else {
		c.client, err = anthropic.New(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// elsewhere is a change for a client of a server that is not Anthropic's.
func elsewhere(c *anthropic.Config) { c.BaseURL = "http://claude.example" }

// redirected carries all calls to a server on loopback.
type redirected struct{ to *url.URL }

// RoundTrip sends the request.
func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(req)
}

// write sends the answer.
func (r reply) write(w http.ResponseWriter, stream bool) {
	if r.refuse != "" {
		w.WriteHeader(http.StatusBadRequest)
		raw, _ := json.Marshal(object{"type": "error", "error": object{"type": "invalid_request_error", "message": r.refuse}})
		_, _ = w.Write(raw)
		return
	}
	end := `"stop_reason":"` + cmp.Or(r.stop, "end_turn") + `"`
	if r.more != "" {
		end += "," + r.more
	}
	changes := `,"input_transformations":` + cmp.Or(r.change, "null")
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":`+cmp.Or(r.blocks, "[]")+`,"usage":{"input_tokens":5,"output_tokens":2},`+end+changes+`}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind, rest string) {
		_, _ = io.WriteString(w, "event: "+kind+"\ndata: {\"type\":\""+kind+"\""+rest+"}\n\n")
	}
	send("message_start", `,"message":{"type":"message","content":[],"usage":{"input_tokens":5,"output_tokens":1}}`)
	var blocks []json.RawMessage
	_ = json.Unmarshal([]byte(cmp.Or(r.blocks, "[]")), &blocks)
	for i, b := range blocks {
		index := `,"index":` + string(rune('0'+i))
		begin, deltas := parts(string(b))
		send("content_block_start", index+`,"content_block":`+begin)
		for _, d := range deltas {
			send("content_block_delta", index+`,"delta":`+d)
		}
		send("content_block_stop", index)
	}
	send("message_delta", `,"delta":{`+end+`},"usage":{"output_tokens":2}`+changes)
	send("message_stop", "")
}

// parts returns how a block begins in a stream, and its deltas.
func parts(b string) (begin string, deltas []string) {
	var v struct {
		Type, Text, Thinking, Signature, Content string
		Input                                    json.RawMessage
		Citations                                []json.RawMessage
	}
	_ = json.Unmarshal([]byte(b), &v)
	switch v.Type {
	case "text":
		begin = `{"type":"text","text":""}`
		if v.Citations != nil {
			begin = `{"type":"text","text":"","citations":[]}`
		}
		half := len([]rune(v.Text)) / 2
		for _, s := range []string{string([]rune(v.Text)[:half]), string([]rune(v.Text)[half:])} {
			raw, _ := json.Marshal(s)
			deltas = append(deltas, `{"type":"text_delta","text":`+string(raw)+`}`)
		}
		for _, c := range v.Citations {
			deltas = append(deltas, `{"type":"citations_delta","citation":`+string(c)+`}`)
		}
	case "thinking":
		begin = `{"type":"thinking","thinking":"","signature":""}`
		if v.Thinking != "" {
			raw, _ := json.Marshal(v.Thinking)
			deltas = []string{`{"type":"thinking_delta","thinking":` + string(raw) + `}`}
		}
		if v.Signature == "" {
			return `{"type":"thinking","thinking":""}`, deltas
		}
		deltas = append(deltas, `{"type":"signature_delta","signature":"`+v.Signature+`"}`)
	case "tool_use", "server_tool_use":
		input := string(v.Input)
		begin = strings.Replace(b, input, "{}", 1)
		for _, s := range []string{input[:len(input)/2], input[len(input)/2:]} {
			raw, _ := json.Marshal(s)
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+string(raw)+`}`)
		}
	case "compaction":
		begin = strings.Replace(b, `"content":"`+v.Content+`"`, `"content":null`, 1)
		deltas = []string{`{"type":"compaction_delta","content":"` + v.Content + `"}`}
	default:
		begin = b
	}
	return begin, deltas
}

// say adds a message of the user and requests an answer.
func (c *talk) say(text string, tools ...model.Tool) (*model.Response, error) {
	c.list = append(c.list, chat.Text(chat.User, text))
	return c.next(tools...)
}

// next requests an answer and adds it, read back from its JSON.
func (c *talk) next(tools ...model.Tool) (*model.Response, error) {
	got, err := model.Call(c.t.Context(), c.client, model.Request{Messages: c.list, Tools: tools, Stream: c.stream}, func(ev model.Event) { c.deltas.WriteString(ev.Text + ev.Reasoning) })
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(got.Message)
	if err != nil {
		c.t.Fatal(err)
	}
	var m chat.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		c.t.Fatal(err)
	}
	c.list = append(c.list, m)
	return got, nil
}

// must is say for answers that cannot fail.
func (c *talk) must(text string, tools ...model.Tool) *model.Response {
	c.t.Helper()
	got, err := c.say(text, tools...)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

// sees checks what the last request has and has not.
func (c *talk) sees(has []string, lacks ...string) {
	c.t.Helper()
	body := c.bodies[len(c.bodies)-1]
	for _, want := range has {
		if !strings.Contains(body, want) {
			c.t.Errorf("the request has no %s:\n%s", want, body)
		}
	}
	for _, not := range lacks {
		if strings.Contains(body, not) {
			c.t.Errorf("the request has %s:\n%s", not, body)
		}
	}
}

// beta is the header of the last request.
func (c *talk) beta() string { return c.heads[len(c.heads)-1].Get("Anthropic-Beta") }

// everyWay runs a test with whole and with streamed answers.
func everyWay(t *testing.T, test func(t *testing.T, stream bool)) {
	t.Helper()
	t.Run("whole", func(t *testing.T) { test(t, false) })
	t.Run("stream", func(t *testing.T) { test(t, true) })
}

const (
	omitted  = `{"type":"thinking","thinking":"","signature":"c2lnPQ=="}`
	summary  = `{"type":"thinking","thinking":"a <b> & é\nplan","signature":"c2lnMg=="}`
	redacted = `{"type":"redacted_thinking","data":"ZW5j"}`
	call     = `{"type":"tool_use","id":"toolu_1","name":"find_order","input":{"number": "7"},"caller":{"type":"direct"}}`
	search   = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"order 7"}}`
	found    = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a.example/?a=1&b=2","title":"<7>","encrypted_content":"ZW5j","page_age":null}]}`
	cited    = `{"type":"text","text":"It is Friday","citations":[{"type":"web_search_result_location","url":"https://a.example/?a=1&b=2","title":"<7>","encrypted_index":"aWR4","cited_text":"Fri"}]}`
)

var findOrder = model.Tool{Name: "find_order", Parameters: json.RawMessage(`{"type":"object","properties":{"number":{"type":"string"}}}`)}

// Each list of blocks goes back as it came.
func TestBlocks_ComeBack(t *testing.T) {
	for name, blocks := range map[string]string{
		"omitted thinking and a call": omitted + "," + call,
		"thinking between calls":      summary + "," + call + "," + redacted + `,{"type":"text","text":"And"},` + strings.Replace(call, "toolu_1", "toolu_2", 1),
		"a search with citations":     omitted + "," + search + "," + found + `,{"type":"text","text":"So: "},` + cited + `,{"type":"text","text":"."}`,
		"other tools": `{"type":"mcp_tool_use","id":"mcptoolu_1","name":"f","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[]},` +
			`{"type":"container_upload","file_id":"file_1"},{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"f"}]}},{"type":"text","text":"x"}`,
		"a fallback and an unknown block": `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}},{"type":"new","parts":[1.50,"two",{"three":null}]},{"type":"text","text":"x"}`,
		"a summary":                       `{"type":"compaction","content":"They talked."},{"type":"text","text":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, stream bool) {
				c := newTalk(t, stream, options{name: "claude-opus-5"}, reply{blocks: "[" + blocks + "]", stop: map[bool]string{true: "tool_use"}[strings.Contains(blocks, `"tool_use"`)]}, reply{blocks: `[{"type":"text","text":"Yes."}]`})
				got := c.must("When?", findOrder)
				for _, call := range got.Message.Calls() {
					c.list = append(c.list, chat.Message{ID: "r" + call.ID, Role: chat.Tool, ToolCallID: call.ID, Blocks: []chat.Block{{Type: "text", Text: "shipped"}}})
				}
				c.must("Thanks.", findOrder)
				compact := strings.ReplaceAll(blocks, `"number": "7"`, `"number":"7"`)
				c.sees([]string{`{"role":"assistant","content":[` + compact + `]}`})
			})
		})
	}
}

// The text of an answer is one text, however the provider splits it, and names its sources.
func TestAnswer_Citations(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		c := newTalk(t, stream, options{}, reply{blocks: "[" + search + "," + found + `,{"type":"text","text":"So: "},` + cited + `,{"type":"text","text":"."}]`})
		got := c.must("When?")
		if got.Message.Text() != "So: It is Friday." {
			t.Errorf("the text is %q", got.Message.Text())
		}
		last := got.Message.Blocks[len(got.Message.Blocks)-1]
		if last.Type != "citation_url" || !strings.Contains(last.Text, `"title":"`) || !strings.Contains(last.Text, `"text":"Fri"`) {
			t.Errorf("the source is %+v", last)
		}
		if stream && c.deltas.String() != "So: It is Friday." {
			t.Errorf("the deltas are %q", c.deltas.String())
		}
	})
}

func TestBlocks_StayWithTheirOrigin(t *testing.T) {
	first := newTalk(t, false, options{name: "claude-opus-5"}, reply{blocks: "[" + omitted + `,{"type":"text","text":"Hi."}]`})
	first.must("Hello")
	for name, with := range map[string]options{"another model": {name: "claude-sonnet-5"}, "another server": {name: "claude-opus-5", change: elsewhere}} {
		c := newTalk(t, false, with, reply{blocks: `[{"type":"text","text":"x"}]`})
		c.list = first.list
		c.must("And?")
		if c.sees([]string{`"Hi."`}, "signature"); t.Failed() {
			t.Error(name)
		}
	}
	first.list[1] = first.list[1].WithText("Changed.")
	first.must("And?")
	first.sees([]string{`"Changed."`}, "signature")
}

func TestAnswer_PausedContinues(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		c := newTalk(t, stream, options{name: "claude-opus-5"}, reply{blocks: "[" + omitted + `,{"type":"text","text":"Half "},` + search + "]", stop: "pause_turn"},
			reply{blocks: "[" + found + `,{"type":"text","text":"and"}]`, stop: "pause_turn"}, reply{blocks: `[{"type":"text","text":" half."}]`}, reply{blocks: `[]`})
		got := c.must("When?")
		if got.Message.Text() != "Half \nand half." || got.Finish != "stop" || got.Usage.Input != 15 || got.Usage.Output != 6 || len(c.bodies) != 3 {
			t.Errorf("got %+v in %d requests", got, len(c.bodies))
		}
		c.sees([]string{`{"role":"assistant","content":[` + omitted + `,{"type":"text","text":"Half "},` + search + "," + found + `,{"type":"text","text":"and"}]}]`}, "(continue)")
		c.must("Thanks.")
		c.sees([]string{`{"role":"assistant","content":[` + omitted + `,{"type":"text","text":"Half "},` + search + "," + found + `,{"type":"text","text":"and"},{"type":"text","text":" half."}]}`})
		if stream && c.deltas.String() != got.Message.Text() {
			t.Errorf("the deltas are %q", c.deltas.String())
		}
	})
}

// TestAnswer_PausedCost prices each request of a paused answer by its own length.
func TestAnswer_PausedCost(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		c := newTalk(t, stream, options{name: "claude-opus-5"}, reply{blocks: "[" + search + "]", stop: "pause_turn"}, reply{blocks: "[" + found + "]"})
		got := c.must("When?")
		one, five := 1.0, 5.0
		prices := &catalogue.Prices{TierRates: catalogue.TierRates{Rates: catalogue.Rates{Input: &one, Output: &one}},
			LongContext: []catalogue.LongRates{{Above: 8, TierRates: catalogue.TierRates{Rates: catalogue.Rates{Input: &five, Output: &five}}}}}
		if cost := 1e6 * got.Usage.Charge(prices, time.Now()); got.Usage.Input != 10 || cost < 13.9 || cost > 14.1 {
			t.Errorf("%+v costs %g", got.Usage, cost)
		}
	})
}

func TestAnswer_PausedWithoutEnd(t *testing.T) {
	c := newTalk(t, false, options{}, reply{blocks: `[{"type":"text","text":"x"}]`, stop: "pause_turn"})
	if _, err := c.say("When?"); err == nil || !strings.Contains(err.Error(), "paused the answer 21 times") {
		t.Errorf("got %v", err)
	}
}

func TestAnswer_Refusal(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		c := newTalk(t, stream, options{}, reply{blocks: `[{"type":"text","text":"Take"}]`, stop: "refusal", more: `"stop_details":{"type":"refusal","category":"cyber","explanation":"x"}`})
		if got := c.must("How?"); got.Finish != "content_filter" || got.Reason != "refusal: cyber" || got.Message.Text() != "" {
			t.Errorf("got %+v", got)
		}
	})
}

// A window that the model cannot continue gets a message of the user.
func TestRequest_NoPrefill(t *testing.T) {
	for name, want := range map[string]bool{"claude-haiku-4-5": false, "claude-opus-5": true} {
		c := newTalk(t, false, options{name: name}, reply{blocks: `[{"type":"text","text":"x"}]`})
		c.list = []chat.Message{chat.Text(chat.User, "a"), chat.Text(chat.Assistant, "b")}
		if _, err := c.next(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(c.bodies[0], "(continue)"); got != want {
			t.Errorf("%s: %s", name, c.bodies[0])
		}
	}
}

// What precedes a signed summary is not sent; a summary without a signature may follow it.
func TestRequest_Compaction(t *testing.T) {
	for signature, first := range map[string]bool{"": false, `,"signature":"c2ln"`: true} {
		c := newTalk(t, false, options{name: "claude-opus-5"}, reply{blocks: `[{"type":"compaction","content":"They talked."` + signature + `}]`, stop: "compaction"}, reply{blocks: `[{"type":"text","text":"x"}]`})
		c.must("Long ago")
		c.must("Now")
		if c.sees([]string{"They talked.", "Now"}); strings.Contains(c.bodies[2], "Long ago") == first {
			t.Error(c.bodies[2])
		}
	}
}

// Thinking of a changed conversation is left out by Anthropic, and after a refusal by the client.
func TestRequest_BoundThinking(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		answer := reply{blocks: "[" + omitted + `,{"type":"text","text":"Hi."}]`}
		dropped := answer
		dropped.change = `[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"}]`
		c := newTalk(t, stream, options{name: "claude-opus-5-5"}, answer, dropped)
		c.must("Hello")
		if c.sees(nil, "block_binding"); c.beta() != "" {
			t.Errorf("the header is %q", c.beta())
		}
		got := c.must("And?")
		if c.sees([]string{`"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`}); c.beta() != "thinking-binding-controls-2026-08-01" {
			t.Errorf("the header is %q", c.beta())
		}
		if !slices.Equal(got.Dropped, []string{"thinking_dropped at messages.1.content.0: prefix_binding_mismatch"}) {
			t.Errorf("dropped is %v", got.Dropped)
		}
	})
}

func TestRequest_RefusedThinking(t *testing.T) {
	refused := reply{refuse: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."}
	answer := reply{blocks: "[" + omitted + "," + search + "," + found + `,{"type":"text","text":"Hi."}]`}
	for _, with := range []options{{name: "claude-opus-5-5", change: elsewhere}, {name: "claude-opus-5-5", vertex: true}} {
		c := newTalk(t, true, with, answer, refused, answer, answer)
		c.must("Hello")
		c.must("And?")
		if c.sees([]string{"encrypted_content"}, "signature", "block_binding"); len(c.bodies) != 3 {
			t.Errorf("%d requests", len(c.bodies))
		}
		c.must("Then?")
		if n := strings.Count(c.bodies[3], "signature"); n != 1 || len(c.bodies) != 4 {
			t.Errorf("%d blocks with thinking in the last of %d requests", n, len(c.bodies))
		}
	}
	c := newTalk(t, false, options{change: elsewhere}, reply{blocks: "[" + omitted + "," + call + "]", stop: "tool_use"}, refused, reply{blocks: `[{"type":"text","text":"Friday."}]`})
	c.must("When?", findOrder)
	c.list = append(c.list, chat.Message{ID: "r", Role: chat.Tool, ToolCallID: "toolu_1", Blocks: []chat.Block{{Type: "text", Text: "shipped"}}})
	if _, err := c.next(findOrder); err != nil {
		t.Fatal(err)
	}
	c.sees([]string{"tool_use"}, "signature")
}

// Calls of another model have no thinking; the API requires it only while thinking is enabled.
func TestRequest_EnabledThinking(t *testing.T) {
	enabled := options{name: "claude-opus-4-6", params: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2000}}}
	c := newTalk(t, false, enabled, reply{blocks: `[{"type":"text","text":"x"}]`})
	foreign := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c", Name: "find_order", Arguments: "{}"})
	c.list = []chat.Message{chat.Text(chat.User, "When?"), foreign, {Role: chat.Tool, ToolCallID: "c", Blocks: []chat.Block{{Type: "text", Text: "r"}}}}
	got, err := c.next(findOrder)
	if err != nil {
		t.Fatal(err)
	}
	if c.sees(nil, `"thinking"`); len(got.Dropped) != 1 || !strings.HasPrefix(got.Dropped[0], "the parameter thinking, because an answer of this turn does not begin with thinking") {
		t.Errorf("dropped is %v", got.Dropped)
	}
	if got = c.must("And?", findOrder); len(got.Dropped) > 0 {
		t.Errorf("dropped is %v", got.Dropped)
	}
	c.sees([]string{`"thinking":{"budget_tokens":2000,"type":"enabled"}`, `"max_tokens":34000`})
}

// What a request was sent without is in its error too: a fallback may answer, and report it.
func TestRequest_DroppedBeforeError(t *testing.T) {
	refused := reply{refuse: "Busy."}
	enabled := options{name: "claude-opus-4-6", params: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2000}}}
	parameter := newTalk(t, false, enabled, refused)
	foreign := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c", Name: "find_order", Arguments: "{}"})
	parameter.list = []chat.Message{chat.Text(chat.User, "When?"), foreign, {Role: chat.Tool, ToolCallID: "c", Blocks: []chat.Block{{Type: "text", Text: "r"}}}}

	answer := reply{blocks: "[" + omitted + `,{"type":"text","text":"Hi."}]`}
	prefix := newTalk(t, false, options{name: "claude-opus-5-5", change: elsewhere}, answer, refused)
	prefix.must("Hello")
	prefix.list[0] = chat.Text(chat.User, "Good day")
	prefix.list = append(prefix.list, chat.Text(chat.User, "And?"))
	for want, c := range map[string]*talk{"the parameter thinking, ": parameter, "the reasoning of 1 earlier answer, because": prefix} {
		_, err := c.next(findOrder)
		if failure, ok := errors.AsType[*model.Error](err); !ok || len(failure.Dropped) != 1 || !strings.HasPrefix(failure.Dropped[0], want) {
			t.Errorf("%s: failed with %#v", want, err)
		}
	}
}

// The continuation of a paused answer after such calls has no thinking either.
func TestRequest_EnabledThinkingPaused(t *testing.T) {
	enabled := options{name: "claude-opus-4-6", params: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2000}}}
	c := newTalk(t, false, enabled, reply{blocks: "[" + search + "]", stop: "pause_turn"}, reply{blocks: "[" + found + "]"})
	foreign := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c", Name: "find_order", Arguments: "{}"})
	c.list = []chat.Message{chat.Text(chat.User, "When?"), foreign, {Role: chat.Tool, ToolCallID: "c", Blocks: []chat.Block{{Type: "text", Text: "r"}}}}
	if _, err := c.next(findOrder); err != nil {
		t.Fatal(err)
	}
	c.sees([]string{"server_tool_use"}, `"thinking"`)
}

// Parts of a stream that lack their value do not lose the answer.
func TestStream_NullParts(t *testing.T) {
	body := `data: {"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":[]}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":null}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":[]}

data: {"type":"message_stop"}

`
	s := modeltest.Serve(t, modeltest.Respond(200, "text/event-stream", body))
	m, err := anthropic.New(anthropic.Config{Config: modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()}.Config()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.Call(t.Context(), m, model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.User, "x")}}, nil)
	if err != nil || got.Message.Text() != "Hi" || got.Finish != "stop" {
		t.Errorf("got %+v, %v", got, err)
	}
}
