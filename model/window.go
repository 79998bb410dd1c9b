package model

import "github.com/qtype-dev/qtype/internal/catalogue"

// window returns how many tokens a model reads and writes in one call, 0 if that is not
// known. Some models read fewer tokens than the window has: then it is what they read and
// the answer that is reserved.
func window(known *catalogue.Model, answer int) int {
	if known.MaxInput == 0 {
		return known.ContextWindow
	}
	return min(known.ContextWindow, known.MaxInput+answer)
}

// MaxTokens returns how many tokens the inference parameters reserve for the
// answer, 0 where they leave it to the provider.
func MaxTokens(params map[string]any) int {
	for _, key := range []string{"max_completion_tokens", "max_tokens"} {
		switch n := params[key].(type) {
		case int:
			return n
		case int64:
			return int(n)
		case uint64:
			return int(n)
		case float64:
			return int(n)
		}
	}
	return 0
}
