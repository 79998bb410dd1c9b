package catalogue_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// TestLookup_Spellings checks names that are those of a row, or one of their documented
// spellings.
func TestLookup_Spellings(t *testing.T) {
	for _, test := range []struct{ provider, name, id string }{
		{"openai", "gpt-5.5", "gpt-5.5"},
		{"openai", "GPT-5.5", "gpt-5.5"},
		{"openai", "gpt-5.5-2026-04-23", "gpt-5.5"},
		{"openai", "gpt-6-sol-2026-09-01", "gpt-6-sol"}, // a snapshot that the row does not list
		{"openai", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"},
		{"openai", "gpt-5-chat-latest", "gpt-5-chat-latest"},
		{"openai", "ft:gpt-4.1:acme::id", "gpt-4.1"},
		{"openai", "ft:gpt-4.1-2025-04-14:acme:name:id", "gpt-4.1"},
		{"anthropic", "claude-opus-4-8", "claude-opus-4-8"},
		{"anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"},
		{"anthropic", "claude-opus-4-20250514", "claude-opus-4-0"},
		{"anthropic", "claude-opus-4-1-20250805", "claude-opus-4-1"},
		{"google-ai", "models/gemini-3.8-flash", "gemini-3.8-flash"},
		{"google-ai", "gemini-flash-latest", "gemini-flash-latest"},
		{"mistral", "mistral-large-2512", "mistral-large-2512"},
		{"gcp-vertex", "claude-opus-5-5", "claude-opus-5-5"},
		{"gcp-vertex", "claude-opus-4-5@20251101", "claude-opus-4-5@20251101"},
		{"gcp-vertex", "claude-opus-5-5@20261001", "claude-opus-5-5"},
		{"gcp-vertex", "publishers/anthropic/models/claude-opus-5-5@default", "claude-opus-5-5@default"},
		{"google-ai", "projects/p/locations/l/publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"google-ai", "publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"gcp-vertex", "projects/p/locations/l/publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"azure-openai", "gpt-5.5", "gpt-5.5"},
		{"aws-bedrock", "anthropic.claude-opus-5-5", "anthropic.claude-opus-5-5"},
		{"aws-bedrock", "us.anthropic.claude-opus-5-5", "anthropic.claude-opus-5-5"},
		{"aws-bedrock", "us-gov.anthropic.claude-opus-5-5", "anthropic.claude-opus-5-5"},
		{"aws-bedrock", "global.anthropic.claude-opus-4-6-v1", "anthropic.claude-opus-4-6-v1"},
		{"aws-bedrock", "global.anthropic.claude-opus-4-6-v1:0", "anthropic.claude-opus-4-6-v1"},
		{"aws-bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"aws-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1", "anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"aws-bedrock", "amazon.nova-lite-v1:0:24k", "amazon.nova-lite-v1:0"},
		{"aws-bedrock", "amazon.titan-embed-text-v1", "amazon.titan-embed-text-v1"},
		{"aws-bedrock", "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0"},
		{"aws-bedrock", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0"},
		{"", "gpt-5.5", "gpt-5.5"},
		{"", "openai/gpt-5.5", "gpt-5.5"},
		{"", "openrouter/openai/gpt-5.5", "gpt-5.5"},
		{"", "anthropic/claude-opus-4.8", "claude-opus-4-8"},
		{"", "google/gemini-3.8-flash", "gemini-3.8-flash"},
		{"", "bedrock/us.anthropic.claude-opus-5-5", "anthropic.claude-opus-5-5"},
		{"", "deepseek-v4-pro", "deepseek-v4-pro"},
		{"", "openai/gpt-oss-120b", "openai/gpt-oss-120b"},
	} {
		if m, ok := catalogue.Lookup(test.provider, test.name); !ok || m.ID != test.id {
			t.Errorf("Lookup(%q, %q) = %v, want %s", test.provider, test.name, m, test.id)
		}
	}
}

// TestLookup_Unknown checks names that begin or end like those of rows, and are of other models.
func TestLookup_Unknown(t *testing.T) {
	for _, test := range []struct{ provider, name string }{
		{"openai", ""}, {"openai", "gpt-5.7"}, {"openai", "gpt-5.5-turbo"}, {"openai", "gpt-5.55"}, {"openai", "gpt"}, {"openai", "gpt-5."},
		{"openai", "gpt-5.5-2026-13-40"}, {"openai", "gpt-5.5-20261340"}, {"openai", "gpt-5.5-12345678"}, {"openai", "gpt-5.5:online"},
		{"openai", "claude-opus-4-8"}, {"openai", "openai/gpt-5.5"}, {"openai", "deepseek-v4-pro"}, {"openai", "ft:"}, {"openai", "ft:gpt-9:acme::id"},
		{"anthropic", "claude-opus-4-9"}, {"anthropic", "claude-opus-4"}, {"anthropic", "claude-opus"}, {"anthropic", "claude-opus-4-8-fast"},
		{"openai", "gpt-4o-mini-2099-01-01"}, {"openai", "gpt-4o-mini-2026-12-01"}, {"openai", "gpt-4o-mini-2021-01-01"}, {"anthropic", "claude-haiku-4-5-20990101"},
		{"gcp-vertex", "claude-opus-4-8@evil"}, {"gcp-vertex", "claude-opus-4-8@20990101"}, {"google-ai", "projects/p/publishers/evil/models/gemini-2.5-pro"},
		{"google-ai", "gemini-3"}, {"google-ai", "gemini-4"}, {"gcp-vertex", "claude-opus-4-8@"}, {"ollama", "llama3.2"},
		{"aws-bedrock", "anthropic.claude-opus-5-5-v2:0"}, {"aws-bedrock", "amazon.titan-embed-text"}, {"aws-bedrock", "mars.anthropic.claude-opus-5-5"},
		{"aws-bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"}, {"aws-bedrock", "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abc"},
		{"", "someone/else"}, {"", "/"}, {"", "gpt-5.7"}, {"nowhere", "gpt-5.5"},
	} {
		if m, ok := catalogue.Lookup(test.provider, test.name); ok {
			t.Errorf("Lookup(%q, %q) = %s/%s, want none", test.provider, test.name, m.Provider, m.ID)
		}
	}
}

// TestLookup_EveryRow checks that each name of each row finds that row, and no other.
func TestLookup_EveryRow(t *testing.T) {
	all := catalogue.All()
	for _, want := range all {
		for _, name := range slices.Concat([]string{want.ID}, want.Aliases, want.Snapshots) {
			if m, ok := catalogue.Lookup(want.Provider, name); !ok || m.ID != want.ID {
				t.Errorf("Lookup(%q, %q) = %v", want.Provider, name, m)
			}
		}
		for prefix, profile := range want.Profiles {
			m, ok := catalogue.Lookup(want.Provider, profile.ID)
			if !ok || m.ID != want.ID || m.Profile != prefix || *m.Prices.Input != profile.Input || *m.Prices.Output != profile.Output {
				t.Errorf("profile %s: %+v", profile.ID, m)
			}
		}
	}
	if len(all) != 513 {
		t.Errorf("%d models, want 513", len(all))
	}
}

// TestLookup_Cases checks what a spelling changes in the row.
func TestLookup_Cases(t *testing.T) {
	tuned, _ := catalogue.Lookup("openai", "ft:gpt-4.1:acme::id")
	if tuned.Prices != nil || tuned.ContextWindow != 1_047_576 {
		t.Errorf("a fine-tuned model has prices or no window: %+v", tuned)
	}
	base, _ := catalogue.Lookup("openai", "gpt-4.1")
	if base.FineTuned {
		t.Error("the base is fine-tuned")
	}
	unlisted, _ := catalogue.Lookup("aws-bedrock", "us-gov.anthropic.claude-opus-4-5-20251101-v1:0")
	if unlisted.Prices != nil || unlisted.ContextWindow == 0 {
		t.Errorf("a profile that is not listed has prices: %+v", unlisted)
	}
}

// TestNearest checks the names that an unknown name may mean.
func TestNearest(t *testing.T) {
	if got := (*catalogue.Catalogue)(nil).Nearest("anthropic", "claude-opus-5-6"); !slices.Contains(got, "claude-opus-5-5") || len(got) > 3 {
		t.Errorf("Nearest = %v", got)
	}
	if got := (*catalogue.Catalogue)(nil).Nearest("openai", "zzzzzzzzzz"); len(got) > 0 {
		t.Errorf("Nearest = %v", got)
	}
}

// TestServerOf checks the hosts of providers.
func TestServerOf(t *testing.T) {
	for url, want := range map[string]string{"https://api.deepseek.com/v1": "deepseek", "https://API.X.AI": "xai", "https://example.com/api.x.ai": "", "": "", "http://127.0.0.1:11434/v1": "ollama"} {
		if got := catalogue.ServerOf(url); got != want {
			t.Errorf("ServerOf(%q) = %q, want %q", url, got, want)
		}
	}
}

// TestCatalogue_Overlay checks that a user's rows precede the built-in ones.
func TestCatalogue_Overlay(t *testing.T) {
	c := catalogue.New([]catalogue.Model{{Provider: "openai", ID: "gpt-5.5", ContextWindow: 7}, {Provider: "ollama", ID: "mine", Aliases: []string{"ours"}}}, nil)
	if m, ok := c.Lookup("openai", "gpt-5.5"); !ok || m.ContextWindow != 7 {
		t.Errorf("gpt-5.5 = %v", m)
	}
	if m, ok := c.Lookup("ollama", "ours"); !ok || m.ID != "mine" {
		t.Errorf("ours = %v", m)
	}
	if _, ok := c.Lookup("openai", "gpt-5.4"); !ok {
		t.Error("gpt-5.4 is unknown")
	}
	if n := len(c.All()); n != 514 {
		t.Errorf("%d models, want 514", n)
	}
}
