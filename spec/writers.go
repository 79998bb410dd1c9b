package spec

import (
	"maps"
	"slices"
)

// Writers returns the ids of the steps whose text is the value of a variable: those that
// write it, in the flow and in the flows that it runs.
func (f *Flow) Writers(variable string) map[string]bool {
	return f.writers(variable, map[*Flow]bool{})
}

func (f *Flow) writers(variable string, seen map[*Flow]bool) map[string]bool {
	found := map[string]bool{}
	if f == nil || seen[f] {
		return found
	}
	seen[f] = true
	for _, s := range f.Plan().Steps {
		calls := s.Calls()
		for _, call := range calls {
			for _, inner := range call.InnerOutputs(variable) {
				maps.Copy(found, call.Flow.To.writers(inner, seen))
			}
		}
		writes := func(r *Ref[*Variable]) bool { return r.ID == variable }
		if len(calls) == 0 && slices.ContainsFunc(s.Writes, writes) {
			found[s.Step.EntityID()] = true
			for _, ref := range s.Handoffs() {
				maps.Copy(found, ref.To.answerWriters(seen))
			}
		}
	}
	return found
}

// answerWriters returns the writers of the only output of a flow, to which an Agent hands
// the conversation over; f may be nil.
func (f *Flow) answerWriters(seen map[*Flow]bool) map[string]bool {
	if f == nil || len(f.Outputs) != 1 {
		return nil
	}
	return f.writers(f.Outputs[0].ID, seen)
}
