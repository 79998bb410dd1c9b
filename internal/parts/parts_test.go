package parts_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/parts"
)

func TestSet(t *testing.T) {
	set := new(parts.Set).Add(parts.Store, "sqlite", "memory").Add(parts.Engine, "local")
	ctx := parts.With(t.Context(), set)
	if err := parts.From(ctx).Check(parts.Store, "sqlite"); err != nil {
		t.Error(err)
	}
	missing, ok := errors.AsType[*parts.MissingError](parts.From(ctx).Check(parts.Store, "redis"))
	if !ok || missing.Error() != "this program has no memory store redis; the distribution has it: "+parts.Get {
		t.Errorf("got %v", missing)
	}
	if got := set.Names(parts.Store); !slices.Equal(got, []string{"memory", "sqlite"}) {
		t.Errorf("got %v", got)
	}
	if got := set.Kinds(); !slices.Equal(got, []parts.Kind{parts.Engine, parts.Store}) {
		t.Errorf("got %v", got)
	}
	if err := parts.From(t.Context()).Check(parts.Store, "redis"); err != nil {
		t.Errorf("a checker for all programs: %v", err)
	}
}
