package cli

import "strings"

// Matching returns the ids that begin with what was typed.
func Matching[T any](all []T, typed string, id func(T) string) []string {
	var ids []string
	for _, x := range all {
		if id := id(x); id != "" && strings.HasPrefix(id, typed) {
			ids = append(ids, id)
		}
	}
	return ids
}
