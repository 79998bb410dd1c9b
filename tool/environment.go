package tool

import (
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// Environment returns the environment variables that a document declares for a program.
// secret resolves references to a secret manager; nil where there is none.
func Environment(declared map[string]spec.Secret, secret func(spec.Secret) (string, error)) (map[string]string, error) {
	given := make(map[string]string, len(declared))
	for _, name := range slices.Sorted(maps.Keys(declared)) { // sorted, so that the error is always the same
		text := declared[name].Reveal()
		if secret != nil {
			var err error
			if text, err = secret(declared[name]); err != nil {
				return nil, fmt.Errorf("env %s: %w", name, err)
			}
		}
		given[name] = text
	}
	return given, nil
}
