package lint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Change is a fixed file.
type Change struct {
	Path  string // as in the diagnostics
	Fixed int    // number of fixed diagnostics

	real string // the path with links resolved
	old  []byte
	new  []byte
	// Secrets in the old and the new text.
	oldHidden, newHidden []source.Span
}

// Diff returns the change as a unified diff for patch -p1 and git apply. Secrets
// are replaced by ***: a masked diff cannot be applied.
func (c Change) Diff() (text []byte, masked bool) {
	name := filepath.ToSlash(c.Path)
	text = diff.Diff("a/"+name, c.old, "b/"+name, c.new)
	if len(c.oldHidden)+len(c.newHidden) == 0 {
		return text, false
	}
	shown := diff.Diff("a/"+name, hide(c.old, c.oldHidden), "b/"+name, hide(c.new, c.newHidden))
	return shown, !bytes.Equal(shown, text)
}

// hide replaces secrets by ***.
func hide(text []byte, secrets []source.Span) []byte {
	edits := make([]edit, len(secrets))
	for i, s := range secrets {
		edits[i] = edit{diag.Fix{Span: s}, i}
	}
	var shown []byte
	done := 0
	for _, r := range locate(text, edits) {
		if r.end > done {
			shown = append(append(shown, text[done:max(r.start, done)]...), "***"...)
			done = r.end
		}
	}
	return append(shown, text[done:]...)
}

// hiddenIn returns the secrets of the checked files by real path.
func hiddenIn(results []Result) map[string][]source.Span {
	spans := map[string][]source.Span{}
	for _, r := range results {
		for _, s := range r.hidden {
			real := realPath(s.File.Path)
			spans[real] = append(spans[real], s)
		}
	}
	return spans
}

// Write replaces the file atomically. It returns an error if the file has changed
// since it was checked.
func (c Change) Write() error {
	is, err := os.ReadFile(c.real)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, cause(err))
	}
	if !bytes.Equal(is, c.old) {
		return fmt.Errorf("%s changed on disk; not fixed", c.Path)
	}
	info, err := os.Stat(c.real)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, cause(err))
	}
	if err := replace(c.real, c.new, info.Mode().Perm()); err != nil {
		return fmt.Errorf("cannot write %s: %w", c.Path, cause(err))
	}
	return nil
}

// replace writes a temporary file next to path and renames it to path.
func replace(path string, text []byte, mode os.FileMode) (err error) {
	// The rename would succeed for a read-only file as well.
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	old.Close()
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // report the first error
		}
	}()
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// firstMeaningCode is the first code of diagnostics of the meaning of documents; those below
// are of their form.
const firstMeaningCode = "QT2"

// isFixable reports whether the fix of a diagnostic is offered. The meaning of an
// included file depends on the including file, so only its form is fixed, and only
// inside the working directory.
func isFixable(d diag.Diagnostic) bool {
	f := d.Span.File
	switch {
	case f == nil:
		return true
	case isRemote(f.Path): // read-only
		return false
	}
	return f.From.File == nil || d.Code < firstMeaningCode && filepath.IsLocal(f.Path)
}

// maxFixPasses limits how often a document is fixed and checked again: a fixed
// section can have diagnostics that were not visible before.
const maxFixPasses = 10

// maxFixAttempts limits how often fixing starts again without fixes that caused a diagnostic.
const maxFixAttempts = 8

// Fix finds documents, applies all safe fixes, and returns the changed files, which
// are not written yet, and the results after the fixes. A fix that causes a diagnostic is
// not safe, because it changed the meaning: fixing starts again without it.
func Fix(ctx context.Context, find Finder, opts loader.Options) ([]Change, []Result, error) {
	refused := map[string]bool{}
	for attempt := range maxFixAttempts {
		m := &fixer{files: map[string]*Change{}, frozen: map[string]bool{}, refused: refused, isLast: attempt >= maxFixAttempts/2}
		results, err := m.run(ctx, find, opts)
		if err != nil {
			return nil, nil, err
		}
		if !m.refuseHarmful(results) {
			return m.changes(hiddenIn(results)), results, nil
		}
	}
	documents, err := find.Find(ctx)
	if err != nil {
		return nil, nil, err
	}
	return nil, Check(ctx, documents, opts), ctx.Err()
}

// run fixes and checks the documents until there is nothing left to fix.
func (m *fixer) run(ctx context.Context, find Finder, opts loader.Options) ([]Result, error) {
	find.Open = m.open
	opts.Open = m.open
	for pass := 0; ; pass++ {
		documents, err := find.Find(ctx)
		if err != nil {
			return nil, err
		}
		results := Check(ctx, documents, opts)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if pass == 0 {
			m.hidden, m.initial = hiddenIn(results), countDiagnostics(results)
		}
		if m.revertBroken(results) {
			continue
		}
		list := Diagnostics(results)
		if m.readable == nil {
			// The form first: it decides which diagnostics of meaning there are.
			if pass < maxFixPasses && m.apply(formOf(list)) {
				continue
			}
			m.readable = countDiagnostics(results)
		}
		if pass >= maxFixPasses || !m.apply(list) {
			return results, nil
		}
	}
}

// formOf returns the diagnostics of the form of documents.
func formOf(list diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool { return d.Code >= firstMeaningCode })
}

// fixer holds the fixed text of files.
type fixer struct {
	files      map[string]*Change       // by real path
	frozen     map[string]bool          // files that are not fixed any further
	before     map[string][]byte        // the texts before the last pass of the files that it changed
	fixed      map[string]int           // number of diagnostics that the last pass fixed in them
	formErrors map[string]int           // countFormErrors before the last pass
	hidden     map[string][]source.Span // secrets of the original files by real path
	initial    map[string]int           // countDiagnostics of the original files
	readable   map[string]int           // countDiagnostics of the files once their form was fixed; nil before
	applied    []appliedFix             // the fixes so far
	refused    map[string]bool          // keys of fixes that are not applied, see keyOfFix
	isLast     bool                     // one of the last attempts, which refuse all fixes that may have caused a diagnostic
}

// open returns the fixed text of a file; nil if it is unchanged.
func (m *fixer) open(_ context.Context, path string) (io.ReadCloser, error) {
	if c, changed := m.files[realPath(path)]; changed {
		return io.NopCloser(bytes.NewReader(c.new)), nil
	}
	return nil, nil
}

// realPath returns the same path for all paths of a file.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// edit is a fix of a diagnostic.
type edit struct {
	fix        diag.Fix
	diagnostic int // index of the diagnostic in its list
}

// apply applies the fixes that do not overlap, and reports whether there were any.
func (m *fixer) apply(list diag.List) bool {
	byFile := map[string][]edit{}
	names := map[string]*source.File{}
	for i, d := range list {
		if len(d.Fixes) > 0 && m.refused[keyOfFix(d)] {
			continue
		}
		for _, f := range d.Fixes {
			real := realPath(f.Span.File.Path)
			m.applied = append(m.applied, appliedFix{key: keyOfFix(d), real: real, line: f.Span.Start.Line, column: f.Span.Start.Column, text: f.NewText, isForm: d.Code < firstMeaningCode})
			if !m.frozen[real] {
				byFile[real] = append(byFile[real], edit{f, i})
				names[real] = f.Span.File
			}
		}
	}
	m.before, m.fixed = map[string][]byte{}, map[string]int{}
	for real, edits := range byFile {
		if !m.applyTo(real, names[real], edits) {
			m.frozen[real] = true
		}
	}
	return len(m.before) > 0
}

// applyTo changes one file, and reports whether an edit applied.
func (m *fixer) applyTo(real string, file *source.File, edits []edit) bool {
	c := m.files[real]
	if c == nil {
		text, err := os.ReadFile(real)
		if err != nil {
			return false
		}
		c = &Change{Path: file.Path, real: real, old: text, new: text}
	}
	text, n := rewrite(c.new, edits)
	if n == 0 {
		return false
	}
	m.files[real] = c
	m.before[real], m.fixed[real] = c.new, n
	c.new = text
	c.Fixed += n
	return true
}

// revertBroken reverts the last pass in files that have more form errors after it,
// which no fix should cause, and reports whether there were any. It guarantees that
// a fixed file can still be read.
func (m *fixer) revertBroken(results []Result) bool {
	shape := countFormErrors(results)
	reverted := false
	for real, text := range m.before {
		if shape[real] > m.formErrors[real] {
			m.files[real].new = text
			m.files[real].Fixed -= m.fixed[real]
			m.frozen[real] = true
			reverted = true
		}
	}
	m.before = nil
	m.formErrors = shape
	return reverted
}

// countFormErrors counts the errors of each file that fixes must not add: invalid
// YAML and duplicate keys.
func countFormErrors(results []Result) map[string]int {
	counts := map[string]int{}
	for _, d := range Diagnostics(results) {
		if d.Span.File != nil && (d.Code == "QT002" || d.Code == "QT003" || d.Code == "QT010") {
			counts[realPath(d.Span.File.Path)]++
		}
	}
	return counts
}

// changes returns the files that differ from the original ones, sorted by path.
func (m *fixer) changes(hidden map[string][]source.Span) []Change {
	var all []Change
	for real, c := range m.files {
		if !bytes.Equal(c.old, c.new) {
			c.oldHidden, c.newHidden = m.hidden[real], hidden[real]
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// appliedFix is an edit of a fix that was applied.
type appliedFix struct {
	key    string // keyOfFix of its diagnostic
	real   string // the file
	line   int    // the line of the edit
	column int    // the column of the edit
	text   string // the new text
	isForm bool   // it corrects the form of the document, so that parts become readable
}

// keyOfFix identifies the fix of a diagnostic.
func keyOfFix(d diag.Diagnostic) string {
	at := d.Fixes[0].Span
	return fmt.Sprintf("%s:%d:%d %s %s", realPath(at.File.Path), at.Start.Line, at.Start.Column, d.Code, d.Fixes[0].NewText)
}

// keyOfDiagnostic identifies a diagnostic without its position, which a fix may move.
func keyOfDiagnostic(d diag.Diagnostic) string {
	file := ""
	if d.Span.File != nil {
		file = realPath(d.Span.File.Path)
	}
	return fmt.Sprintf("%s %s %s %s", file, d.Severity, d.Code, d.Message)
}

func countDiagnostics(results []Result) map[string]int {
	counts := map[string]int{}
	for _, d := range Diagnostics(results) {
		counts[keyOfDiagnostic(d)]++
	}
	return counts
}

// codeOfUnreadable is the code of an include that cannot be read, which no fix causes: the
// file was not looked for before its tag was fixed.
const codeOfUnreadable = "QT006"

// refuseHarmful refuses the fixes that caused a new diagnostic, and reports whether there
// were any.
func (m *fixer) refuseHarmful(results []Result) bool {
	found := false
	left := map[string]int{}
	for _, r := range results {
		for _, d := range r.Diagnostics {
			key := keyOfDiagnostic(d)
			left[key]++
			if d.Span.File == nil || d.Code == codeOfUnreadable {
				continue
			}
			for _, a := range m.causesOf(d, realPath(r.Document.Path), left[key] > m.initial[key], left[key] > m.readable[key]) {
				if !m.refused[a.key] {
					m.refused[a.key] = true
					found = true
				}
			}
		}
	}
	return found
}

// causesOf returns the fixes that may have caused a diagnostic of a document, which is new
// since the start, or since the form was fixed. A fix of the form makes other diagnostics
// visible, so that only a new error on its line, or a diagnostic at the place of the fix
// itself, is its consequence. A diagnostic that is new since the form was fixed is the
// consequence of a fix of meaning, such as that of a reference: of one in the same document,
// if there is any.
func (m *fixer) causesOf(d diag.Diagnostic, document string, isNew, isNewMeaning bool) []appliedFix {
	var ofForm, near, far []appliedFix
	for _, a := range m.applied {
		sameLine := a.real == realPath(d.Span.File.Path) && a.line == d.Span.Start.Line
		switch {
		case a.isForm && isNew && sameLine && (d.Severity == diag.Error || a.column == d.Span.Start.Column):
			ofForm = append(ofForm, a)
		case a.isForm || !isNewMeaning:
		case a.real == document:
			near = append(near, a)
		default:
			far = append(far, a)
		}
	}
	if len(near) == 0 {
		near = far
	}
	return append(ofForm, m.mostLikely(near, d)...)
}

// mostLikely returns the fixes whose text a diagnostic mentions, or else those in its line; all
// if there are none of these, or if too many attempts were made.
func (m *fixer) mostLikely(fixes []appliedFix, d diag.Diagnostic) []appliedFix {
	if m.isLast {
		return fixes
	}
	var mentioned, inLine []appliedFix
	for _, a := range fixes {
		if strings.Contains(d.Message, strconv.Quote(a.text)) {
			mentioned = append(mentioned, a)
		}
		if a.real == realPath(d.Span.File.Path) && a.line == d.Span.Start.Line {
			inLine = append(inLine, a)
		}
	}
	for _, likely := range [][]appliedFix{mentioned, inLine} {
		if len(likely) > 0 {
			return likely
		}
	}
	return fixes
}
