package openai

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// chatParams are the parameters of chat completions that are read.
var chatParams = []string{"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "metadata", "inputs", "response_format", "stop"}

// chatCompletions answers POST /v1/chat/completions.
func (a *api) chatCompletions(w http.ResponseWriter, r *request) error {
	t, usage, err := a.readChat(r)
	if err != nil {
		return err
	}
	b, err := a.begin(r.Context(), t)
	if err != nil {
		return err
	}
	head := chatHead{ID: "chatcmpl-" + rand.Text(), Created: time.Now().Unix(), Model: t.flow.ID()}
	if t.stream {
		return a.respondStream(w, t, b, newChatStream(head, b.run.ID, usage))
	}
	return a.respond(w, t, b, &chatAnswer{head: head, run: b.run.ID})
}

// readChat reads a request. usage reports that the stream ends with the usage.
func (a *api) readChat(r *request) (t *turn, usage bool, err error) {
	t = &turn{request: r}
	if t.flow, err = a.flow(r); err != nil {
		return nil, false, err
	}
	p := r.params
	if t.ignored, err = p.check(chatRules, chatParams...); err != nil {
		return nil, false, err
	}
	if err = t.readCommon(true); err != nil {
		return nil, false, err
	}
	if err = a.findRepeated(t); err != nil {
		return nil, false, err
	}
	var options struct {
		Usage       bool  `json:"include_usage"`
		Obfuscation *bool `json:"include_obfuscation"`
	}
	if err = p.decode("stream_options", &options); err != nil {
		return nil, false, err
	}
	if p.has("stream_options") && !t.stream {
		return nil, false, bad("/stream_options", "invalid_value", "it is only allowed with stream")
	}
	messages, err := p.messages(a.fetcher(r.Context()))
	if err != nil {
		return nil, false, err
	}
	if err = t.asked.readForm("response_format", p["response_format"]); err != nil {
		return nil, false, err
	}
	if err = t.asked.readStop(p); err != nil {
		return nil, false, err
	}
	t.conversation, err = newConversation("/messages", messages, t.session != "")
	return t, options.Usage, err
}

// readCommon reads the parameters that chat completions and responses share. nested
// reports that tools have the form of chat completions.
func (t *turn) readCommon(nested bool) (err error) {
	p := t.params
	if err = p.decode("stream", &t.stream); err != nil {
		return err
	}
	if t.metadata, err = parseMetadata(p); err != nil {
		return err
	}
	if t.session, err = t.sessionID(t.metadata); err != nil {
		return err
	}
	if t.inputs, err = chatInputs(t.flow, p, t.metadata); err != nil {
		return err
	}
	t.tools, t.single, t.asked.MustCall, err = p.clientTools(t.flow, nested)
	return err
}

// messages returns the messages of chat completions.
func (p params) messages(fetch fetchFunc) ([]*message, error) {
	if !p.has("messages") {
		return nil, bad("/messages", "missing_required_parameter", "the parameter is missing: expected an array of messages")
	}
	var list []json.RawMessage
	if err := p.decode("messages", &list); err != nil {
		return nil, err
	}
	messages := make([]*message, len(list))
	for i, raw := range list {
		var err error
		if messages[i], err = parseMessage(pointerTo("/messages", i), raw, fetch); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// chatHead is what all chunks of an answer have.
type chatHead struct {
	ID      string
	Created int64
	Model   string
}

// chatUsage are the tokens of an answer.
type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func usageOf(u runs.Usage) chatUsage { return chatUsage{u.Input, u.Output, u.Input + u.Output} }

// chatCall is a call of a tool of the client.
type chatCall struct {
	Index    *int         `json:"index,omitempty"` // chunks only
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chatCallOf returns the call that a request needs.
func chatCallOf(run string, r *runs.Request) chatCall {
	return chatCall{ID: callID(run, r.ID), Type: "function", Function: chatFunction{r.Tool, string(r.Arguments)}}
}

// approvalNeeded returns the problem of a run that waits for an approval of its client, nil if it does not.
func approvalNeeded(run string, pending []*runs.Request) *problem.Problem {
	for _, r := range pending {
		if r.Kind == runs.Approval {
			return problem.New(http.StatusUnprocessableEntity, "approval_required",
				"the call of tool %s needs an approval, for which chat completions have no form: run %s waits for POST /runs/%s/answer; /v1/responses can ask for it", r.Tool, run, run)
		}
	}
	return nil
}

// annotation is a source of an answer.
type annotation struct {
	Type string      `json:"type"`
	URL  urlCitation `json:"url_citation"`
}

type urlCitation struct {
	Start int    `json:"start_index"`
	End   int    `json:"end_index"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// citationOf returns the source that a block is about; ok is false for other blocks.
func citationOf(b *chat.Block) (c urlCitation, ok bool) {
	if b.Type != "citation_url" {
		return c, false
	}
	if json.Unmarshal([]byte(b.Text), &c) != nil {
		c.URL = b.Text
	}
	if c.Title == "" {
		c.Title = c.URL
	}
	return c, true
}

// chatImage is an image of an answer, for which OpenAI's API has no form: this one is
// common.
type chatImage struct {
	Type string `json:"type"`
	URL  struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// extras returns the parts of an answer in addition to its text.
func extras(m *chat.Message) (sources []annotation, images []chatImage) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if c, ok := citationOf(b); ok {
			sources = append(sources, annotation{"url_citation", c})
		} else if b.Type == "image" {
			image := chatImage{Type: "image_url"}
			image.URL.URL = schema.DataURL(b)
			images = append(images, image)
		}
	}
	return sources, images
}

// chatMessage is the message of an answer.
type chatMessage struct {
	Role        string       `json:"role"`
	Content     *string      `json:"content"`
	Refusal     *string      `json:"refusal"`
	Reasoning   string       `json:"reasoning_content,omitempty"`
	Annotations []annotation `json:"annotations,omitempty"`
	Images      []chatImage  `json:"images,omitempty"`
	ToolCalls   []chatCall   `json:"tool_calls,omitempty"`
}

// thoughts separates reasoning and commentary, for which chat completions have one member: clients take all
// content for the answer.
type thoughts struct{ begun, commentary bool }

// next returns the text of the next delta of one of them.
func (t *thoughts) next(commentary bool, delta string) string {
	if delta != "" && t.begun && t.commentary != commentary {
		delta = "\n\n" + delta
	}
	t.begun, t.commentary = t.begun || delta != "", commentary
	return delta
}

// chatAnswer is the whole answer. It is a sink.
type chatAnswer struct {
	head    chatHead
	run     string
	written strings.Builder
	thought strings.Builder
	thoughts
	message chatMessage
	reason  string
	tokens  runs.Usage
	problem *problem.Problem
}

func (c *chatAnswer) text(delta string)        { c.written.WriteString(delta) }
func (c *chatAnswer) separate()                { c.text("\n\n") }
func (c *chatAnswer) reasoning(delta string)   { c.thought.WriteString(c.next(false, delta)) }
func (c *chatAnswer) commentary(delta string)  { c.thought.WriteString(c.next(true, delta)) }
func (c *chatAnswer) used(tokens runs.Usage)   { c.tokens = tokens }
func (c *chatAnswer) fail(p *problem.Problem)  { c.problem = p }
func (c *chatAnswer) failed() *problem.Problem { return c.problem }

func (c *chatAnswer) answer(m *chat.Message) {
	c.written.Reset() // texts before calls of the server's tools are not part of the answer
	c.written.WriteString(answerText(m))
	c.message.Annotations, c.message.Images = extras(m)
}

func (c *chatAnswer) finish(reason string) { c.reason = reason }

func (c *chatAnswer) calls(pending []*runs.Request) {
	if c.problem = approvalNeeded(c.run, pending); c.problem != nil {
		return
	}
	c.reason = "tool_calls"
	for _, r := range pending {
		c.message.ToolCalls = append(c.message.ToolCalls, chatCallOf(c.run, r))
	}
}

// body returns the response.
func (c *chatAnswer) body() any {
	type choice struct {
		Index    int         `json:"index"`
		Message  chatMessage `json:"message"`
		Logprobs *struct{}   `json:"logprobs"`
		Reason   string      `json:"finish_reason"`
	}
	text := c.written.String()
	c.message.Role, c.message.Reasoning = "assistant", c.thought.String()
	if text != "" || len(c.message.ToolCalls) == 0 {
		c.message.Content = &text
	}
	return struct {
		ID      string    `json:"id"`
		Object  string    `json:"object"`
		Created int64     `json:"created"`
		Model   string    `json:"model"`
		Choices []choice  `json:"choices"`
		Usage   chatUsage `json:"usage"`
	}{c.head.ID, "chat.completion", c.head.Created, c.head.Model, []choice{{Message: c.message, Reason: c.reason}}, usageOf(c.tokens)}
}

// chatStream writes an answer as chunks of a chat completion.
type chatStream struct {
	head  []byte // of each chunk, up to its choices
	run   string
	usage bool // the last chunk has the usage
	thoughts
	tokens  runs.Usage
	buf     []byte
	begun   bool
	problem *problem.Problem
}

func newChatStream(head chatHead, run string, usage bool) *chatStream {
	b := append([]byte(`data: {"id":`), strconv.Quote(head.ID)...)
	b = append(b, `,"object":"chat.completion.chunk","created":`...)
	b = strconv.AppendInt(b, head.Created, 10)
	b = append(b, `,"model":`...)
	b = value.AppendJSON(b, head.Model)
	return &chatStream{head: b, run: run, usage: usage}
}

// begin appends the first chunk, which has the role.
func (c *chatStream) begin() {
	if !c.begun {
		c.begun = true
		c.chunk(`{"role":"assistant","content":""}`, "")
	}
}

func (c *chatStream) take() []byte {
	b := c.buf
	c.buf = c.buf[:0]
	return b
}

func (c *chatStream) failed() *problem.Problem { return c.problem }
func (c *chatStream) empty() bool              { return !c.begun }

// open appends the start of a chunk up to its delta.
func (c *chatStream) open() {
	c.buf = append(c.buf, c.head...)
	c.buf = append(c.buf, `,"choices":[{"index":0,"delta":`...)
}

// close appends the end of a chunk.
func (c *chatStream) close(reason string) {
	c.buf = append(c.buf, `,"logprobs":null,"finish_reason":`...)
	if reason == "" {
		c.buf = append(c.buf, "null}]"...)
	} else {
		c.buf = append(c.buf, `"`+reason+`"}]`...)
	}
	if c.usage {
		c.buf = append(c.buf, `,"usage":null`...)
	}
	c.buf = append(c.buf, "}\n\n"...)
}

func (c *chatStream) chunk(delta, reason string) {
	c.open()
	c.buf = append(c.buf, delta...)
	c.close(reason)
}

// part appends a chunk with a text.
func (c *chatStream) part(member, text string) {
	if text == "" {
		return
	}
	c.begin()
	c.open()
	c.buf = append(c.buf, member...)
	c.buf = value.AppendJSON(c.buf, text)
	c.buf = append(c.buf, '}')
	c.close("")
}

func (c *chatStream) text(delta string)       { c.part(`{"content":`, delta) }
func (c *chatStream) separate()               { c.text("\n\n") }
func (c *chatStream) reasoning(delta string)  { c.thought(c.next(false, delta)) }
func (c *chatStream) commentary(delta string) { c.thought(c.next(true, delta)) }
func (c *chatStream) thought(text string)     { c.part(`{"reasoning_content":`, text) }

func (c *chatStream) answer(m *chat.Message) {
	var delta struct {
		Annotations []annotation `json:"annotations,omitempty"`
		Images      []chatImage  `json:"images,omitempty"`
	}
	if delta.Annotations, delta.Images = extras(m); delta.Annotations == nil && delta.Images == nil {
		return
	}
	c.begin()
	c.chunk(string(marshal(delta)), "")
}

func (c *chatStream) used(tokens runs.Usage) { c.tokens = tokens }

func (c *chatStream) finish(reason string) { c.end(reason) }

func (c *chatStream) calls(pending []*runs.Request) {
	if p := approvalNeeded(c.run, pending); p != nil {
		c.fail(p)
		return
	}
	c.begin()
	for i, r := range pending {
		call := chatCallOf(c.run, r)
		call.Index = &i
		c.chunk(string(marshal(map[string][]chatCall{"tool_calls": {call}})), "")
	}
	c.end("tool_calls")
}

// end appends the last chunks.
func (c *chatStream) end(reason string) {
	c.begin()
	c.chunk("{}", reason)
	if c.usage {
		c.buf = append(c.buf, c.head...)
		c.buf = append(c.buf, `,"choices":[],"usage":`...)
		c.buf = append(c.buf, marshal(usageOf(c.tokens))...)
		c.buf = append(c.buf, "}\n\n"...)
	}
	c.buf = append(c.buf, "data: [DONE]\n\n"...)
}

// fail appends the error, after which the connection breaks. Before the first chunk it is an error
// with a status instead.
func (c *chatStream) fail(p *problem.Problem) {
	c.problem = p
	if !c.begun {
		return
	}
	c.buf = append(c.buf, "data: "...)
	c.buf = append(c.buf, marshal(problem.OpenAIBody{Error: p.OpenAI()})...)
	c.buf = append(c.buf, "\n\n"...)
}

// breaks reports that the stream has no end: clients that ignore the error would take what came
// before it for the answer.
func (c *chatStream) breaks() bool { return c.begun && c.problem != nil }

// marshal returns the JSON text of a value that always encodes.
func marshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return raw
}
