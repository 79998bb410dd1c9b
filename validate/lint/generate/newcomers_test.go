package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/qtype-dev/qtype/spec/diag"
)

var update = flag.Bool("update", false, "rewrite the output in newcomers.txtar")

// TestNewcomers compares the output for the errors of new users.
func TestNewcomers(t *testing.T) {
	all := newcomerErrors()
	if len(all) < 25 {
		t.Errorf("%d errors", len(all))
	}
	archive := txtar.Parse(newcomersArchive)
	for _, m := range all {
		got, err := m.blocks()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == m.title+".txt" })
			archive.Files[i].Data = []byte(got)
			continue
		}
		if d := cmp.Diff(m.output, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", m.title, d)
		}
	}
	if *update {
		if err := os.WriteFile("newcomers.txtar", txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewcomers_Answer checks that each error is reported with what to do.
func TestNewcomers_Answer(t *testing.T) {
	for _, m := range newcomerErrors() {
		answered := false
		for _, d := range m.diagnostics {
			answered = answered || d.Hint != "" || strings.Contains(d.Message, " needs ") || strings.Contains(d.Message, " takes ") || strings.Contains(d.Message, " one of ") || strings.Contains(d.Message, "has no ") && d.Severity == diag.Error
		}
		if !answered {
			t.Errorf("%s: no diagnostic has what to do: %v", m.title, m.diagnostics)
		}
	}
}
