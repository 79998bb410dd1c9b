package lint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Change is what mending makes of a file.
type Change struct {
	Path  string // the file, as a user would name it
	Mends int    // how many faults it mends

	real string // where the file lies, links resolved
	old  []byte
	new  []byte
	// Where secrets stand in the old and in the new text.
	oldHidden, newHidden []source.Span
}

// Diff is the change as a unified diff that patch -p1 and git apply take. Secrets
// are shown as ***: a diff that is masked is for reading only.
func (c Change) Diff() (text []byte, masked bool) {
	name := filepath.ToSlash(c.Path)
	text = diff.Diff("a/"+name, c.old, "b/"+name, c.new)
	if len(c.oldHidden)+len(c.newHidden) == 0 {
		return text, false
	}
	shown := diff.Diff("a/"+name, hide(c.old, c.oldHidden), "b/"+name, hide(c.new, c.newHidden))
	return shown, !bytes.Equal(shown, text)
}

// hide puts *** in the place of secrets.
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

// hiddenIn are the places of secrets, by the real paths of their files.
func hiddenIn(results []Result) map[string][]source.Span {
	places := map[string][]source.Span{}
	for _, r := range results {
		for _, s := range r.hidden {
			real := realPath(s.File.Path)
			places[real] = append(places[real], s)
		}
	}
	return places
}

// Write puts the new text in the place of the file: all of it or nothing. It
// refuses where the file is no longer what was checked.
func (c Change) Write() error {
	is, err := os.ReadFile(c.real)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, cause(err))
	}
	if !bytes.Equal(is, c.old) {
		return fmt.Errorf("%s was changed meanwhile and is left as it is", c.Path)
	}
	info, err := os.Stat(c.real)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, cause(err))
	}
	if err := replace(c.real, c.new, info.Mode().Perm()); err != nil {
		return fmt.Errorf("%s cannot be written: %w", c.Path, cause(err))
	}
	return nil
}

// replace writes a file beside the one at path and renames it over that.
func replace(path string, text []byte, mode os.FileMode) (err error) {
	// A file that may not be written is not replaced either, though its folder would let us.
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
			_ = os.Remove(file.Name()) // the first error is the one to tell
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

// isFixable tells whether a fault's fix is offered: what an included file means is
// for the file that includes it to say, so there only its form is mended, and
// only below the working directory.
func isFixable(d diag.Diagnostic) bool {
	f := d.Span.File
	switch {
	case f == nil:
		return true
	case isRemote(f.Path): // nobody can write there
		return false
	}
	return f.From.File == nil || d.Code < "QT2" && filepath.IsLocal(f.Path)
}

// maxFixPasses is how often a document is mended and checked again: a mended
// section can hold faults that could not be seen before.
const maxFixPasses = 10

// Fix finds documents, mends what can safely be mended, and answers what
// became of the files and what is left to be told. Nothing is written yet.
func Fix(ctx context.Context, find Finder, opts loader.Options) ([]Change, []Result, error) {
	m := &fixer{files: map[string]*Change{}, frozen: map[string]bool{}}
	find.Open = m.open
	opts.Open = m.open
	for round := 0; ; round++ {
		documents, err := find.Find(ctx)
		if err != nil {
			return nil, nil, err
		}
		results := Check(ctx, documents, opts)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if round == 0 {
			m.hidden = hiddenIn(results)
		}
		if m.revertBroken(results) {
			continue
		}
		if round == maxFixPasses || !m.apply(Faults(results)) {
			return m.changes(hiddenIn(results)), results, nil
		}
	}
}

// fixer holds the files in the state that they are mended to.
type fixer struct {
	files  map[string]*Change       // by real path
	frozen map[string]bool          // files in which nothing more is mended
	before map[string][]byte        // the files' texts before the last round, those that it changed
	mends  map[string]int           // how many faults the last round mended in them
	shape  map[string]int           // shapeFaults before the last round
	hidden map[string][]source.Span // where secrets stood at first, by real path
}

// open reads a file as it is mended so far.
func (m *fixer) open(_ context.Context, path string) (io.ReadCloser, error) {
	if c, changed := m.files[realPath(path)]; changed {
		return io.NopCloser(bytes.NewReader(c.new)), nil
	}
	return nil, nil
}

// realPath is the same for two paths of one file.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// edit is a fix with the fault that it belongs to.
type edit struct {
	fix   diag.Fix
	fault int // the index of the fault in its list
}

// apply applies every fix that does not meet another one, and tells whether
// there was any.
func (m *fixer) apply(faults diag.List) bool {
	byFile := map[string][]edit{}
	names := map[string]*source.File{}
	for i, d := range faults {
		for _, f := range d.Fixes {
			real := realPath(f.Span.File.Path)
			if !m.frozen[real] {
				byFile[real] = append(byFile[real], edit{f, i})
				names[real] = f.Span.File
			}
		}
	}
	m.before, m.mends = map[string][]byte{}, map[string]int{}
	for real, edits := range byFile {
		if !m.applyTo(real, names[real], edits) {
			m.frozen[real] = true
		}
	}
	return len(m.before) > 0
}

// applyTo changes one file; false where nothing of it could be changed.
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
	m.before[real], m.mends[real] = c.new, n
	c.new = text
	c.Mends += n
	return true
}

// revertBroken takes the last round back in files that read worse after it, which
// no fix should bring about; it tells whether there were any. A guard, for
// nothing worse can happen here than a mended document that no longer reads.
func (m *fixer) revertBroken(results []Result) bool {
	shape := shapeFaults(results)
	undone := false
	for real, text := range m.before {
		if shape[real] > m.shape[real] {
			m.files[real].new = text
			m.files[real].Mends -= m.mends[real]
			m.frozen[real] = true
			undone = true
		}
	}
	m.before = nil
	m.shape = shape
	return undone
}

// shapeFaults counts, for each file, the faults of which a mending must not make
// more: text that is no YAML, and keys that stand twice.
func shapeFaults(results []Result) map[string]int {
	counts := map[string]int{}
	for _, d := range Faults(results) {
		if d.Span.File != nil && (d.Code == "QT002" || d.Code == "QT003" || d.Code == "QT010") {
			counts[realPath(d.Span.File.Path)]++
		}
	}
	return counts
}

// changes are the files that differ from what they were, by name.
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
