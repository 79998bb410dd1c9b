package googleai

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reply is an answer, or one event of a streamed one.
type reply struct {
	Candidates []candidate `json:"candidates"`
	Feedback   *struct {
		Blocked string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage wire.Loose[usage] `json:"usageMetadata"`
	Error json.RawMessage   `json:"error"`
}

type candidate struct {
	Index   wire.Count `json:"index"`
	Content struct {
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Finish wire.Word `json:"finishReason"`
	Token  string    `json:"continuationToken"` // continues an answer that is not complete
	references
}

// usage counts tokens. The prompt includes the cached tokens, and neither the results of
// Google's own tools nor the thoughts are in another count.
type usage struct {
	Prompt     wire.Count `json:"promptTokenCount"`
	Tools      wire.Count `json:"toolUsePromptTokenCount"`
	Candidates wire.Count `json:"candidatesTokenCount"`
	Reasoning  wire.Count `json:"thoughtsTokenCount"`
	Cached     wire.Count `json:"cachedContentTokenCount"`
	Tier       string     `json:"serviceTier"`
	Traffic    string     `json:"trafficType"` // of Vertex AI: ON_DEMAND_FLEX
	Kinds      kinds      `json:"promptTokensDetails"`
	InCache    kinds      `json:"cacheTokensDetails"` // of Kinds
}

// kinds are numbers of tokens by their modality.
type kinds []struct {
	Kind   string     `json:"modality"`
	Tokens wire.Count `json:"tokenCount"`
}

// audio returns the number of tokens of audio.
func (list kinds) audio() (sum int) {
	for _, k := range list {
		if k.Kind == "AUDIO" {
			sum += int(k.Tokens)
		}
	}
	return sum
}

// counts returns the usage in the terms of model.Usage.
func (u usage) counts() model.Usage {
	return model.Usage{Input: int(u.Prompt + u.Tools), Output: int(u.Candidates + u.Reasoning), Cached: int(u.Cached), Reasoning: int(u.Reasoning), Tier: u.tier(),
		AudioInput: max(0, u.Kinds.audio()-u.InCache.audio())}
}

// tier returns the tier of service, empty for the standard one.
func (u usage) tier() string {
	for _, word := range []string{u.Tier, strings.TrimPrefix(u.Traffic, "ON_DEMAND_")} {
		if word = strings.ToLower(word); word == "flex" || word == "priority" {
			return word
		}
	}
	return ""
}

// assembler builds a response from its parts.
type assembler struct {
	draft    wire.ResponseBuilder
	finish   string
	token    string // continues the answer; empty for none
	blocked  string // why the prompt was rejected
	sources  references
	unsigned run
	before   *model.Usage // of the requests that the answer continues; nil for none
	usage    model.Usage
}

// run is the text at the end of the draft that has no signature yet.
type run struct {
	kind string // of the block
	size int    // in bytes
}

// next prepares the assembler for the request that continues the answer.
func (a *assembler) next() {
	sum := a.total()
	a.before = &sum
	a.usage, a.finish, a.token = model.Usage{}, "", ""
}

// total returns the usage of all requests for the answer.
func (a *assembler) total() model.Usage {
	if a.before == nil {
		return a.usage
	}
	sum := *a.before
	sum.Join(a.usage)
	return sum
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
	if r.Usage.Set { // totals, so the newest count replaces an older one
		a.usage = r.Usage.Value.counts()
	}
	if r.Feedback != nil {
		a.blocked = cmp.Or(r.Feedback.Blocked, a.blocked)
	}
	var events []model.Event
	for _, c := range r.Candidates {
		if c.Index != 0 {
			continue
		}
		a.finish, a.token = cmp.Or(string(c.Finish), a.finish), cmp.Or(c.Token, a.token)
		a.sources.add(c.references)
		for _, p := range c.Content.Parts {
			deltas, err := a.take(p)
			if err != nil {
				return nil, err
			}
			events = append(events, deltas...)
		}
		break // others may lack their index; only one is requested
	}
	return events, nil
}

// take adds a part of the answer; a call comes in one part.
func (a *assembler) take(raw json.RawMessage) ([]model.Event, error) {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, wire.Shape(err)
	}
	switch {
	case p.Call != nil:
		return nil, a.call(p)
	case p.Inline != nil && p.Thought: // a draft of an image
		return nil, nil
	case p.Inline != nil:
		if err := a.draft.AppendBase64(p.Inline.MimeType, p.Inline.Data); err != nil {
			return nil, err
		}
		return nil, a.sign("", p.Signature)
	case p.Text != nil || isSignature(raw):
		return a.text(p)
	}
	return nil, a.keep(raw)
}

// call adds a call.
func (a *assembler) call(p part) error {
	if p.Call.Continues { // only with streamFunctionCallArguments
		return errors.New("a function call in parts; remove streamFunctionCallArguments from tool_config")
	}
	a.draft.Call(p.Call.ID, p.Call.Name, string(p.Call.Args))
	return a.sign(chat.CallType, p.Signature)
}

// text adds a text or a thought. Its signature belongs to this part only, so the item has
// where the part begins.
func (a *assembler) text(p part) ([]model.Event, error) {
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	if text == "" && p.Signature == "" {
		return nil, nil
	}
	kind, thought, size := "text", "", len(text)
	if p.Thought {
		kind, thought, text = chat.ReasoningType, text, ""
	}
	events, err := a.draft.AppendText(text, thought)
	if a.unsigned.kind != kind {
		a.unsigned = run{kind: kind}
	}
	if p.Signature != "" {
		return events, errors.Join(err, a.sign(kind, p.Signature))
	}
	a.unsigned.size += size
	return events, err
}

// sign attaches the signature of a part, if it has one, to its block.
func (a *assembler) sign(kind, thought string) error {
	from := 0
	if kind != "" && a.unsigned.kind == kind {
		from = a.unsigned.size
	}
	a.unsigned = run{}
	if thought == "" {
		return nil
	}
	return a.draft.Attach(kind, signature{Thought: thought, From: from}.item())
}

// keep adds a part that only Google knows, such as the code that it has run, as an item.
func (a *assembler) keep(raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return wire.Shape(err)
	}
	for name := range fields {
		if name != signatureField && name != "thought" {
			a.unsigned = run{}
			return a.draft.AppendItem(chat.ItemType, "", chat.Item{Field: "part", JSON: string(raw)})
		}
	}
	return nil // an empty part
}

// isSignature reports whether a part has a signature and no content.
func isSignature(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields[signatureField] == nil {
		return false
	}
	delete(fields, "thought")
	return len(fields) == 1
}

// Response returns the complete answer. An answer that another request continues is not read.
func (a *assembler) Response() (*model.Response, error) {
	if a.token != "" {
		return &model.Response{}, nil
	}
	if err := a.sources.cite(&a.draft); err != nil {
		return nil, err
	}
	resp := &model.Response{Message: a.draft.Message(), Usage: a.total()}
	resp.Finish, resp.Reason = wire.Finish(a.finish, a.draft.Calls())
	if a.blocked != "" { // the prompt was rejected
		resp.Finish, resp.Reason = "content_filter", a.blocked
	}
	return resp, nil
}
