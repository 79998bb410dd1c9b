package model

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// ContextWindow returns how many tokens the model of that name reads and writes
// in one call, 0 where it is not known: the longest prefix in the rows of all
// providers decides, since gateways serve the models of many. A vendor's prefix,
// as in openai/gpt-4o, is ignored, and so are those of Bedrock, as in
// us.anthropic.claude-sonnet-4.
func ContextWindow(name string) int {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for known := true; known; _, name, known = strings.Cut(name, ".") {
		if window := windowOf(name); window > 0 {
			return window
		}
	}
	return 0
}

// windowOf returns the context window of a name without a vendor's prefix.
func windowOf(name string) int {
	var best spec.ContextWindow
	for _, p := range spec.Providers() {
		for _, w := range p.ContextWindows {
			if strings.HasPrefix(name, w.Prefix) && len(w.Prefix) > len(best.Prefix) {
				best = w
			}
		}
	}
	return best.Tokens
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
