package model

import "strings"

// window is how many tokens the models whose names begin with prefix read and
// write in one call.
type window struct {
	prefix string
	tokens int
}

// windows lists common models, as their providers' model pages state them
// (platform.openai.com, docs.anthropic.com, ai.google.dev, docs.mistral.ai,
// 2025). The longest prefix that fits holds. Models that people run themselves
// are missing on purpose: their window is the server's setting.
func windows() []window {
	return []window{
		{"chatgpt-4o", 128_000}, {"gpt-3.5-turbo", 16_385}, {"gpt-3.5-turbo-instruct", 4_096},
		{"gpt-4", 8_192}, {"gpt-4-0125", 128_000}, {"gpt-4-1106", 128_000}, {"gpt-4-32k", 32_768},
		{"gpt-4-turbo", 128_000}, {"gpt-4.1", 1_047_576}, {"gpt-4.5", 128_000}, {"gpt-4o", 128_000},
		{"gpt-5", 400_000}, {"gpt-5-chat", 128_000}, {"gpt-oss", 131_072},
		{"o1", 200_000}, {"o1-mini", 128_000}, {"o1-preview", 128_000}, {"o3", 200_000}, {"o4-mini", 200_000},
		{"claude-2", 100_000}, {"claude-2.1", 200_000}, {"claude-3", 200_000},
		{"claude-haiku-4", 200_000}, {"claude-opus-4", 200_000}, {"claude-sonnet-4", 200_000},
		{"gemini-1.5-flash", 1_048_576}, {"gemini-1.5-pro", 2_097_152}, {"gemini-2", 1_048_576},
		{"mistral-large", 131_072}, {"mistral-medium", 131_072}, {"mistral-small", 131_072}, {"open-mistral-7b", 32_768},
	}
}

// ContextWindow is how many tokens the model of that name reads and writes in
// one call, 0 where it is not known. A vendor's prefix, as in openai/gpt-4o, is
// passed over.
func ContextWindow(name string) int {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	var best window
	for _, w := range windows() {
		if strings.HasPrefix(name, w.prefix) && len(w.prefix) > len(best.prefix) {
			best = w
		}
	}
	return best.tokens
}

// MaxTokens is the room that inference parameters ask for the answer, 0 where
// they leave it to the provider.
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
