package loader_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

// TestThinking: thinking is a word or a number of tokens; YAML 1.1 reads off as false.
func TestThinking(t *testing.T) {
	for text, want := range map[string]string{"off": "off", "false": "off", `"off"`: "off", "max": "max", "8000": "8000", `"8000"`: "8000",
		"0": "needs off, low", "-5": "needs off, low", "true": "needs off, low", "hgih": "needs off, low", "[low]": "needs off, low"} {
		result, list := loader.LoadBytes(t.Context(), "app.yaml", []byte("id: a\nmodels:\n  - {type: Model, id: m, provider: openai, thinking: "+text+"}\n"), loader.Options{NoDotEnv: true})
		var got string
		switch {
		case len(list) > 0:
			got = list[0].Message
		default:
			got = string(result.Document.Application.Models[0].(*spec.Model).Thinking)
		}
		if got != want && (len(list) == 0 || !strings.Contains(got, want)) {
			t.Errorf("thinking: %s gives %q, want %q", text, got, want)
		}
	}
}
