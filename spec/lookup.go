package spec

// IDs returns the ids of entities.
func IDs[E Entity](all []E) []string {
	var ids []string
	for _, e := range all {
		ids = append(ids, e.EntityID())
	}
	return ids
}

// VariableByID returns the variable with an id, nil for none.
func VariableByID(vars []*Variable, id string) *Variable {
	for _, v := range vars {
		if v != nil && v.ID == id {
			return v
		}
	}
	return nil
}

// findRow returns the first row of a table that is the one sought.
func findRow[R any](rows []R, is func(R) bool) (row R, found bool) {
	for _, r := range rows {
		if is(r) {
			return r, true
		}
	}
	return row, false
}
