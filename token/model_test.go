package token_test

import (
	"testing"

	"github.com/qtype-dev/qtype/token"
)

func TestForModel(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o":                        token.O200k,
		"gpt-4o-mini-2024-07-18":        token.O200k,
		"GPT-4o":                        token.O200k,
		" gpt-4o ":                      token.O200k,
		"chatgpt-4o-latest":             token.O200k,
		"gpt-4.1":                       token.O200k,
		"gpt-4.1-nano":                  token.O200k,
		"gpt-4.5-preview":               token.O200k,
		"gpt-5":                         token.O200k,
		"gpt-5.1-codex":                 token.O200k,
		"gpt-5-mini":                    token.O200k,
		"o1":                            token.O200k,
		"o1-preview":                    token.O200k,
		"o3-pro":                        token.O200k,
		"o4-mini":                       token.O200k,
		"gpt-oss:20b":                   token.O200k,
		"openai.gpt-oss-120b-1:0":       token.O200k,
		"openai/gpt-4o":                 token.O200k,
		"openai:gpt-4o":                 token.O200k,
		"azure/gpt-4o":                  token.O200k,
		"openrouter/openai/gpt-4o:free": token.O200k,
		"ft:gpt-4o-mini:acme::7":        token.O200k,
		"gpt-4":                         token.Cl100k,
		"gpt-4-turbo-2024-04-09":        token.Cl100k,
		"gpt-4-32k":                     token.Cl100k,
		"gpt-3.5-turbo":                 token.Cl100k,
		"gpt-35-turbo":                  token.Cl100k,
		"ft:gpt-3.5-turbo-0613:acme::7": token.Cl100k,
		"text-embedding-3-small":        token.Cl100k,
		"text-embedding-ada-002":        token.Cl100k,
		"davinci-002":                   token.Cl100k,
		"text-davinci-003":              token.P50k,
		"code-davinci-002":              token.P50k,
		"text-davinci-edit-001":         token.P50kEdit,
		"code-davinci-edit-001":         token.P50kEdit,
		"davinci":                       token.R50k,
		"davinci:ft-acme-2023":          token.R50k,
		"text-davinci-001":              token.R50k,
		"text-similarity-babbage-001":   token.R50k,
		"gpt2":                          token.R50k,
	} {
		if got, exact := token.ForModel(model); got != want || !exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, true", model, got, exact, want)
		}
	}
}

// What is not OpenAI's is estimated, and never called exact.
func TestForUnknownModel(t *testing.T) {
	for _, model := range []string{
		"", "/", "openai/", "ft:", "claude-sonnet-4-5", "anthropic/claude-3-opus", "amazon.nova-lite-v1:0", "llama3.1", "mistral-large",
		"gemini-2.5-pro", "gpt-4.7", "gpt-40", "gpt-6", "o10", "o1x", "acme/gpt-4o", "my-gpt-4o", "gpt4all", "davincix", "command-r",
	} {
		if got, exact := token.ForModel(model); got != token.Cl100k || exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, false", model, got, exact, token.Cl100k)
		}
	}
}

// Whatever tiktoken-go knows of a model's encoding, we know too.
func TestForModelAgrees(t *testing.T) {
	for model, want := range tiktokenModels() {
		if want == "gpt2" {
			want = token.R50k // tiktoken-go names it and has no such encoding
		}
		if got, exact := token.ForModel(model); got != want || !exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, true", model, got, exact, want)
		}
	}
}
