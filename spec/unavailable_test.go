package spec_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

func TestNotAvailableError(t *testing.T) {
	for want, err := range map[string]*spec.NotAvailableError{
		"model gpt: provider x is not available yet": {Owner: "model gpt", What: "provider x"},
		"step type x is not available yet":           {What: "step type x"},
	} {
		if err.At(&spec.Model{}).Error() != want { // a model without a position
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A case that is Missing and an unknown provider are not available; everything else is.
func TestCheckAvailable(t *testing.T) {
	unions := spec.Unions()
	for _, u := range unions {
		for i, c := range u.Cases {
			n := c.New()
			if m, ok := n.(spec.ModelEntity); ok {
				m.Base().Provider = "mock"
			}
			if err := spec.CheckAvailable(n); err != nil {
				t.Errorf("%s: %v", c.Tag, err)
			}
			u.Cases[i].Missing = true
			err := spec.CheckAvailableIn(n, []spec.Union{u})
			if err == nil || err.What != u.Name+" type "+c.Tag || err.Key != "type" {
				t.Errorf("%s is missing: %v", c.Tag, err)
			}
		}
	}
	unknown := spec.CheckAvailable(&spec.Model{ID: "gpt", Provider: "x"})
	if unknown == nil || unknown.Error() != "model gpt: provider x is not available yet" {
		t.Error(unknown)
	}
}
