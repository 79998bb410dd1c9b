package memoryconfig

import (
	"reflect"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestBlockBuilders: each type of context block has a builder.
func TestBlockBuilders(t *testing.T) {
	blocks := 0
	for _, u := range spec.Unions() {
		if u.Type != reflect.TypeFor[spec.ContextBlock]() {
			continue
		}
		for _, c := range u.Cases {
			blocks++
			if blockBuilders()[reflect.TypeOf(c.New())] == nil {
				t.Errorf("context block %s has no builder: add it to blockBuilders", c.Tag)
			}
		}
	}
	if blocks == 0 {
		t.Error("the language has no context blocks")
	}
}
