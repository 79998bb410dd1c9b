package loader

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/diag"
)

// diagnostics collects diagnostics up to a limit, each once: an error in a value with
// YAML aliases would otherwise be reported at every use.
type diagnostics struct {
	list   diag.List
	limit  int
	seen   map[string]bool
	muted  int // nothing is added while it is above 0
	raised int // number of calls of add, including diagnostics that were not added
}

// full reports whether the limit is reached.
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
			d = ruleLimit.At(d.Span, "there are more than %d diagnostics; the others are not shown", f.limit)
		}
		f.list.Add(d)
	}
}
