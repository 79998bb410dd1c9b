package tokenizer_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// Estimates of texts are at most half from their tokens.
func TestEstimate(t *testing.T) {
	for _, name := range []string{tokenizer.O200k, tokenizer.Cl100k} {
		exact, estimated := encoding(t, name), tokenizer.Estimated(name)
		for _, text := range []string{
			"Good morning. The rear brake of my touring bicycle squeals on every descent, and since last week the lever comes close to the handlebar.",
			`{"role": "user", "content": "What is my name?", "tokens": 1234567}`,
			"Guten Morgen. Die hintere Bremse quietscht seit einer Woche bei jeder Abfahrt, und der Hebel kommt dem Lenker nahe.",
			"memories:\n  - id: chat_memory\n    policy: token_window\n    max_tokens: 400\n",
		} {
			want, got := exact.Count(text), estimated.Count(text)
			if got*3 < want*2 || got*2 > want*3 {
				t.Errorf("%s: %d tokens, estimated %d: %q", name, want, got, text)
			}
		}
		if got := estimated.Count(""); got != 0 {
			t.Errorf("an empty text has %d tokens", got)
		}
	}
}
