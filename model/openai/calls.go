package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model/internal/wire"
)

// callPart is a tool call, or a part of one.
type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // JSON text in a string; some servers send the object itself
	} `json:"function"`
}

// call is a partial tool call.
type call struct {
	index     int
	id, name  string
	arguments strings.Builder
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
			slot.index = *p.Index
		}
		a.calls = append(a.calls, slot)
	}
	slot.id = cmp.Or(slot.id, p.ID)
	slot.name = cmp.Or(slot.name, p.Function.Name)
	arguments, err := argumentText(p.Function.Arguments)
	if err != nil {
		return err
	}
	if slot.arguments.Len()+len(arguments) > wire.MaxAnswer {
		return wire.ErrTooLong
	}
	slot.arguments.WriteString(arguments)
	return nil
}

// slot finds the call that a part continues, nil if it begins one. Parts of several calls
// are interleaved and have the index of their call; servers that number all calls 0, or
// not at all, still assign different ids.
func (a *assembler) slot(p callPart) *call {
	for i, c := range slices.Backward(a.calls) {
		switch {
		case p.ID != "" && p.ID == c.id:
			return c
		case p.ID != "" && c.id != "": // the id of another call
		case p.Index != nil && *p.Index == c.index:
			return c
		case p.Index == nil && p.ID == "" && p.Function.Name == "" && i == len(a.calls)-1:
			return c
		}
	}
	return nil
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
