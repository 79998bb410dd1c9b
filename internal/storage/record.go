package storage

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/memory/store"
)

// Record holds the parts of a change that stores write as JSON.
type Record struct {
	State    string
	Messages []string // of the change's entries, in the same order
	Events   []string // in the order of the change's events
}

// Encode converts a change.
func Encode(c store.Change) (Record, error) {
	var r Record
	state, err := json.Marshal(c.State)
	if err != nil {
		return r, err
	}
	r.State = string(state)
	for _, e := range c.Entries {
		raw, err := e.Message.MarshalJSON()
		if err != nil {
			return r, err
		}
		r.Messages = append(r.Messages, string(raw))
	}
	for _, e := range c.Events {
		raw, err := json.Marshal(e)
		if err != nil {
			return r, err
		}
		r.Events = append(r.Events, string(raw))
	}
	return r, nil
}
