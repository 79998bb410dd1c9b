package googleai

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// reply is an answer, or one event of a streamed one.
type reply struct {
	Candidates []struct {
		Index   wire.Count `json:"index"`
		Content content    `json:"content"`
		Finish  wire.Word  `json:"finishReason"`
	} `json:"candidates"`
	Feedback *struct {
		Blocked string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     wire.Count `json:"promptTokenCount"`
		Tools      wire.Count `json:"toolUsePromptTokenCount"`
		Candidates wire.Count `json:"candidatesTokenCount"`
		Reasoning  wire.Count `json:"thoughtsTokenCount"`
		Cached     wire.Count `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// assembler builds a response from its parts.
type assembler struct {
	signatures *wire.Recent[string]
	draft      wire.ResponseBuilder
	finish     string
	blocked    string // why the prompt was rejected
	usage      model.Usage
}

// Whole reads a response that is not streamed.
func (a *assembler) Whole(raw []byte) error {
	if _, err := a.Chunk(raw); err != nil {
		return err
	}
	if a.finish == "" && a.blocked == "" {
		return errors.New("no finished candidates")
	}
	return nil
}

// Complete reports at the end of a stream, which has no closing event, whether the
// answer has a finish reason.
func (a *assembler) Complete(atEnd bool) bool { return atEnd && (a.finish != "" || a.blocked != "") }

// Chunk reads one event and returns its deltas.
func (a *assembler) Chunk(raw []byte) ([]model.Event, error) {
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, wire.Shape(err)
	}
	if f, ok := wire.ReadAPIError(r.Error); ok {
		return nil, &wire.StreamError{API: f}
	}
	if u := r.Usage; u != nil { // totals, so the newest count replaces an older one
		a.usage = model.Usage{Input: int(u.Prompt + u.Tools), Output: int(u.Candidates + u.Reasoning), Cached: int(u.Cached)}
	}
	if r.Feedback != nil {
		a.blocked = cmp.Or(r.Feedback.Blocked, a.blocked)
	}
	var events []model.Event
	for _, c := range r.Candidates {
		if c.Index != 0 {
			continue
		}
		a.finish = cmp.Or(string(c.Finish), a.finish)
		for _, p := range c.Content.Parts {
			deltas, err := a.take(p)
			if err != nil {
				return nil, err
			}
			events = append(events, deltas...)
		}
	}
	return events, nil
}

// take adds a part of the answer; a call comes in one part.
func (a *assembler) take(p part) ([]model.Event, error) {
	switch {
	case p.Call != nil:
		id := a.draft.Call(p.Call.ID, p.Call.Name, string(p.Call.Args))
		if p.Signature != "" {
			a.signatures.Put(id, p.Signature)
		}
		return nil, nil
	case p.Inline != nil && p.Thought: // a draft of an image
		return nil, nil
	case p.Inline != nil:
		return nil, a.draft.AppendBase64(p.Inline.MimeType, p.Inline.Data)
	case p.Thought:
		return a.draft.AppendText("", p.Text)
	}
	return a.draft.AppendText(p.Text, "")
}

// Response returns the complete answer.
func (a *assembler) Response() (*model.Response, error) {
	resp := &model.Response{Message: a.draft.Message(), Usage: a.usage}
	resp.Finish, resp.Reason = wire.Finish(a.finish, a.draft.Calls())
	if a.blocked != "" { // the prompt was rejected
		resp.Finish, resp.Reason = "content_filter", a.blocked
	}
	return resp, nil
}
