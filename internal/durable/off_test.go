//go:build !temporal

package durable_test

import (
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/internal/durable"
)

// TestBuildTag: a normal build names the tag.
func TestBuildTag(t *testing.T) {
	_, engine := durable.NewEngine(durable.Config{})
	_, list := durable.List(t.Context(), durable.Config{}, durable.Filter{})
	_, show := durable.Show(t.Context(), durable.Config{}, "x")
	for _, err := range []error{engine, list, show, durable.Work(t.Context(), nil, durable.WorkerConfig{}), durable.Cancel(t.Context(), durable.Config{}, "x"), durable.Retry(t.Context(), durable.Config{}, "x")} {
		if _, ok := errors.AsType[*durable.BuildTagError](err); !ok {
			t.Errorf("got %v", err)
		}
	}
}
