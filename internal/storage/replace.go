package storage

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/memory/store"
)

// Replaced holds the records of a replacement, as JSON.
type Replaced struct {
	Messages map[int64]string // by position
	Events   map[int64]string // by index
}

// EncodeReplacement converts a replacement.
func EncodeReplacement(r store.Replacement) (Replaced, error) {
	out := Replaced{Messages: make(map[int64]string, len(r.Messages)), Events: make(map[int64]string, len(r.Events))}
	for seq := range r.Messages {
		raw, err := r.Messages[seq].MarshalJSON()
		if err != nil {
			return out, err
		}
		out.Messages[seq] = string(raw)
	}
	for i := range r.Events {
		raw, err := json.Marshal(r.Events[i])
		if err != nil {
			return out, err
		}
		out.Events[i] = string(raw)
	}
	return out, nil
}
