package validate_test

import (
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/diagtest"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestFixtures checks whether each fixture is valid, and whether the expected code is
// reported.
func TestFixtures(t *testing.T) {
	all := diagtest.Fixtures(t)
	for _, f := range all {
		if difference := compare(t, f); difference != "" {
			t.Errorf("%s: %s", f.Name, difference)
		}
	}
	t.Logf("%d fixtures compared", len(all))
}

// compare loads and checks a fixture and returns the difference, or "".
func compare(t *testing.T, f diagtest.Fixture) string {
	loaded, found := loader.Load(t.Context(), f.Path, loader.Options{Lookup: f.Lookup, Strict: f.Strict})
	found = append(found, validate.Check(loaded.Document)...)
	if (found.Errors() == 0) != f.Valid {
		return fmt.Sprintf("%d errors: %v", found.Errors(), found.Err())
	}
	if f.Valid {
		return ""
	}
	for _, d := range found {
		if isEquivalent(d.Code, f.Rule) && (d.Span.Start.Line > 0 || f.Rule == "QT001") {
			return ""
		}
	}
	return fmt.Sprintf("no %s with a line: %v", f.Rule, found)
}

// isEquivalent reports whether two codes are for the same error.
func isEquivalent(a, b string) bool {
	return a == b || a+b == "QT202QT205" || a+b == "QT205QT202" || a+b == "QT104QT106" || a+b == "QT106QT104"
}
