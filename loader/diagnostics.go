package loader

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/diag"
)

// diagnostics collects diagnostics up to a limit, each once: an error in a value with
// YAML aliases, or in a file that is included twice, would otherwise be reported at every use.
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
		key := keyOf(d)
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

// keyOf identifies what a diagnostic reports. An unknown key that a merge brings to several
// entities is one error, although its message names the entity.
func keyOf(d diag.Diagnostic) string {
	path, message := "", d.Message
	if d.Span.File != nil {
		path = d.Span.File.Path
	}
	if d.Code == ruleUnknownField.Code {
		message = d.Hint + d.Suggestion
	}
	return fmt.Sprintf("%s %v %s %s", path, d.Span.Start, d.Code, message)
}
