package googleai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// reply is an answer, or one event of a streamed one.
type reply struct {
	Candidates []struct {
		Index   int     `json:"index"`
		Content content `json:"content"`
		Finish  string  `json:"finishReason"`
	} `json:"candidates"`
	Feedback *struct {
		Blocked string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		Tools      int `json:"toolUsePromptTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// assembler puts an answer together.
type assembler struct {
	seals   *seals
	id      string // the answer's
	text    strings.Builder
	calls   []chat.ToolCall
	finish  string
	blocked string // why the question was not answered at all
	usage   model.Usage
}

// whole takes an answer that came in one piece.
func (a *assembler) whole(raw []byte) error {
	if _, err := a.Chunk(raw); err != nil {
		return err
	}
	if a.finish == "" && a.blocked == "" {
		return errors.New("it holds no candidates that are finished")
	}
	return nil
}

// Complete tells at the end of a stream, which has no closing mark, whether the
// answer was finished.
func (a *assembler) Complete(atEnd bool) bool { return atEnd && (a.finish != "" || a.blocked != "") }

// Chunk takes one event and answers what it says to a reader.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadFault(r.Error); ok {
		return nil, &wire.StreamFault{Fault: f}
	}
	if u := r.Usage; u != nil { // sums, so the newest count replaces an older one
		a.usage = model.Usage{Input: u.Prompt + u.Tools, Output: u.Candidates + u.Thoughts, Cached: u.Cached}
	}
	if r.Feedback != nil {
		a.blocked = cmp.Or(r.Feedback.Blocked, a.blocked)
	}
	var events []model.Event
	for _, c := range r.Candidates {
		if c.Index != 0 {
			continue
		}
		a.finish = cmp.Or(c.Finish, a.finish)
		for _, p := range c.Content.Parts {
			ev, err := a.take(p)
			if err != nil {
				return nil, err
			}
			if ev != (model.Event{}) {
				events = append(events, ev)
			}
		}
	}
	return events, nil
}

// take adds a part of the answer; a call comes whole.
func (a *assembler) take(p part) (model.Event, error) {
	switch {
	case p.Call != nil:
		a.id = cmp.Or(a.id, chat.NewID())
		id := cmp.Or(p.Call.ID, fmt.Sprintf("call_%s%d", a.id[:16], len(a.calls)))
		if p.Signature != "" {
			a.seals.keep(id, p.Signature)
		}
		arguments := string(p.Call.Args)
		if arguments == "null" {
			arguments = ""
		}
		a.calls = append(a.calls, chat.ToolCall{ID: id, Name: p.Call.Name, Arguments: cmp.Or(arguments, "{}")})
		return model.Event{}, nil
	case p.Thought:
		return model.Event{Reasoning: p.Text}, nil
	case a.text.Len()+len(p.Text) > wire.MaxAnswer:
		return model.Event{}, wire.ErrTooLong
	}
	a.text.WriteString(p.Text)
	return model.Event{Text: p.Text}, nil
}

// response is the answer, complete.
func (a *assembler) response() *model.Response {
	m := chat.Message{ID: cmp.Or(a.id, chat.NewID()), Role: chat.Assistant, ToolCalls: a.calls}
	if a.text.Len() > 0 || len(a.calls) == 0 {
		m.Blocks = []chat.Block{{Type: "text", Text: a.text.String()}}
	}
	return &model.Response{Message: m, Finish: a.reason(), Usage: a.usage}
}

// reason is why the answer ended, in OpenAI's words.
func (a *assembler) reason() string {
	withheld := []string{"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"}
	switch {
	case a.blocked != "", slices.Contains(withheld, a.finish):
		return "content_filter"
	case a.finish == "MAX_TOKENS":
		return "length"
	case len(a.calls) > 0:
		return "tool_calls"
	case a.finish == "STOP":
		return "stop"
	}
	return strings.ToLower(a.finish) // such as malformed_function_call
}
