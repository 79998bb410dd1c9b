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
