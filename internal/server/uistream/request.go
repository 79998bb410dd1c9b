package uistream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Request is the body of a request of a chat client.
type Request struct {
	ID        string                     `json:"id"`       // of the chat: the session
	Messages  []Message                  `json:"messages"` // all that the client shows
	Message   json.RawMessage            `json:"message"`  // instead of messages: only the newest one
	Trigger   string                     `json:"trigger"`  // submit-message or regenerate-message
	MessageID string                     `json:"messageId"`
	Inputs    map[string]json.RawMessage `json:"inputs"` // the flow's other inputs

	newestOnly bool // Messages has only what was sent as message
}

// Message is a message of the client.
type Message struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is a part of a message. Parts of unknown types are ignored.
type Part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	URL        string          `json:"url"`
	MediaType  string          `json:"mediaType"`
	Filename   string          `json:"filename"`
	SourceID   string          `json:"sourceId"`
	Title      string          `json:"title"`
	ToolName   string          `json:"toolName"`
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	ErrorText  string          `json:"errorText"`
	Approval   *struct {
		ID       string `json:"id"`
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	} `json:"approval"`
}

// Fetcher returns the content of a file that a client names by its address. Its error is
// a *problem.Problem.
type Fetcher func(url string) (data []byte, mediaType string, err error)

// Last returns the newest message, nil if there is none.
func (r *Request) Last() *Message {
	if len(r.Messages) == 0 {
		return nil
	}
	return &r.Messages[len(r.Messages)-1]
}

// Answers returns the answers to requests of a waiting run that the newest message has:
// approvals, and results of tools. Of the latter, ID is that of the tool call.
func (r *Request) Answers() (approvals, results []*runs.Answer) {
	last := r.Last()
	if last == nil || last.Role != "assistant" {
		return nil, nil
	}
	for i := range last.Parts {
		p := &last.Parts[i]
		switch {
		case p.State == "approval-responded" && p.Approval != nil:
			approvals = append(approvals, &runs.Answer{ID: p.Approval.ID, Approved: p.Approval.Approved, Reason: p.Approval.Reason})
		case p.State == "output-available" && p.ToolCallID != "":
			results = append(results, &runs.Answer{ID: p.ToolCallID, Result: p.Output})
		case p.State == "output-error" && p.ToolCallID != "":
			results = append(results, &runs.Answer{ID: p.ToolCallID, Error: p.ErrorText})
		}
	}
	return approvals, results
}

// Shown returns what the client shows of the conversation before its newest message, of which
// earlier has the messages; nil if it has sent only that message.
func (r *Request) Shown(earlier []chat.Message) *host.Shown {
	if r.newestOnly {
		return nil
	}
	return &host.Shown{Users: chat.TextsOf(chat.User, earlier), Replaces: r.MessageID != "" || r.Trigger == regenerate}
}

// Chat converts a message. pointer is its place in the body.
func (m *Message) Chat(pointer string, fetch Fetcher) (chat.Message, error) {
	role, ok := roles[m.Role]
	if !ok {
		return chat.Message{}, invalid(pointer+"/role", fmt.Sprintf("unknown role %q: expected system, user or assistant", m.Role))
	}
	out := chat.Message{ID: chat.NewID(), Role: role}
	for i := range m.Parts {
		block, err := m.Parts[i].block(fmt.Sprintf("%s/parts/%d", pointer, i), fetch)
		if err != nil {
			return out, err
		}
		if block != nil {
			out.Blocks = append(out.Blocks, *block)
		}
	}
	return out, nil
}

var roles = map[string]chat.Role{"system": chat.System, "user": chat.User, "assistant": chat.Assistant}

// invalid returns the problem of a wrong field.
func invalid(pointer, detail string) *problem.Problem {
	return schema.Invalid([]problem.Field{{Pointer: pointer, Detail: detail}})
}

// block converts a part; nil for one that is not content of the message: reasoning is not
// sent to models again.
func (p *Part) block(pointer string, fetch Fetcher) (*chat.Block, error) {
	switch p.Type {
	case "text":
		return &chat.Block{Type: "text", Text: p.Text}, nil
	case "file":
		return p.file(pointer, fetch)
	case "source-url":
		return citation("citation_url", value.Field{Name: "source_id", Value: p.SourceID}, value.Field{Name: "url", Value: p.URL}, value.Field{Name: "title", Value: p.Title}), nil
	case "source-document":
		return citation("citation_document", value.Field{Name: "source_id", Value: p.SourceID}, value.Field{Name: "media_type", Value: p.MediaType},
			value.Field{Name: "title", Value: p.Title}, value.Field{Name: "filename", Value: p.Filename}), nil
	}
	return nil, nil
}

func citation(typ string, fields ...value.Field) *chat.Block {
	return &chat.Block{Type: typ, Text: string(value.JSON(value.NewRecord("", fields...)))}
}

// file returns the content of a file part: that of a data URL, or of an address that the
// server may fetch.
func (p *Part) file(pointer string, fetch Fetcher) (*chat.Block, error) {
	if strings.HasPrefix(p.URL, "data:") {
		fetch = schema.DecodeDataURL
	}
	data, mediaType, err := fetch(p.URL)
	if err != nil {
		if given := problem.Of(err); given != nil {
			given.Errors = []problem.Field{{Pointer: pointer + "/url", Detail: given.Detail}}
			return nil, given
		}
		return nil, invalid(pointer+"/url", err.Error())
	}
	b, err := mediafile.Block("", data, cmp.Or(p.MediaType, mediaType))
	if err != nil {
		return nil, invalid(pointer+"/url", err.Error())
	}
	return b, nil
}

// Conversation converts the messages of a request for a conversational flow: the newest,
// which must be the user's, and those before it. The error is a *problem.Problem.
func (r *Request) Conversation(fetch Fetcher) (newest chat.Message, earlier []chat.Message, err error) {
	last := len(r.Messages) - 1
	if last < 0 {
		return newest, nil, invalid("/messages", "there is no message")
	}
	if r.Messages[last].Role != "user" {
		return newest, nil, invalid(fmt.Sprintf("/messages/%d/role", last), "the last message must be the user's")
	}
	for i := range r.Messages {
		m, err := r.Messages[i].Chat(fmt.Sprintf("/messages/%d", i), fetch)
		switch {
		case err != nil:
			return newest, nil, err
		case i == last && len(m.Blocks) == 0:
			return newest, nil, invalid(fmt.Sprintf("/messages/%d/parts", i), "the message has no content")
		case i == last:
			newest = m
		case len(m.Blocks) > 0:
			earlier = append(earlier, m)
		}
	}
	return newest, earlier, nil
}

// The triggers of requests. A request for an edited message has its id, too.
const (
	submit     = "submit-message"
	regenerate = "regenerate-message"
)

// Parse parses the body of a request. The error is a *problem.Problem.
func Parse(body []byte) (*Request, error) {
	r := &Request{}
	if err := schema.DecodeBody(body, r, false); err != nil {
		return nil, err
	}
	if t := r.Trigger; t != "" && t != submit && t != regenerate {
		return nil, invalid("/trigger", fmt.Sprintf("unknown trigger %q: expected %s or %s", t, submit, regenerate))
	}
	if len(r.Messages) > 0 || len(r.Message) == 0 {
		return r, nil
	}
	r.Messages, r.newestOnly = make([]Message, 1), true
	if err := schema.DecodeBody(r.Message, &r.Messages[0], false); err != nil {
		return nil, invalid("/message", "expected a message")
	}
	if r.Messages[0].Role == "user" && (r.MessageID != "" || r.Trigger == regenerate) {
		return nil, invalid("/messages", "the messages that the client shows are required to replace one of them; message has only the newest one")
	}
	return r, nil
}
