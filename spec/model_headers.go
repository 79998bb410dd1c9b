package spec

// HeaderConflict returns the first header of the model that a request cannot have, and why; both
// are empty if there is none.
func (m *Model) HeaderConflict() (name, problem string) {
	for _, c := range headerConflicts(m.Headers, "Authorization", "Content-Type", "X-Api-Key", "X-Goog-Api-Key", "Api-Key") {
		return c.Entry, c.Problem
	}
	return "", ""
}
