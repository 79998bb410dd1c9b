package openai

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// openItem is an item whose text is not complete.
type openItem struct {
	kind  textKind
	item  textItem
	index int
	text  strings.Builder
	notes []any
}

// textKind is what the events of a kind of text are called.
type textKind struct {
	item, prefix, part, event string

	phase string // of a message; empty for the answer
}

// commentaryPhase is the phase of a message that is not the answer.
const commentaryPhase = "commentary"

var (
	messageText    = textKind{"message", "msg_", "output_text", "response.output_text", ""}
	commentaryText = textKind{"message", "msg_", "output_text", "response.output_text", commentaryPhase}
	reasoningText  = textKind{"reasoning", "rs_", "reasoning_text", "response.reasoning_text", ""}
)

// part returns the text part of the item.
func (o *openItem) part(text string) textPart {
	p := textPart{Type: o.kind.part, Text: text}
	if o.kind != reasoningText {
		notes := o.notes
		if notes == nil {
			notes = []any{}
		}
		p.Annotations, p.Logprobs = &notes, &[]struct{}{}
	}
	return p
}

func (r *response) take() []byte {
	b := r.buf
	r.buf = r.buf[:0]
	return b
}

func (r *response) failed() *problem.Problem { return r.problem }
func (r *response) breaks() bool             { return false } // it ends with response.failed
func (r *response) empty() bool              { return !r.begun }
func (r *response) body() any                { return r }

// begin appends the events that precede the answer.
func (r *response) begin() {
	if r.begun {
		return
	}
	r.begun = true
	r.emit("response.created", member{"response", r})
	r.emit("response.in_progress", member{"response", r})
}

func (r *response) text(delta string)       { r.delta(messageText, delta) }
func (r *response) reasoning(delta string)  { r.delta(reasoningText, delta) }
func (r *response) commentary(delta string) { r.delta(commentaryText, delta) }
func (r *response) separate()               { r.closeItem() }

// delta appends text to the item of its kind.
func (r *response) delta(kind textKind, text string) {
	if text == "" {
		return
	}
	r.begin()
	if r.current == nil || r.current.kind != kind {
		r.closeItem()
		r.openItem(kind)
	}
	r.current.text.WriteString(text)
	r.emitPart(kind.event+".delta", member{"delta", text})
}

func (r *response) openItem(kind textKind) {
	o := &openItem{kind: kind, index: len(r.Output), item: textItem{ID: kind.prefix + rand.Text(), Type: kind.item, Status: "in_progress", Content: []textPart{}}}
	if kind != reasoningText {
		o.item.Role, o.item.Phase = "assistant", kind.phase
	} else {
		o.item.Summary = &[]textPart{}
	}
	r.current = o
	r.emit("response.output_item.added", member{"output_index", o.index}, member{"item", o.item})
	r.emit("response.content_part.added", member{"item_id", o.item.ID}, member{"output_index", o.index}, member{"content_index", 0}, member{"part", o.part("")})
}

// emitPart appends an event of the text of the current item.
func (r *response) emitPart(event string, more ...member) {
	o := r.current
	members := append([]member{{"item_id", o.item.ID}, {"output_index", o.index}, {"content_index", 0}}, more...)
	if o.kind != reasoningText {
		members = append(members, member{"logprobs", []struct{}{}})
	}
	r.emit(event, members...)
}

// closeItem completes the current item.
func (r *response) closeItem() {
	o := r.current
	if o == nil {
		return
	}
	text := o.text.String()
	r.emitPart(o.kind.event+".done", member{"text", text})
	part := o.part(text)
	r.emit("response.content_part.done", member{"item_id", o.item.ID}, member{"output_index", o.index}, member{"content_index", 0}, member{"part", part})
	o.item.Status, o.item.Content = "completed", []textPart{part}
	r.current = nil
	r.doneItem(o.item)
}

// doneItem appends the end of an item, which is complete.
func (r *response) doneItem(item any) {
	r.emit("response.output_item.done", member{"output_index", len(r.Output)}, member{"item", item})
	r.Output = append(r.Output, item)
}

func (r *response) answer(m *chat.Message) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if a := annotationOf(b); a != nil && r.current != nil && r.current.kind == messageText {
			r.current.notes = append(r.current.notes, a)
			r.emitPart("response.output_text.annotation.added", member{"annotation_index", len(r.current.notes) - 1}, member{"annotation", a})
		}
	}
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Type == "image" && b.Media() {
			r.begin()
			r.closeItem()
			image := imageItem{ID: "ig_" + rand.Text(), Type: "image_generation_call", Status: "completed", Result: base64.StdEncoding.EncodeToString(b.Data)}
			r.emit("response.output_item.added", member{"output_index", len(r.Output)}, member{"item", image})
			r.doneItem(image)
		}
	}
}

func (r *response) used(u runs.Usage) {
	r.Usage = &responseUsage{Input: u.Input, Output: u.Output, Total: u.Input + u.Output}
}

// calls appends the calls of the client's tools and the requests for approvals.
func (r *response) calls(pending []*runs.Request) {
	r.begin()
	r.closeItem()
	for _, req := range pending {
		id := callID(r.run, req.ID)
		if req.Kind == runs.Approval {
			c := callItem{ID: approvalPrefix + strings.TrimPrefix(id, callPrefix), Type: "mcp_approval_request", Server: "qtype", Name: req.Tool, Arguments: string(req.Arguments)}
			r.emit("response.output_item.added", member{"output_index", len(r.Output)}, member{"item", c})
			r.doneItem(c)
			continue
		}
		c := callItem{ID: "fc_" + strings.TrimPrefix(id, callPrefix), Type: "function_call", Status: "in_progress", CallID: id, Name: req.Tool}
		r.emit("response.output_item.added", member{"output_index", len(r.Output)}, member{"item", c})
		c.Status, c.Arguments = "completed", string(req.Arguments)
		at := []member{{"item_id", c.ID}, {"output_index", len(r.Output)}}
		r.emit("response.function_call_arguments.delta", append(at[:2:2], member{"delta", c.Arguments})...)
		r.emit("response.function_call_arguments.done", append(at[:2:2], member{"name", c.Name}, member{"arguments", c.Arguments})...)
		r.doneItem(c)
	}
	r.complete()
}

func (r *response) finish(reason string) {
	r.begin()
	r.closeItem()
	if details := incompleteReasons[reason]; details != "" {
		r.Incomplete = &incompleteDetails{details}
	}
	r.complete()
}

// incompleteReasons maps reasons for which an answer is incomplete.
var incompleteReasons = map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}

// complete appends the end of the response.
func (r *response) complete() {
	if r.save != nil {
		if err := r.save(); err != nil {
			r.fail(problem.New(http.StatusServiceUnavailable, "store_unavailable", "the response could not be stored"))
			return
		}
	}
	r.Status = "completed"
	if r.Incomplete != nil {
		r.Status = "incomplete"
	}
	r.emit("response."+r.Status, member{"response", r})
}

// fail appends the error. Before the first event it is an error with a status instead.
func (r *response) fail(p *problem.Problem) {
	r.problem = p
	if !r.begun {
		return
	}
	r.closeItem()
	e := p.OpenAI()
	r.Status, r.Error = "failed", &responseError{Code: "server_error", Message: e.Message}
	if p.Status == http.StatusTooManyRequests {
		r.Error.Code = "rate_limit_exceeded"
	}
	r.emit("response.failed", member{"response", r})
}

// member is a member of an event.
type member struct {
	name  string
	value any
}

// emit appends an event with its number.
func (r *response) emit(event string, members ...member) {
	r.buf = append(r.buf, "event: "...)
	r.buf = append(append(r.buf, event...), "\ndata: {\"type\":\""...)
	r.buf = append(append(r.buf, event...), `","sequence_number":`...)
	r.buf = strconv.AppendInt(r.buf, int64(r.seq), 10)
	r.seq++
	for _, m := range members {
		r.buf = append(append(append(r.buf, ',', '"'), m.name...), `":`...)
		r.buf = append(r.buf, marshal(m.value)...)
	}
	r.buf = append(r.buf, "}\n\n"...)
}

// response is a response, which it writes as a stream of events or as a whole.
type response struct {
	ID           string             `json:"id"`
	Object       string             `json:"object"`
	Created      int64              `json:"created_at"`
	Status       string             `json:"status"`
	Background   bool               `json:"background"`
	Error        *responseError     `json:"error"`
	Incomplete   *incompleteDetails `json:"incomplete_details"`
	Instructions json.RawMessage    `json:"instructions"`
	Model        string             `json:"model"`
	Output       []any              `json:"output"`
	Parallel     bool               `json:"parallel_tool_calls"`
	Previous     *string            `json:"previous_response_id"`
	Conversation *conversationBody  `json:"conversation,omitempty"`
	Store        bool               `json:"store"`
	Temperature  *float64           `json:"temperature"`
	TopP         *float64           `json:"top_p"`
	Text         struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Choice     json.RawMessage   `json:"tool_choice"`
	Tools      json.RawMessage   `json:"tools"`
	Truncation string            `json:"truncation"`
	Usage      *responseUsage    `json:"usage"`
	Metadata   map[string]string `json:"metadata"`

	run     string
	save    func() error // makes the response the newest of its session; nil if it is not stored
	seq     int
	buf     []byte
	begun   bool
	current *openItem
	problem *problem.Problem
}

// incompleteDetails is why a response ended before it was complete.
type incompleteDetails struct {
	Reason string `json:"reason"` // max_output_tokens or content_filter
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// textPart is a part of a message or of reasoning.
type textPart struct {
	Type        string      `json:"type"` // output_text or reasoning_text
	Text        string      `json:"text"`
	Annotations *[]any      `json:"annotations,omitempty"` // output_text
	Logprobs    *[]struct{} `json:"logprobs,omitempty"`    // output_text
}

// sourceReference is a web page that an answer cites.
type sourceReference struct {
	Type string `json:"type"` // url_citation
	urlCitation
}

// fileReference is a file that an answer cites.
type fileReference struct {
	Type     string `json:"type"` // file_citation
	ID       string `json:"file_id"`
	Name     string `json:"filename"` // with the page or lines
	Position int    `json:"index"`    // in the text; 0, as for other sources
}

// annotationOf returns the source that a block is about; nil for other blocks.
func annotationOf(b *chat.Block) any {
	if c, ok := citationOf(b); ok {
		return sourceReference{"url_citation", c}
	}
	var file struct {
		ID    string `json:"source_id"`
		Title string `json:"title"`
	}
	if b.Type != "citation_document" || json.Unmarshal([]byte(b.Text), &file) != nil {
		return nil
	}
	return fileReference{Type: "file_citation", ID: file.ID, Name: file.Title}
}

// textItem is an item with text: a message, or reasoning.
type textItem struct {
	ID      string      `json:"id"`
	Type    string      `json:"type"`
	Role    string      `json:"role,omitempty"`
	Phase   string      `json:"phase,omitempty"` // commentary, or empty for the answer
	Status  string      `json:"status"`
	Content []textPart  `json:"content"`
	Summary *[]textPart `json:"summary,omitempty"` // reasoning
}

// callItem is a call of a tool of the client, or a request for an approval.
type callItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Server    string `json:"server_label,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// imageItem is an image of an answer.
type imageItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	Result string `json:"result"` // base64
}

// newestValue is the name of the value with the id of the newest response of a session.
const newestValue = "newest"

// responseID returns the id of a response, which has the session if it is stored.
func responseID(session string, stored bool, unique string) string {
	if !stored {
		return "resp_" + unique
	}
	return "resp_" + base64.RawURLEncoding.EncodeToString([]byte(session)) + "." + unique
}

// sessionOf returns the session of a stored response.
func sessionOf(id string) (session string, ok bool) {
	coded, _, ok := strings.Cut(strings.TrimPrefix(id, "resp_"), ".")
	raw, err := base64.RawURLEncoding.DecodeString(coded)
	return string(raw), ok && err == nil && strings.HasPrefix(id, "resp_") && checkSession("", string(raw)) == nil
}

// responseOf returns the id of the record of the newest response of a session.
func (t *turn) responseOf(session string) string {
	return appstate.OfFlow(t.principal.StoredSession(session), t.flow.ID())
}

// newestResponse returns the id of the newest response of a session, empty for none.
func (a *api) newestResponse(ctx context.Context, t *turn, session string) (string, error) {
	rec, err := a.State().Records(appstate.Responses).Get(ctx, t.responseOf(session))
	return string(rec.Values[newestValue]), err
}

// saveResponse makes a response the newest of its session, unless the request was repeated
// and others have followed the first one.
func (a *api) saveResponse(ctx context.Context, t *turn, out *response) error {
	records, id := a.State().Records(appstate.Responses), t.responseOf(t.session)
	for {
		rec, err := records.Get(ctx, id)
		if err != nil {
			return err
		}
		newest := string(rec.Values[newestValue])
		if t.repeated != nil && newest != "" && (out.Previous == nil || newest != *out.Previous) {
			return nil
		}
		err = records.Write(ctx, id, store.RecordChange{Version: rec.Version, Next: store.NextVersion(rec.Version), Values: map[string][]byte{newestValue: []byte(out.ID)}})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
