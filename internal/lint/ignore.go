package lint

import (
	"slices"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// ApplyIgnores removes the diagnostics that # qtype:ignore comments ignore, and adds
// warnings for malformed and unused comments. files are the files that loader.Load
// returned.
func ApplyIgnores(files []*source.File, list diag.List) diag.List {
	comments, malformed := commentsOf(files, codes)
	left := ignore(comments, list)
	results := settle([]pendingResult{{Result: Result{Diagnostics: append(left, malformed...)}, comments: comments}})
	results[0].Diagnostics.Sort()
	return results[0].Diagnostics
}

// IgnoreWarnings is like ApplyIgnores but removes only warnings and does not check
// the comments. It is for runs, which errors abort anyway.
func IgnoreWarnings(files []*source.File, list diag.List) diag.List {
	if list.Warnings() == 0 {
		return list
	}
	comments, _ := commentsOf(files, codes)
	byTarget := byLine(comments)
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool {
		return d.Severity == diag.Warning && byTarget.ignores(d)
	})
}

// ignore removes the diagnostics that a comment ignores, and marks the comments
// used.
func ignore(comments []*ignoreComment, list diag.List) diag.List {
	if len(comments) == 0 {
		return list
	}
	byTarget := byLine(comments)
	return slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return byTarget.ignores(d) })
}

type line struct {
	file *source.File
	n    int
}

// ignoreComments are comments by the lines that they apply to.
type ignoreComments map[line][]*ignoreComment

func byLine(comments []*ignoreComment) ignoreComments {
	byTarget := ignoreComments{}
	for _, c := range comments {
		at := line{c.file, c.target}
		byTarget[at] = append(byTarget[at], c)
	}
	return byTarget
}

// ignores reports whether a comment ignores a diagnostic, and marks the comment
// used. A file that is included as text has no comments: those at its directive count.
func (s ignoreComments) ignores(d diag.Diagnostic) bool {
	hit := false
	at := d.Span
	if at.File != nil && isRaw(at.File) {
		at = at.File.From
	}
	for _, c := range s[line{at.File, at.Start.Line}] {
		if slices.Contains(c.codes, d.Code) {
			c.used[d.Code] = true
			hit = true
		}
	}
	return hit
}
