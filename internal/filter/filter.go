// Package filter checks metadata against the conditions of the key `filters`.
package filter

// Filter is a condition on metadata. Stores translate it to their query language by a
// type switch over the types of this package; Match is the reference implementation.
type Filter interface {
	// Match reports whether metadata satisfies the condition.
	Match(metadata map[string]any) bool
}
