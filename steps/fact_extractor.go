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

// factSchema is the form of the answer.
const factSchema = `{"type":"object","properties":{"changes":{"type":"array","items":{"type":"object","properties":{` +
	`"op":{"type":"string","enum":["add","update","delete"]},` +
	`"id":{"type":"string","description":"update, delete: the id of the fact in the list; add: empty"},` +
	`"text":{"type":"string","description":"add, update: the fact; delete: empty"},` +
	`"message":{"type":"integer","description":"the number of the message that states it"},` +
	`"quote":{"type":"string","description":"the words of that message, copied exactly"}},` +
	`"required":["op","id","text","message","quote"],"additionalProperties":false}}},"required":["changes"],"additionalProperties":false}`

// statementSchema is the form of the answer.
const statementSchema = `{"type":"object","properties":{"statements":{"type":"array","items":{"type":"object","properties":{` +
	`"text":{"type":"string","description":"the statement, one short sentence"},` +
	`"proofs":{"type":"array","items":{"type":"object","properties":{` +
	`"message":{"type":"integer","description":"the number of a message that states it"},` +
	`"quote":{"type":"string","description":"a few words of that message, copied exactly"}},` +
	`"required":["message","quote"],"additionalProperties":false}}},` +
	`"required":["text","proofs"],"additionalProperties":false}}},"required":["statements"],"additionalProperties":false}`

// Extract calls the model once.
func (s *contextModel) Extract(ctx context.Context, r promptcontext.FactsRequest) ([]promptcontext.FactChange, error) {
	var known []string
	for i := range r.Facts {
		known = append(known, r.Facts[i].ID+": "+r.Facts[i].Text())
	}
	prompt := "The list of facts:" + numbered(known, r.Messages, r.Times, r.Room)
	return askForList[promptcontext.FactChange](ctx, s, "facts", "changes", r.Instructions, factSchema, prompt)
}

// Observe calls the model once.
func (s *contextModel) Observe(ctx context.Context, r promptcontext.ObservationsRequest) ([]promptcontext.Statement, error) {
	prompt := "The newest lines of the log:" + numbered(r.Recent, r.Messages, r.Times, r.Room)
	return askForList[promptcontext.Statement](ctx, s, "observations", "statements", r.Instructions, statementSchema, prompt)
}

// askForList calls the model for an object with a list, whose key is the name of what is in it.
func askForList[T any](ctx context.Context, s *contextModel, name, key, instructions, schema, prompt string) ([]T, error) {
	instructions += "\n\nAnswer with one JSON object of this schema, and nothing else. Without " + key + " the list is empty.\n" + schema
	answer, err := s.ask(ctx, instructions, prompt+"\n\nNow write the "+key+".", &model.Schema{Name: name, JSON: json.RawMessage(schema)})
	if err != nil {
		return nil, err
	}
	all, err := answerList[T](answer, key)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", s.id, err)
	}
	return all, nil
}

// answerList reads the list of the object in an answer, which may be in a code block.
func answerList[T any](answer, key string) (all []T, err error) {
	answer = value.AnswerText(answer)
	from, to := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}')
	var found map[string]json.RawMessage
	if from < 0 || to < from || json.Unmarshal([]byte(answer[from:to+1]), &found) != nil {
		return nil, errors.New("the answer is not a JSON object")
	}
	if list := found[key]; list != nil {
		if err := json.Unmarshal(list, &all); err != nil {
			return nil, fmt.Errorf("the answer is not a list of %s: %w", key, err)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("the answer has no list of %s", key)
	}
	return all, nil
}

// numbered returns what is known and the messages as one text.
func numbered(known []string, messages []chat.Message, times []time.Time, room int) string {
	const bytesPerToken = 3
	var b strings.Builder
	b.WriteString("\n\n")
	if len(known) == 0 {
		b.WriteString("(none yet)\n")
	}
	for _, line := range known {
		b.WriteString(line + "\n")
	}
	b.WriteString("\nThe messages that come next:\n")
	for i := range messages {
		msg := &messages[i]
		text := truncate(msg.Text(), room*bytesPerToken)
		if text == "" || msg.Role != chat.User && msg.Role != chat.Assistant {
			continue
		}
		fmt.Fprintf(&b, "\n%d. %s, %s: %s", i+1, msg.Role, times[i].Format(time.DateOnly), indented(text))
	}
	return b.String()
}
