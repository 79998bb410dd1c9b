package runtime

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// MemoryIDs are the ids of the memories that the steps of a flow speak in, and those
// of the flows that they run, in the order of the document.
func MemoryIDs(f *spec.Flow) []string {
	var ids []string
	known := map[*spec.Flow]bool{}
	var look func(*spec.Flow)
	look = func(f *spec.Flow) {
		if f == nil || known[f] {
			return
		}
		known[f] = true
		for _, item := range f.Steps {
			if m := chatMemoryOf(item.Step); m != nil && !slices.Contains(ids, m.ID) {
				ids = append(ids, m.ID)
			}
			for _, called := range callees(item.Step) {
				look(called)
			}
		}
	}
	look(f)
	return ids
}

// chatMemoryOf is the memory that a step speaks in, nil for none.
func chatMemoryOf(s spec.Step) *spec.Memory {
	switch s := s.(type) {
	case *spec.LLMInference:
		return s.Memory.To
	case *spec.Agent:
		return s.Memory.To
	}
	return nil
}
