package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/qtype-dev/qtype/spec/source"
)

// List is a collection of diagnostics and an error: errors.As finds a List and
// each Diagnostic in it, errors.Is finds a given one. An empty List is still a
// non-nil error, so functions return Err rather than the List.
type List []Diagnostic

// Error returns the diagnostics, one on each line.
func (l List) Error() string { return l.multi().Error() }

// Unwrap returns the diagnostics as a *multierror.Error, nil if there are none.
// It lets errors.As and errors.Is reach each of them.
func (l List) Unwrap() error { return l.multi().ErrorOrNil() }

// Is reports whether target is a List of the same diagnostics in the same order.
func (l List) Is(target error) bool {
	other, ok := target.(List)
	return ok && slices.EqualFunc(l, other, func(a, b Diagnostic) bool { return a.Is(b) })
}

func (l List) multi() *multierror.Error {
	all := &multierror.Error{ErrorFormat: oneEachLine}
	for _, d := range l {
		all.Errors = append(all.Errors, d)
	}
	return all
}

// Add appends diagnostics.
func (l *List) Add(more ...Diagnostic) { *l = append(*l, more...) }

// Sort sorts the list by position. The sort is stable.
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

// Err returns the diagnostics of severity Error as a List, nil if there are none.
func (l List) Err() error {
	var failed List
	for _, d := range l {
		if d.Severity == Error {
			failed = append(failed, d)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return failed
}

// FromError returns all diagnostics that err wraps, in the order of the tree of
// errors; nil if there are none.
func FromError(err error) List {
	switch e := err.(type) { //nolint:errorlint // it walks the tree of errors itself
	case nil:
		return nil
	case List:
		return slices.Clone(e)
	case Diagnostic:
		return List{e}
	case *multierror.Error:
		return fromErrors(e.WrappedErrors())
	case interface{ Unwrap() []error }:
		return fromErrors(e.Unwrap())
	}
	return FromError(errors.Unwrap(err))
}

func fromErrors(errs []error) List {
	var list List
	for _, err := range errs {
		list = append(list, FromError(err)...)
	}
	return list
}

// AsErrors returns a copy in which every warning is an error.
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

// Files counts the files that the diagnostics point to.
func (l List) Files() int {
	files := map[*source.File]bool{}
	for _, d := range l {
		if d.Span.File != nil {
			files[d.Span.File] = true
		}
	}
	return len(files)
}

// Fixable counts the diagnostics that have fixes.
func (l List) Fixable() int {
	n := 0
	for _, d := range l {
		if len(d.Fixes) > 0 {
			n++
		}
	}
	return n
}

// Rule declares a diagnostic code: the text of `qtype explain CODE`, and examples
// that are its tests.
type Rule struct {
	Code     string   // QT and three digits; the meaning of a code never changes
	Severity Severity // default severity
	Title    string   // what is wrong, in a few fixed words
	Doc      string   // why it is wrong and what to do, a few sentences
	Wrong    string   // a document that breaks the rule; empty if none can
	Right    string   // the same document, corrected
}

// At returns a diagnostic of the rule. The message is formatted as by fmt.Sprintf.
func (r Rule) At(span source.Span, format string, args ...any) Diagnostic {
	return Diagnostic{Code: r.Code, Severity: r.Severity, Span: span, Message: fmt.Sprintf(format, args...)}
}

// DidYouMean returns `; did you mean "x"?` with the candidate that is nearest to
// name; empty if none is near.
func DidYouMean(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
