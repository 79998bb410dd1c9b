package schema

import "slices"

// Answering returns the ids of the steps that write the answer of the flow with a model, in
// alphabetical order.
func (f *Flow) Answering() []string {
	if f.Answer == nil {
		return nil
	}
	writers := f.Spec.Writers(f.Answer.ID)
	ids := []string{}
	for s := range f.Spec.Plan().All() {
		if id := s.Step.Common().ID; writers[id] && s.Model() != nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
