package apptest

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/qtype-dev/qtype/internal/recording/calls"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Sibling returns the path of a file that a test file names.
func Sibling(s *spec.Suite, name string) string {
	return filepath.Join(filepath.Dir(s.Position().Span().File.Path), filepath.FromSlash(name))
}

// checkFixtures reports a folder of fixtures that cannot be used.
func (c *checker) checkFixtures(n spec.Node, name string) {
	field, declared := n.Position().Lookup("fixtures")
	if !declared || !n.Position().Complete("fixtures") {
		return
	}
	if name == "" || !filepath.IsLocal(filepath.FromSlash(name)) {
		c.list.Add(ruleInvalid.At(field.Span(), "fixtures must be a folder in the folder of the test file, or below it").WithHint("such as fixtures"))
		return
	}
	folder := Sibling(c.suite, name)
	info, err := os.Stat(folder)
	switch {
	case err != nil || !info.IsDir():
		c.list.Add(ruleInvalid.At(field.Span(), "the folder %q does not exist", name).WithHint("create it with the files that the tests read"))
	case !trust.IsWithin(Sibling(c.suite, "."), folder):
		c.list.Add(ruleInvalid.At(field.Span(), "the folder %q is a link to another one", name))
	}
}

// checkFiles reports assertions on files that cannot be met.
func (c *checker) checkFiles(t *spec.Test, turn *spec.Turn) {
	for _, a := range NonNil(turn.Files) {
		if field, given := a.Position().Lookup("same_as"); given && (!filepath.IsLocal(filepath.FromSlash(a.Same)) || !trust.IsWithin(Sibling(c.suite, "."), Sibling(c.suite, a.Same))) {
			c.list.Add(ruleInvalid.At(field.Span(), "same_as must be a file in the folder of the test file, or below it").WithHint("such as expected/orders.csv"))
		}
		if t.Fixtures == "" && c.suite.Fixtures == "" {
			c.list.Add(ruleInvalid.At(SpanOf(a, "path"), "the test has no fixtures, so that it writes no files").WithHint("write fixtures: with the path of a folder"))
		}
	}
}

// checkAllow reports names under allow that are neither an id nor a type of a step or a tool.
func (c *checker) checkAllow(n spec.Node, allow []string) {
	var known []string
	for _, flow := range c.app.Flows {
		for s := range flow.Plan().All() {
			known = append(known, s.Step.Common().ID, spec.TypeName(s.Step))
		}
	}
	for _, t := range c.app.AllTools() {
		known = append(known, t.EntityID(), spec.TypeName(t))
	}
	for _, s := range spec.StepTypes() {
		if spec.Effect(s) != "" {
			known = append(known, spec.TypeName(s))
		}
	}
	for i, name := range allow {
		c.checkID(n.Position().Field("allow").Index(i).Span(), "step or tool", name, known)
	}
}

// checkRecordings opens the recordings that a test file declares.
func (f *File) checkRecordings(c *checker) {
	field, declared := f.Suite.Position().Lookup("recordings")
	if !declared {
		return
	}
	var err error
	if f.Recordings, err = OpenRecordings(filepath.Dir(f.Path), f.Suite.Recordings); err != nil {
		c.list.Add(ruleInvalid.At(field.Span(), "%s", err))
	}
}

// OpenRecordings opens the recordings that a file of tests or of an evaluation names, in the folder of the file.
func OpenRecordings(folder, name string) (*calls.File, error) {
	switch {
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return nil, errors.New("recordings must be a file in the folder of this file, or below it, such as app.recordings.json")
	case filepath.Ext(name) != ".json":
		return nil, errors.New("recordings must be a JSON file, such as app.recordings.json")
	}
	return calls.Open(filepath.Join(folder, filepath.FromSlash(name)))
}
