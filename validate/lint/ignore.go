package lint

import (
	"slices"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// ApplyIgnores takes out of a document's faults what # qtype:ignore comments in its
// files silence, and adds warnings for comments that are not understood or
// silence nothing. Files are those that loader.Load read.
func ApplyIgnores(files []*source.File, faults diag.List) diag.List {
	comments, malformed := commentsOf(files, codes)
	left := silence(comments, faults)
	results := settle([]pendingResult{{Result: Result{Faults: append(left, malformed...)}, comments: comments}})
	results[0].Faults.Sort()
	return results[0].Faults
}

// IgnoreWarnings takes out only warnings and tells nothing of the comments: for
// a run, which an error stops all the same.
func IgnoreWarnings(files []*source.File, faults diag.List) diag.List {
	if faults.Warnings() == 0 {
		return faults
	}
	comments, _ := commentsOf(files, codes)
	about := byLine(comments)
	return slices.DeleteFunc(slices.Clone(faults), func(d diag.Diagnostic) bool {
		return d.Severity == diag.Warning && about.silence(d)
	})
}

// silence answers the faults that no comment silences and marks the comments used.
func silence(comments []*ignoreComment, faults diag.List) diag.List {
	if len(comments) == 0 {
		return faults
	}
	about := byLine(comments)
	return slices.DeleteFunc(faults, func(d diag.Diagnostic) bool { return about.silence(d) })
}

// line is a line of a file.
type line struct {
	file *source.File
	n    int
}

// ignoreComments are comments by the lines that they are about.
type ignoreComments map[line][]*ignoreComment

func byLine(comments []*ignoreComment) ignoreComments {
	about := ignoreComments{}
	for _, c := range comments {
		at := line{c.file, c.about}
		about[at] = append(about[at], c)
	}
	return about
}

// silence tells whether a comment silences a finding, and marks it used.
func (s ignoreComments) silence(d diag.Diagnostic) bool {
	hit := false
	for _, c := range s[line{d.Span.File, d.Span.Start.Line}] {
		if slices.Contains(c.codes, d.Code) {
			c.used[d.Code] = true
			hit = true
		}
	}
	return hit
}
