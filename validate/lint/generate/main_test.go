package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/validate/lint"
)

// TestPagesAreUpToDate: what the manual says that we print is what we print.
func TestPagesAreUpToDate(t *testing.T) {
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
			t.Errorf("docs/%s is not up to date; make generate mends that (-is due +is there):\n%s", name, d)
		}
	}
}

// TestEveryMistakeIsTold: each of the common mistakes has a finding with a place.
func TestEveryMistakeIsTold(t *testing.T) {
	names, err := filepath.Glob("mistakes/*.txtar")
	if err != nil || len(names) != 25 {
		t.Fatalf("%d mistakes (%v)", len(names), err)
	}
	for _, name := range names {
		m, err := read(filepath.ToSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.faults) == 0 {
			t.Errorf("%s: nothing is told", name)
		}
		for _, d := range m.faults {
			if d.Span.Start.Line == 0 {
				t.Errorf("%s: %v has no place", name, d)
			}
		}
	}
}

// TestEveryRuleIsInTheManual, in a family of its own number.
func TestEveryRuleIsInTheManual(t *testing.T) {
	page, err := rulesPage()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range lint.Rules() {
		if !strings.Contains(page, "\n### "+r.Code+"\n") {
			t.Errorf("%s is not in the page", r.Code)
		}
	}
}
