package spec_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestModel_PriceRegion: every regional host of a service is charged for, and no other host.
func TestModel_PriceRegion(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://api.openai.com/v1":                 "",
		"https://us.api.openai.com/v1":              "us",
		"https://eu.api.openai.com/v1":              "eu",
		"https://JP.api.openai.com/v1":              "eu", // all other regions have the surcharge of the EU
		"https://gateway.local/us.api.openai.com/v": "",
		"https://us.api.openai.com.example/v1":      "",
	} {
		if got := (&spec.Model{Provider: "openai", ModelID: "gpt-6-sol"}).PriceRegion(endpoint); got != want {
			t.Errorf("%s: %q", endpoint, got)
		}
	}
	vertex := &spec.Model{Provider: "gcp-vertex", ModelID: "gemini-3.5-flash"}
	for endpoint, want := range map[string]string{"https://aiplatform.googleapis.com": "", "https://europe-west4-aiplatform.googleapis.com": "regional"} {
		if got := vertex.PriceRegion(endpoint); got != want {
			t.Errorf("%s: %q", endpoint, got)
		}
	}
}
