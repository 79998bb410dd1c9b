package diagram

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/qtype-dev/qtype/spec"
)

// notesOf is what is worth a line below an entity's id. Secrets, and texts that
// may hold them, are not.
func notesOf(e spec.Entity) []string {
	typ := spec.TypeName(e)
	switch e := e.(type) {
	case spec.ModelEntity:
		return modelNotes(e)
	case *spec.Memory:
		return []string{memoryNote(e)}
	case *spec.APITool:
		note := typ + " · " + e.Method
		if u, err := url.Parse(e.Endpoint); err == nil && u.Host != "" {
			note += " " + u.Host // without the user, the path and the query
		}
		return []string{note}
	case *spec.Store:
		return []string{e.Type}
	case *spec.Telemetry:
		return []string{e.Provider}
	case *spec.Flow:
		if e.Interface != nil {
			return []string{e.Interface.Type}
		}
		return nil
	case *spec.Decoder:
		return []string{typ + " · " + e.Format}
	}
	if typ == "" {
		return nil
	}
	return []string{typ}
}

func modelNotes(e spec.ModelEntity) []string {
	m := e.Base()
	note := m.Provider
	if m.Provider != "mock" {
		note += " · " + m.Name()
	}
	if embedding, ok := e.(*spec.EmbeddingModel); ok {
		note += fmt.Sprintf(" · %d dimensions", embedding.Dimensions)
	}
	return []string{note}
}

// memoryNote returns the policy and the size of its window.
func memoryNote(m *spec.Memory) string {
	row, _ := m.Row()
	note := string(m.Policy)
	for i, l := range row.Limits {
		switch value := m.Limit(l.Key); {
		case i == 0:
			note += fmt.Sprintf(" · %s %s", thousands(int(value)), l.Unit)
		case l.Unit == spec.UnitShare:
			note += " × " + strconv.FormatFloat(value, 'g', -1, 64)
		}
	}
	return note
}

// thousands is 50,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
