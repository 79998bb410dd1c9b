package promptcontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/memory"
)

// Portable returns the facts of a session: they cannot be made again from its messages, because
// people may have written some.
func (c *source) Portable(h memory.Head) map[string][]byte {
	facts := factsOf(h)
	facts.forgetGenerations()
	if raw := facts.encode(); c.facts != nil && len(raw) > 0 {
		return map[string][]byte{factsValue: raw}
	}
	return nil
}

// forgetGenerations removes what holds only for the sessions of one store.
func (s *factState) forgetGenerations() {
	for session, m := range s.Seen {
		m.Generation = 0
		s.Seen[session] = m
	}
}

// Imported checks the facts of a transcript.
func (c *source) Imported(name string, value []byte) ([]byte, error) {
	if name != factsValue || c.facts == nil {
		return nil, fmt.Errorf("the memory has no context block for %s", name)
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	var s factState
	if err := dec.Decode(&s); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	var ids []string
	for _, f := range s.Facts {
		switch {
		case f.ID == "" || slices.Contains(ids, f.ID):
			return nil, fmt.Errorf("the id %q of a fact is empty, or that of another one", f.ID)
		case len(f.Versions) == 0 || len(f.Versions) > maxFactVersions:
			return nil, fmt.Errorf("fact %s has %d versions, not 1 to %d", f.ID, len(f.Versions), maxFactVersions)
		}
		for _, v := range f.Versions {
			if singleSpaced(v.Text) != v.Text || v.Text == "" || len(v.Text) > maxFactBytes {
				return nil, fmt.Errorf("fact %s: a fact has 1 to %d bytes in one line", f.ID, maxFactBytes)
			}
		}
		ids = append(ids, f.ID)
	}
	if s.To < 0 || s.Next < len(s.Facts) {
		return nil, errors.New("the numbers of the facts are not those of a list")
	}
	s.forgetGenerations()
	return s.encode(), nil
}
