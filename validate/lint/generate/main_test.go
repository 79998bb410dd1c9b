package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/validate/lint"
)

func TestPages_UpToDate(t *testing.T) {
	for name, page := range pages() {
		want, err := page()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("docs/%s is out of date; run make generate (-want +got):\n%s", name, d)
		}
	}
}

// TestExamples_AreReported checks that every example has a diagnostic with a
// position.
func TestExamples_AreReported(t *testing.T) {
	names, err := filepath.Glob("examples/*.txtar")
	if err != nil || len(names) != 25 {
		t.Fatalf("%d examples (%v)", len(names), err)
	}
	for _, name := range names {
		m, err := read(filepath.ToSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.diagnostics) == 0 {
			t.Errorf("%s: no diagnostic", name)
		}
		for _, d := range m.diagnostics {
			if d.Span.Start.Line == 0 {
				t.Errorf("%s: %v has no position", name, d)
			}
		}
	}
}

func TestRulesPage_HasAllRules(t *testing.T) {
	page, err := rulesPage()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range lint.Rules() {
		if !strings.Contains(page, "\n### "+r.Code+"\n") {
			t.Errorf("rules.md does not contain %s", r.Code)
		}
	}
}
