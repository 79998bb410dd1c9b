// Package calls reads and writes files with recorded calls of models, HTTP servers and MCP
// servers. Package recording records and replays them.
package calls

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// fileVersion is the version of the form of the file.
const fileVersion = 1

// Call is a recorded call.
type Call struct {
	Turn     int             `json:"turn"`     // the turn of the test, from 1
	Kind     string          `json:"kind"`     // chat, embedding, http, tools or tool
	Target   string          `json:"target"`   // the id of the model or tool, or the server
	Request  json.RawMessage `json:"request"`  // what was sent, without secrets
	Response json.RawMessage `json:"response"` // what came back, without secrets
}

// recordedTest is the calls of one test.
type recordedTest struct {
	Name  string  `json:"name"`
	Calls []*Call `json:"calls"`
}

// File is a file of recordings. It is not safe for concurrent use.
type File struct {
	path    string
	tests   []*recordedTest
	changed bool
}

// Open reads a file of recordings; a file that does not exist is empty.
func Open(path string) (*File, error) {
	f := &File{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the recordings %s cannot be read: %w", path, textfmt.WithoutPath(err))
	}
	var content struct {
		Version int             `json:"version"`
		Tests   []*recordedTest `json:"tests"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(&content); {
	case err != nil:
		return nil, fmt.Errorf("%s:%d: not a file of recordings: %s", path, lineAt(text, d.InputOffset()), reasonOf(err))
	case content.Version != fileVersion:
		return nil, fmt.Errorf("%s: the recordings have version %d, not %d: record them again", path, content.Version, fileVersion)
	}
	f.tests = slices.DeleteFunc(content.Tests, func(t *recordedTest) bool { return t == nil })
	for _, t := range f.tests {
		for i, c := range t.Calls {
			if c == nil || c.Request == nil || c.Response == nil {
				return nil, fmt.Errorf("%s: call %d of test %q has no request or no response", path, i+1, t.Name)
			}
		}
	}
	return f, nil
}

// reasonOf describes an error of the decoder without the types of this program.
func reasonOf(err error) string {
	wrong, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case isType && wrong.Field != "":
		return fmt.Sprintf("%s has the wrong type, %s", wrong.Field, wrong.Value)
	case isType:
		return "expected an object with version and tests, not " + wrong.Value
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the file ends early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func lineAt(text []byte, offset int64) int {
	return bytes.Count(text[:min(int(offset), len(text))], []byte("\n")) + 1
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Exists reports whether the file has recordings.
func (f *File) Exists() bool { return len(f.tests) > 0 }

// Of returns the calls of a test.
func (f *File) Of(name string) []*Call {
	if t := f.find(name); t != nil {
		return t.Calls
	}
	return nil
}

func (f *File) find(name string) *recordedTest {
	i := slices.IndexFunc(f.tests, func(t *recordedTest) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return f.tests[i]
}

// Keep removes the recordings of tests that are not in names and returns their number.
func (f *File) Keep(names []string) int {
	removed := f.Others(names)
	f.tests = slices.DeleteFunc(f.tests, func(t *recordedTest) bool { return !slices.Contains(names, t.Name) })
	f.changed = f.changed || removed > 0
	return removed
}

// Others returns the number of recordings of tests that are not in names.
func (f *File) Others(names []string) int {
	n := 0
	for _, t := range f.tests {
		if !slices.Contains(names, t.Name) {
			n += max(len(t.Calls), 1)
		}
	}
	return n
}

// Set replaces the calls of a test, in the order of the file.
func (f *File) Set(name string, calls []*Call) {
	slices.SortStableFunc(calls, compareCalls)
	if t := f.find(name); t != nil {
		f.changed = f.changed || !slices.EqualFunc(t.Calls, calls, sameCall)
		t.Calls = calls
		return
	}
	if len(calls) > 0 {
		f.tests, f.changed = append(f.tests, &recordedTest{name, calls}), true
	}
}

// compareCalls orders calls so that concurrent ones are always written alike: by turn,
// kind and target, and by the length of the request, because a conversation grows.
func compareCalls(a, b *Call) int {
	return cmp.Or(a.Turn-b.Turn, cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Target, b.Target),
		len(a.Request)-len(b.Request), bytes.Compare(a.Request, b.Request))
}

func sameCall(a, b *Call) bool {
	return a.Turn == b.Turn && a.Kind == b.Kind && a.Target == b.Target && bytes.Equal(a.Request, b.Request) && bytes.Equal(Compact(a.Response), Compact(b.Response))
}

// Save writes the file if it has changed: the tests in the order of names. It replaces
// the file as a whole, and removes one without recordings.
func (f *File) Save(names []string) error {
	if !f.changed {
		return nil
	}
	f.changed = false
	f.tests = slices.DeleteFunc(f.tests, func(t *recordedTest) bool { return len(t.Calls) == 0 })
	if len(f.tests) == 0 {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return textfmt.WithoutPath(err)
		}
		return nil
	}
	slices.SortStableFunc(f.tests, func(a, b *recordedTest) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
	text, err := textfmt.CompactJSON(struct {
		Version int             `json:"version"`
		Tests   []*recordedTest `json:"tests"`
	}{fileVersion, f.tests})
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	return replaceFile(f.path, append(indented.Bytes(), '\n'))
}

// replaceFile writes a file in one step.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return textfmt.WithoutPath(err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return textfmt.WithoutPath(err)
	}
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // the first error is returned
	}
	return textfmt.WithoutPath(err)
}

// Compact returns JSON without white space.
func Compact(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}
