package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// callPart is a tool call, or a part of one.
type callPart struct {
	Index    *wire.Count  `json:"index"`
	ID       string       `json:"id"`
	Function functionPart `json:"function"`
	Custom   *struct {    // in place of the function
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
	Extra json.RawMessage `json:"extra_content"` // of Google: a signature
}

// functionPart is the function of a tool call, or a part of it.
type functionPart struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // JSON text in a string; some servers send the object itself
}

// call is a partial tool call.
type call struct {
	index     int
	id, name  string
	arguments strings.Builder
	custom    bool            // whether the arguments are a text in a grammar
	extra     json.RawMessage // extra_content
}

// call adds a part of a tool call to the call it belongs to, or a whole call.
func (a *assembler) call(p callPart, whole bool) error {
	const maxCalls = 1024 // in one answer
	var slot *call
	if !whole {
		slot = a.slot(p)
	}
	if slot == nil {
		if len(a.calls) == maxCalls {
			return fmt.Errorf("more than %d tool calls", maxCalls)
		}
		slot = &call{index: len(a.calls)}
		if p.Index != nil {
			slot.index = int(*p.Index)
		}
		a.calls = append(a.calls, slot)
	}
	if p.Custom != nil {
		slot.custom, p.Function.Name, p.Function.Arguments = true, p.Custom.Name, encode(p.Custom.Input)
	}
	if isSet(p.Extra) {
		slot.extra = p.Extra
	}
	slot.id = cmp.Or(slot.id, p.ID)
	if slot.arguments.Len() == 0 && p.Function.Name != slot.name { // some servers also send names in parts
		slot.name += p.Function.Name
	}
	arguments, err := argumentText(p.Function.Arguments)
	if err != nil {
		return err
	}
	if slot.arguments.Len()+len(arguments) > wire.MaxAnswer {
		return wire.ErrTooLong
	}
	if known := slot.arguments.String(); arguments == known && json.Valid([]byte(known)) { // the whole call again
		return nil
	}
	slot.arguments.WriteString(arguments)
	return nil
}

// addCall adds a complete call to the answer.
func (a *assembler) addCall(c *call) error {
	arguments := c.arguments.String()
	if c.custom {
		arguments = textArguments(a.texts[c.name], arguments)
	}
	a.draft.Call(c.id, c.name, arguments)
	switch {
	case c.custom:
		return a.draft.Attach(chat.CallType, chat.Item{Field: customField})
	case c.extra != nil:
		return a.draft.Attach(chat.CallType, chat.Item{Field: callField, JSON: string(c.extra)})
	}
	return nil
}

// slot finds the call that a part continues, nil if it begins one. Parts of several calls
// are interleaved and have the index of their call, or its id. Servers also number all
// calls 0, or not at all, and assign no ids, or a new one with each part.
func (a *assembler) slot(p callPart) *call {
	for _, c := range slices.Backward(a.calls) {
		if p.ID != "" && p.ID == c.id && (p.Index == nil || int(*p.Index) == c.index) {
			return p.unlessNext(c)
		}
	}
	for i, c := range slices.Backward(a.calls) {
		switch {
		case p.Index != nil && int(*p.Index) == c.index:
			return p.unlessNext(c)
		case p.Index == nil && p.Function.Name == "" && i == len(a.calls)-1:
			return p.unlessNext(c)
		}
	}
	return nil
}

// unlessNext returns the call that a part seems to continue, nil if the call is complete
// and the part begins the next one: it has a name or another id.
func (p callPart) unlessNext(c *call) *call {
	named, other := p.Function.Name != "", p.ID != "" && c.id != "" && p.ID != c.id
	arguments := c.arguments.String()
	switch {
	case !other && c.id != "" && p.repeats(c):
		return c
	case (named || other) && json.Valid([]byte(arguments)):
		return nil
	case named && other && (arguments == "" || p.Function.Name != c.name):
		return nil
	}
	return c
}

// repeats reports whether a part has nothing that its call lacks.
func (p callPart) repeats(c *call) bool {
	arguments, err := argumentText(p.Function.Arguments)
	if err != nil || p.Function.Name != "" && p.Function.Name != c.name {
		return false
	}
	return strings.TrimSpace(arguments) == "" || p.ID != "" && arguments == c.arguments.String()
}

// argumentText returns the JSON text in a string, or the object that some servers send.
func argumentText(raw json.RawMessage) (string, error) {
	text := string(raw)
	switch {
	case text == "null":
		return "", nil
	case strings.HasPrefix(text, `"`):
		err := json.Unmarshal(raw, &text)
		return text, err
	}
	return text, nil
}
