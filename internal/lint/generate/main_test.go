package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/lint"
)

func TestRulesPage_UpToDate(t *testing.T) {
	want := rulesPage()
	got, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/rules.md is out of date; run make generate (-want +got):\n%s", d)
	}
}

func TestRulesPage_HasAllRules(t *testing.T) {
	page := rulesPage()
	for _, r := range lint.Rules() {
		if !strings.Contains(page, "\n### "+r.Code+"\n") {
			t.Errorf("rules.md does not contain %s", r.Code)
		}
	}
}
