package temporal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestBudget_Renewed: a run that continues has the limits of the run before, and another sum.
func TestBudget_Renewed(t *testing.T) {
	if (*budget)(nil).renewed() != nil {
		t.Error("a run without a budget has one when it continues")
	}
	was := &budget{ID: "earlier", Tokens: 10, Calls: 2, Seconds: 1.5, Money: 0.25}
	now := was.renewed()
	if now.ID == was.ID || now.ID == "" || !now.Began.After(was.Began) {
		t.Errorf("the sum of %+v continues in %+v", was, now)
	}
	if d := cmp.Diff(was, now, cmpopts.IgnoreFields(budget{}, "ID", "Began")); d != "" {
		t.Error(d)
	}
}
