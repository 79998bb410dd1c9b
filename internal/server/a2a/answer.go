package a2a

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// Words that approve and reject.
var (
	approveWords = []string{"approve", "approved", "yes", "true", "ok"}
	rejectWords  = []string{"reject", "rejected", "deny", "denied", "no", "false"}
)

// answersOf returns the answers that a message has to the requests of a waiting run. A data
// part is an answer, or has a list of them under answers; an answer without an id is that
// to the only request. A text answers the only request.
func answersOf(m *sdk.Message, pending []*runs.Request) ([]*runs.Answer, error) {
	var list []*runs.Answer
	for _, p := range m.Parts {
		if p == nil {
			return nil, invalid("a part of the message is null")
		}
		var err error
		switch v := p.Content.(type) {
		case sdk.Data:
			list, err = appendData(list, v.Value, pending)
		case sdk.Text:
			if strings.TrimSpace(string(v)) == "" {
				continue
			}
			list, err = appendText(list, string(v), pending)
		default:
			err = invalid("an answer must be a text or a data part")
		}
		if err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, invalid("the message has no answer")
	}
	return list, nil
}

func appendData(list []*runs.Answer, data any, pending []*runs.Request) ([]*runs.Answer, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, invalid("the data is not JSON")
	}
	var several struct {
		Answers []json.RawMessage `json:"answers"`
	}
	items := []json.RawMessage{raw}
	if json.Unmarshal(raw, &several) == nil && several.Answers != nil {
		items = several.Answers
	}
	for _, item := range items {
		a := &runs.Answer{}
		if json.Unmarshal(item, a) != nil {
			return nil, invalid(`an answer is an object with "approved", "result" or "error"`)
		}
		r, err := requestOf(a.ID, pending)
		if err != nil {
			return nil, err
		}
		a.ID = r.ID
		if err := a.Fits(r.Kind); err != nil {
			return nil, invalid("%s", err)
		}
		list = append(list, a)
	}
	return list, nil
}

func appendText(list []*runs.Answer, text string, pending []*runs.Request) ([]*runs.Answer, error) {
	r, err := requestOf("", pending)
	if err != nil {
		return nil, err
	}
	a := &runs.Answer{ID: r.ID}
	if r.Kind != runs.Approval {
		a.Result = schema.JSONOrText(text)
		return append(list, a), nil
	}
	word := strings.ToLower(strings.Trim(text, " \t\r\n.!"))
	yes := slices.Contains(approveWords, word)
	if !yes && !slices.Contains(rejectWords, word) {
		return nil, invalid(`answer "approve" or "reject", or send a data part with "approved"`)
	}
	a.Approved = &yes
	return append(list, a), nil
}

// requestOf returns the request with an id, the only one for an empty id.
func requestOf(id string, pending []*runs.Request) (*runs.Request, error) {
	if id == "" && len(pending) == 1 {
		return pending[0], nil
	}
	for _, r := range pending {
		if r.ID == id {
			return r, nil
		}
	}
	if id == "" {
		return nil, invalid(`the task waits for %d answers: each needs the "id" of its request`, len(pending))
	}
	return nil, invalid("the task does not wait for the answer to request %q", id)
}
