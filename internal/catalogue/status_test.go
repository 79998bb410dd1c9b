package catalogue_test

import (
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// day parses a day.
func day(t *testing.T, text string) time.Time {
	t.Helper()
	on, err := time.Parse(time.DateOnly, text)
	if text != "" && err != nil {
		t.Fatal(err)
	}
	return on
}

// TestModel_StopsBy: a model stops on its shutdown date; without a day its status decides.
func TestModel_StopsBy(t *testing.T) {
	for _, c := range []struct {
		provider, name, on string
		want               bool
	}{
		{"openai", "gpt-4", "", true},
		{"openai", "gpt-4", "2026-10-22", false},
		{"openai", "gpt-4", "2026-10-23", true},
		{"openai", "gpt-4o-mini", "", false},
		{"openai", "gpt-4o-mini", "2027-01-14", true},
		{"openai", "gpt-6-luna", "2099-01-01", false},
	} {
		m, _ := catalogue.Lookup(c.provider, c.name)
		if got := m.StopsBy(day(t, c.on)); got != c.want {
			t.Errorf("%s on %q: got %v", c.name, c.on, got)
		}
	}
}

// TestCatalogue_Successor: the replacement answers on the day, and keeps the profile of the name.
func TestCatalogue_Successor(t *testing.T) {
	for _, c := range []struct{ provider, name, on, want string }{
		{"openai", "gpt-4o-mini", "2027-01-01", "gpt-6-luna"},
		{"azure-openai", "gpt-4.1", "2026-12-01", "gpt-5.1"},
		{"azure-openai", "gpt-4.1", "2027-08-01", "gpt-5.4"},
		{"aws-bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "2027-01-01", "us.anthropic.claude-sonnet-5-5"},
		{"anthropic", "claude-mythos-preview", "2027-01-01", ""},
	} {
		m, _ := catalogue.Lookup(c.provider, c.name)
		if got, _ := (*catalogue.Catalogue)(nil).Successor(m, day(t, c.on)); got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.name, c.on, got, c.want)
		}
	}
}

// TestSuccessor_Known: each replacement that a row names is a model of its provider.
func TestSuccessor_Known(t *testing.T) {
	for _, m := range catalogue.All() {
		if m.Redirected && m.Replacement == "" {
			t.Errorf("%s/%s is redirected to no model", m.Provider, m.ID)
		}
	}
}
