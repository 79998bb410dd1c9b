package loader

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/diag"
)

// diagnostics collects diagnostics up to a limit, each once: what an alias repeats
// would otherwise be reported at every use.
type diagnostics struct {
	list   diag.List
	limit  int
	seen   map[string]bool
	muted  int // while above 0 nothing is added
	raised int // how many were handed in, also those that were not added
}

// full tells whether no more diags are taken.
func (f *diagnostics) full() bool { return len(f.list) > f.limit }

func (f *diagnostics) add(more ...diag.Diagnostic) {
	for _, d := range more {
		f.raised++
		if f.muted > 0 || f.full() {
			continue
		}
		key := fmt.Sprintf("%p %v %s %s", d.Span.File, d.Span.Start, d.Code, d.Message)
		if f.seen[key] {
			continue
		}
		f.seen[key] = true
		if len(f.list) == f.limit {
			d = ruleLimit.At(d.Span, "there are more than %d diags; the others are not shown", f.limit)
		}
		f.list.Add(d)
	}
}
