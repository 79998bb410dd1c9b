package loader_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/diagtest"
	"github.com/qtype-dev/qtype/loader"
)

// TestFixtures checks that the loader reports the rules that it checks and no others.
func TestFixtures(t *testing.T) {
	good := 0
	for _, f := range diagtest.Fixtures(t) {
		_, list := loader.Load(t.Context(), f.Path, loader.Options{Lookup: f.Lookup, Strict: f.Strict})
		ours := f.Rule < "QT2" && f.Rule != "-" && f.Rule != "QT110" && f.Rule != "QT114"
		hit := slices.Contains(codes(list), f.Rule) || f.Rule == "QT104" && slices.Contains(codes(list), "QT106")
		if ours != hit || !ours && list.Errors() > 0 {
			t.Errorf("%s: valid %t, rule %s, got %v", f.Name, f.Valid, f.Rule, list)
			continue
		}
		good++
	}
	t.Logf("%d fixtures as expected", good)
}
