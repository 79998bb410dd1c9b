package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// TestProgress_ManyResults: rows of the input are counted, not results.
func TestProgress_ManyResults(t *testing.T) {
	if !makesManyRows(&spec.Flow{Steps: []*spec.StepItem{{Step: &spec.Explode{}}}}) || makesManyRows(&spec.Flow{Steps: []*spec.StepItem{{Step: &spec.Echo{}}}}) {
		t.Error("an Explode makes many rows, an Echo does not")
	}
	p := new(runtime.Progress)
	p.Set(2, 2_000, 1, []runtime.StepProgress{{Step: "split", In: 2}, {Step: "read", In: 2_000}})
	for many, want := range map[bool]string{true: "2 of 4 rows, 2,000 results, ", false: "2000 of 4 rows, "} {
		m := &progressBars{progress: p, total: 4, begin: time.Now().Add(-time.Second), manyResults: many}
		if got := m.line(); !strings.HasPrefix(got, want) || !strings.Contains(got, "1 failed") || strings.Contains(got, "eta") != many {
			t.Errorf("many results %t: %q", many, got)
		}
	}
}
