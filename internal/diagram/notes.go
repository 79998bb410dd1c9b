package diagram

import (
	"fmt"
	"net/url"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// notesOf returns the lines below the id of an entity. They contain no secrets and
// no texts that may contain some.
func notesOf(e spec.Entity) []string {
	if notes := styleOf(e.Kind()).notes; notes != nil {
		return notes(e)
	}
	if typ := spec.TypeName(e); typ != "" {
		return []string{typ}
	}
	return nil
}

func toolNotes(e spec.Entity) []string {
	note := spec.TypeName(e)
	if api, ok := e.(*spec.APITool); ok {
		note += " · " + api.Method
		if u, err := url.Parse(api.Endpoint); err == nil && u.Host != "" {
			note += " " + u.Host // without the user, the path and the query
		}
	}
	return []string{note}
}

func flowNotes(e spec.Entity) []string {
	if f := e.(*spec.Flow); f.Interface != nil {
		return []string{f.Interface.Type}
	}
	return nil
}

func stepNotes(e spec.Entity) []string {
	note := spec.TypeName(e)
	if format := formatOf(e.(spec.Step)); format != "" {
		note += " · " + format
	}
	return []string{note}
}

func modelNotes(entity spec.Entity) []string {
	e := entity.(spec.ModelEntity)
	m := e.Base()
	note := m.Provider
	if !m.IsMock() {
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
			note += fmt.Sprintf(" · %s %s", textfmt.Thousands(int(value)), l.Unit)
		case l.Unit == spec.UnitShare:
			note += " × " + textfmt.Number(value)
		}
	}
	return note
}
