package tokenizer_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

func TestForModel(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o":                        tokenizer.O200k,
		"gpt-4o-mini-2024-07-18":        tokenizer.O200k,
		"GPT-4o":                        tokenizer.O200k,
		" gpt-4o ":                      tokenizer.O200k,
		"chatgpt-4o-latest":             tokenizer.O200k,
		"gpt-4.1":                       tokenizer.O200k,
		"gpt-4.1-nano":                  tokenizer.O200k,
		"gpt-4.5-preview":               tokenizer.O200k,
		"gpt-5":                         tokenizer.O200k,
		"gpt-5.1-codex":                 tokenizer.O200k,
		"gpt-5-mini":                    tokenizer.O200k,
		"o1":                            tokenizer.O200k,
		"o1-preview":                    tokenizer.O200k,
		"o3-pro":                        tokenizer.O200k,
		"o4-mini":                       tokenizer.O200k,
		"gpt-oss:20b":                   tokenizer.O200k,
		"openai.gpt-oss-120b-1:0":       tokenizer.O200k,
		"openai/gpt-4o":                 tokenizer.O200k,
		"openai:gpt-4o":                 tokenizer.O200k,
		"azure/gpt-4o":                  tokenizer.O200k,
		"openrouter/openai/gpt-4o:free": tokenizer.O200k,
		"ft:gpt-4o-mini:acme::7":        tokenizer.O200k,
		"gpt-4":                         tokenizer.Cl100k,
		"gpt-4-turbo-2024-04-09":        tokenizer.Cl100k,
		"gpt-4-32k":                     tokenizer.Cl100k,
		"gpt-3.5-turbo":                 tokenizer.Cl100k,
		"gpt-35-turbo":                  tokenizer.Cl100k,
		"ft:gpt-3.5-turbo-0613:acme::7": tokenizer.Cl100k,
		"text-embedding-3-small":        tokenizer.Cl100k,
		"text-embedding-ada-002":        tokenizer.Cl100k,
		"davinci-002":                   tokenizer.Cl100k,
		"text-davinci-003":              tokenizer.P50k,
		"code-davinci-002":              tokenizer.P50k,
		"text-davinci-edit-001":         tokenizer.P50kEdit,
		"code-davinci-edit-001":         tokenizer.P50kEdit,
		"davinci":                       tokenizer.R50k,
		"davinci:ft-acme-2023":          tokenizer.R50k,
		"text-davinci-001":              tokenizer.R50k,
		"text-similarity-babbage-001":   tokenizer.R50k,
		"gpt2":                          tokenizer.R50k,
	} {
		if got, exact := tokenizer.ForModel(model); got != want || !exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, true", model, got, exact, want)
		}
	}
}

func TestForModel_Unknown(t *testing.T) {
	for _, model := range []string{
		"", "/", "openai/", "ft:", "claude-sonnet-4-5", "anthropic/claude-3-opus", "amazon.nova-lite-v1:0", "llama3.1", "mistral-large",
		"gemini-2.5-pro", "gpt-4.7", "gpt-40", "gpt-6", "o10", "o1x", "acme/gpt-4o", "my-gpt-4o", "gpt4all", "davincix", "command-r",
	} {
		if got, exact := tokenizer.ForModel(model); got != tokenizer.Cl100k || exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, false", model, got, exact, tokenizer.Cl100k)
		}
	}
}

// TestForModel_MatchesTiktoken covers every model that tiktoken-go knows.
func TestForModel_MatchesTiktoken(t *testing.T) {
	for model, want := range tiktokenModels() {
		if want == "gpt2" {
			want = tokenizer.R50k // an encoding that tiktoken-go does not have
		}
		if got, exact := tokenizer.ForModel(model); got != want || !exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, true", model, got, exact, want)
		}
	}
}
