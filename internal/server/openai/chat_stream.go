package openai

import (
	"encoding/json"
	"strconv"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

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
