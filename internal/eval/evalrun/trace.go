package evalrun

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Traced is a call of a model or a tool while a row ran.
type Traced struct {
	Model     string          `json:"model,omitempty"`     // the id; empty for a call of a tool
	Tool      string          `json:"tool,omitempty"`      // the id; empty for a call of a model
	Same      int             `json:"same,omitempty"`      // how many messages are those of the model's call before, and not in Sent
	Sent      []TracedMessage `json:"sent,omitempty"`      // to the model
	Arguments json.RawMessage `json:"arguments,omitempty"` // of the tool
	Answer    string          `json:"answer,omitempty"`    // of the model or the tool
	Error     string          `json:"error,omitempty"`
	Input     int             `json:"input,omitempty"`  // tokens read
	Output    int             `json:"output,omitempty"` // tokens written
	Money     float64         `json:"money,omitempty"`  // by the prices of the model
	Seconds   float64         `json:"seconds"`
}

// TracedMessage is a message that was sent to a model.
type TracedMessage struct {
	Role string `json:"role"`
	Text string `json:"text,omitempty"`
	Ref  *int   `json:"ref,omitempty"` // the place of the text in Texts of the report, in place of Text
}

// start adds a call to the trace, in the order in which calls begin.
func (m *meter) start(op *steps.Operation) *Traced {
	t := &Traced{}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trace = append(m.trace, t)
	switch {
	case op.Kind == steps.OperationTool:
		t.Tool, t.Arguments = op.ID, value.JSON(op.Arguments)
	case op.Request == nil:
		t.Model = op.ID
		for _, text := range op.Texts {
			t.Sent = append(t.Sent, TracedMessage{Role: "text", Text: text})
		}
	default:
		t.Model = op.ID
		t.Same, t.Sent = m.sentNow(op.ID, op.Request.Messages)
	}
	return t
}

// sentNow returns how many messages begin as those of the model's call before, and the others. A shorter or another beginning is
// sent again as a whole.
func (m *meter) sentNow(id string, messages []chat.Message) (same int, sent []TracedMessage) {
	all := make([]TracedMessage, len(messages))
	for i, message := range messages {
		all[i] = TracedMessage{Role: string(message.Role), Text: messageText(message)}
	}
	before := m.sent[id]
	for same < min(len(before), len(all)) && before[same] == all[same] {
		same++
	}
	if same < len(before) {
		same = 0
	}
	if m.sent == nil {
		m.sent = map[string][]TracedMessage{}
	}
	m.sent[id] = all
	return same, append(sent, all[same:]...)
}

// end completes a call.
func (t *Traced) end(r *steps.OperationResult, begun time.Time) {
	t.Seconds = time.Since(begun).Seconds()
	switch {
	case r.Err != nil:
		t.Error = r.Err.Error()
	case r.Response != nil:
		t.Answer = messageText(r.Response.Message)
	case t.Tool != "":
		t.Answer = readableText(value.JSON(r.Returned))
	}
}

// minShared is the length from which on a text that traces repeat is written once.
const minShared = 80

// share moves the texts that traces repeat, such as system messages, into Texts.
func (r *Report) share() {
	counts, places := map[string]int{}, map[string]*int{}
	each := func(do func(*TracedMessage)) {
		for _, result := range r.Results {
			for _, call := range result.Trace {
				for i := range call.Sent {
					if len(call.Sent[i].Text) >= minShared {
						do(&call.Sent[i])
					}
				}
			}
		}
	}
	each(func(m *TracedMessage) { counts[m.Text]++ })
	each(func(m *TracedMessage) {
		if counts[m.Text] < 2 {
			return
		}
		if places[m.Text] == nil {
			place := len(r.Texts)
			places[m.Text], r.Texts = &place, append(r.Texts, strings.Clone(m.Text))
		}
		m.Text, m.Ref = "", places[m.Text]
	})
}
