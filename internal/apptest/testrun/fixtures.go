package testrun

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
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

// checkEffects fails a turn whose flow would read or write files, query a database or start
// a program, unless the test allows or replaces the step or tool.
func (r *testRun) checkEffects(t *spec.Turn, flow *spec.Flow) {
	for s := range flow.Plan().All() {
		step := s.Step.Common()
		if effect := spec.Effect(s.Step); effect != "" && !r.env.allows(step.ID, spec.TypeName(s.Step)) && !(r.env.fixtures != "" && spec.UsesFilesOnly(s.Step)) {
			r.diagnostics.Add(apptest.Failed.At(turnSpan(t), "step %s (%s) %s, which tests may not", step.ID, spec.TypeName(s.Step), effect).
				WithHint("%sif it should, write allow: [%s]", fixturesHint(s.Step), step.ID))
			return
		}
		for _, used := range s.Tools() {
			id, effect := used.EntityID(), r.env.effectOf(used)
			if effect == "" || r.env.isMocked(id) || r.env.allows(id, spec.TypeName(used)) {
				continue
			}
			r.diagnostics.Add(apptest.Failed.At(turnSpan(t), "step %s: tool %s %s, which tests may not", step.ID, id, effect).
				WithHint("add a mock: tools: [{id: %s, result: …}], or write allow: [%[1]s]", id))
			return
		}
	}
}

// fixturesHint returns the advice for a step whose files fixtures can have.
func fixturesHint(s spec.Step) string {
	if !spec.UsesFilesOnly(s) {
		return ""
	}
	return "put its files in a folder and write fixtures: with its path, or, "
}

// effectOf returns what a tool does outside of the process; empty for a tool that does
// nothing, or whose calls are recorded or refused.
func (e *testEnv) effectOf(t spec.Tool) string {
	switch program := factory.Program(t); {
	case factory.IsServer(t) && e.session != nil:
		return ""
	case program != "":
		return "starts the program " + program
	case factory.IsServer(t) && e.allowsServer():
		return "calls a server"
	}
	return ""
}

// allows reports whether the test may really use the step or the tool with an id and a type.
func (e *testEnv) allows(id, kind string) bool {
	return e.effects || slices.Contains(e.allow, id) || slices.Contains(e.allow, kind)
}

// isMocked reports whether the test replaces a tool.
func (e *testEnv) isMocked(id string) bool {
	return slices.ContainsFunc(e.tools, func(m *spec.ToolMock) bool { return m.ID == id })
}

// allowsServer reports whether the test allows anything that may call servers.
func (e *testEnv) allowsServer() bool { return e.effects || len(e.allow) > 0 }

// refusedServer returns a tool that fails in place of one that calls a server, where the
// test allows others to call servers; nil for other tools.
func (e *testEnv) refusedServer(t spec.Tool) tool.Tool {
	if _, calls := t.(*spec.APITool); !calls || e.session != nil || !e.allowsServer() || e.allows(t.EntityID(), spec.TypeName(t)) {
		return nil
	}
	failure := &spec.ToolMock{ID: t.EntityID(), Error: fmt.Sprintf("a test cannot call servers: add a mock of the tool under tools, recordings, or allow: [%s]", t.EntityID())}
	return factory.NewMock(mockstate.New(), t, failure)
}
