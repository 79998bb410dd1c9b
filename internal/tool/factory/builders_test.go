package factory

import (
	"reflect"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// Every type of tool of the language has a builder.
func TestBuilders(t *testing.T) {
	for _, u := range spec.Unions() {
		if u.Type != reflect.TypeFor[spec.Tool]() {
			continue
		}
		for _, c := range u.Cases {
			if _, ok := builders()[reflect.TypeOf(c.New())]; ok == c.Missing {
				t.Errorf("tool type %s: has a builder: %v, is missing: %v", c.Tag, ok, c.Missing)
			}
		}
		if len(u.Cases) != len(builders()) {
			t.Errorf("%d types of tools, %d builders", len(u.Cases), len(builders()))
		}
	}
}
