package testrun

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// maxFile is the maximum size of a file that an assertion reads, in bytes.
const maxFile = 64 << 20

// fixturesOf returns the folder of the fixtures of a test; empty for none.
func (f *File) fixturesOf(t *spec.Test) string {
	name := cmp.Or(t.Fixtures, f.Suite.Fixtures)
	if name == "" {
		return ""
	}
	return apptest.Sibling(f.Suite, name)
}

// copyFixtures makes the copy of the fixtures that a test reads and changes.
func (e *testEnv) copyFixtures() error {
	if e.declared == "" {
		return nil
	}
	to, err := os.MkdirTemp("", "qtype-test-")
	if err != nil {
		return err
	}
	e.fixtures = to
	return filepath.WalkDir(e.declared, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(e.declared, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular(): // such as a link to a file of the user
			return fmt.Errorf("%s is neither a file nor a folder", path)
		}
		return copyFile(filepath.Join(to, rel), path)
	})
}

// copyFile copies a file with its time, by which steps may order files.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // closing a file that was only read cannot lose data
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// checkFile checks a file of the fixtures after the turn.
func (r *testRun) checkFile(a *spec.FileAssertion) {
	got, err := readFile((*trust.Policy)(nil).WithFixtures(r.env.fixtures).Place(a.Path))
	if err != nil {
		r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(a, "path"), "the file %s %s", a.Path, err))
		return
	}
	if a.Same != "" {
		want, err := readFile(filepath.Join(r.env.folder, filepath.FromSlash(a.Same)))
		switch {
		case err != nil:
			r.diagnostics.Add(apptest.Failed.At(apptest.SpanOf(a, "same_as"), "the file %s %s", a.Same, err))
		case got != want:
			r.diagnostics.Add(apptest.Expectation.At(apptest.SpanOf(a, "same_as"), "the file %s differs from %s", a.Path, a.Same).WithHint("%s", difference(got, want)))
		}
	}
	for i, text := range a.Contains {
		if !strings.Contains(got, text) {
			r.diagnostics.Add(apptest.Expectation.At(a.Position().Field("contains").Index(i).Span(), "the file %s does not contain %q", a.Path, text).WithHint("it begins with %s", quote(got, maxShownValue)))
		}
	}
	for i, text := range a.Lacks {
		if strings.Contains(got, text) {
			r.diagnostics.Add(apptest.Expectation.At(a.Position().Field("not_contains").Index(i).Span(), "the file %s contains %q", a.Path, text))
		}
	}
}

// difference describes the first line in which two texts differ.
func difference(got, want string) string {
	gotLines, wantLines := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			return fmt.Sprintf("line %d is %s, expected %s", i+1, quote(g, maxShownValue), quote(w, maxShownValue))
		}
	}
	return ""
}

// readFile reads a regular file. The error continues a sentence about the file.
func readFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("does not exist")
	case err != nil:
		return "", errors.New("cannot be read")
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return "", fmt.Errorf("is not a file of at most %d MiB", maxFile>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New("cannot be read")
	}
	return string(text), nil
}
