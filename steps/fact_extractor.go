package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// factExtractor is a chat model that finds facts in messages for a memory.
type factExtractor struct {
	id    string // the model's id
	chat  func() (model.Chat, error)
	pause contextPause
}

// FactExtractor lets a chat model extract the facts of a promptcontext. The model is made on
// first use. Its cost is reported as that of the step that used the promptcontext.
func FactExtractor(id string, chat func() (model.Chat, error)) promptcontext.Extractor {
	return &factExtractor{id: id, chat: chat}
}

// factSchema is the form of the answer.
const factSchema = `{"type":"object","properties":{"changes":{"type":"array","items":{"type":"object","properties":{` +
	`"op":{"type":"string","enum":["add","update","delete"]},` +
	`"id":{"type":"string","description":"update, delete: the id of the fact in the list; add: empty"},` +
	`"text":{"type":"string","description":"add, update: the fact; delete: empty"},` +
	`"message":{"type":"integer","description":"the number of the message that states it"},` +
	`"quote":{"type":"string","description":"the words of that message, copied exactly"}},` +
	`"required":["op","id","text","message","quote"],"additionalProperties":false}}},"required":["changes"],"additionalProperties":false}`

// Extract calls the model once.
func (x *factExtractor) Extract(ctx context.Context, r promptcontext.FactsRequest) ([]promptcontext.FactChange, error) {
	m, err := x.chat()
	if err != nil {
		return nil, err
	}
	instructions := r.Instructions + "\n\nAnswer with one JSON object of this schema, and nothing else. Without changes the list is empty.\n" + factSchema
	resp, err := x.pause.ask(ctx, m, model.Request{Schema: &model.Schema{Name: "facts", JSON: json.RawMessage(factSchema)}, Messages: []chat.Message{
		chat.Text(chat.System, instructions), chat.Text(chat.User, factPrompt(r))}})
	if err != nil {
		return nil, err
	}
	reportUsage(ctx, Event{Input: resp.Usage.Input, Output: resp.Usage.Output, Cached: resp.Usage.Cached, Cost: resp.Usage.Cost, Model: x.id})
	changes, err := parseFactChanges(resp.Message.Text())
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", x.id, err)
	}
	return changes, nil
}

// parseFactChanges reads the object in an answer, which may be in a code block.
func parseFactChanges(answer string) ([]promptcontext.FactChange, error) {
	answer = value.AnswerText(answer)
	from, to := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}')
	if from < 0 || to < from {
		return nil, errors.New("the answer is not a JSON object")
	}
	var found struct {
		Changes *[]promptcontext.FactChange `json:"changes"`
	}
	if err := json.Unmarshal([]byte(answer[from:to+1]), &found); err != nil {
		return nil, fmt.Errorf("the answer is not a list of changes: %w", err)
	}
	if found.Changes == nil {
		return nil, errors.New("the answer has no list of changes")
	}
	return *found.Changes, nil
}

// factPrompt returns the facts and the messages as one text.
func factPrompt(r promptcontext.FactsRequest) string {
	const bytesPerToken = 3
	var b strings.Builder
	b.WriteString("The list of facts:\n\n")
	if len(r.Facts) == 0 {
		b.WriteString("(none yet)\n")
	}
	for i := range r.Facts {
		fmt.Fprintf(&b, "%s: %s\n", r.Facts[i].ID, r.Facts[i].Text())
	}
	b.WriteString("\nThe messages that come next:\n")
	for i := range r.Messages {
		msg := &r.Messages[i]
		text := truncate(msg.Text(), r.Room*bytesPerToken)
		if text == "" || msg.Role != chat.User && msg.Role != chat.Assistant {
			continue
		}
		fmt.Fprintf(&b, "\n%d. %s, %s: %s", i+1, msg.Role, r.Times[i].Format(time.DateOnly), indented(text))
	}
	b.WriteString("\n\nNow write the changes.")
	return b.String()
}
