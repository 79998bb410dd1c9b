package spec_test

import (
	"testing"

	"golang.org/x/net/http/httpguts"

	"github.com/qtype-dev/qtype/spec"
)

// TestHeader compares the checks of headers with those of httpguts, for every byte.
func TestHeader(t *testing.T) {
	texts := []string{""}
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}), "a"+string([]byte{byte(b)})+"z")
	}
	for _, text := range texts {
		if got, want := spec.IsHeaderName(text), httpguts.ValidHeaderFieldName(text); got != want {
			t.Errorf("name %q: %v, want %v", text, got, want)
		}
		if got, want := spec.IsHeaderValue(text), httpguts.ValidHeaderFieldValue(text); got != want {
			t.Errorf("value %q: %v, want %v", text, got, want)
		}
	}
}
