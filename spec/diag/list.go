package diag

import (
	"errors"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/qtype-dev/qtype/spec/source"
)

// List is a collection of diagnostics.
type List []Diagnostic

// Add appends diagnostics.
func (l *List) Add(more ...Diagnostic) { *l = append(*l, more...) }

// Sort brings the list into file order; findings at one place keep theirs.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Diagnostic) int { return source.Compare(a.Span, b.Span) })
}

// Errors counts the errors.
func (l List) Errors() int { return l.count(Error) }

// Warnings counts the warnings.
func (l List) Warnings() int { return l.count(Warning) }

func (l List) count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Err is the list's errors as one error, nil where there is none. errors.As
// opens it to the first Diagnostic, Of to all of them.
func (l List) Err() error {
	var all *multierror.Error
	for _, d := range l {
		if d.Severity == Error {
			all = multierror.Append(all, d)
		}
	}
	if all != nil {
		all.ErrorFormat = oneEachLine
	}
	return all.ErrorOrNil()
}

// FromError lists the diagnostics that err carries, such as the errors of Err.
func FromError(err error) List {
	var all *multierror.Error
	if errors.As(err, &all) {
		var list List
		for _, e := range all.Errors {
			list = append(list, FromError(e)...)
		}
		return list
	}
	var d Diagnostic
	if errors.As(err, &d) {
		return List{d}
	}
	return nil
}

// AsErrors answers a copy in which every warning is an error.
func (l List) AsErrors() List {
	strict := slices.Clone(l)
	for i := range strict {
		strict[i].Severity = Error
	}
	return strict
}

func oneEachLine(errs []error) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Files counts the files that findings stand in.
func (l List) Files() int {
	files := map[*source.File]bool{}
	for _, d := range l {
		if d.Span.File != nil {
			files[d.Span.File] = true
		}
	}
	return len(files)
}

// Fixable counts the findings that have a safe mending.
func (l List) Fixable() int {
	n := 0
	for _, d := range l {
		if len(d.Fixes) > 0 {
			n++
		}
	}
	return n
}
