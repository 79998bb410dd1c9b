package apptest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/recording/calls"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/spec/value"
)

// checkMocks checks the mocks of a file or of a test. failing reports that the test expects an error,
// which a wrong result can cause.
func (c *checker) checkMocks(models []*spec.ModelMock, mocks []*spec.ToolMock, state []mockstate.Tables, failing bool) {
	for _, m := range NonNil(models) {
		declared := chatModels(c.app)
		c.checkID(SpanOf(m, "id"), "chat model", m.ID, spec.IDs(declared))
		if i := slices.IndexFunc(declared, func(d *spec.Model) bool { return d.ID == m.ID }); i >= 0 && m.Position().Complete() {
			if _, err := mock.New(WithMock(declared[i], m), mock.Options{}); err != nil {
				_, why, _ := strings.Cut(err.Error(), ": ")
				c.list.Add(ruleInvalid.At(SpanOf(m, "rules"), "%s", why))
			}
		}
	}
	c.checkToolMocks(mocks, state, failing)
}

// CheckToolMocks checks mocks of the tools of an application, with the tables that they can name.
func CheckToolMocks(app *spec.Application, mocks []*spec.ToolMock, state ...mockstate.Tables) diag.List {
	c := &checker{app: app}
	c.checkToolMocks(mocks, state, false)
	return c.list
}

func (c *checker) checkToolMocks(mocks []*spec.ToolMock, state []mockstate.Tables, failing bool) {
	tools := allTools(c.app)
	for _, t := range NonNil(mocks) {
		c.checkID(SpanOf(t, "id"), "tool", t.ID, spec.IDs(tools))
		if i := slices.IndexFunc(tools, func(d spec.Tool) bool { return d.EntityID() == t.ID }); i >= 0 && t.Position().Complete() && !failing && len(mockstate.References(t.Result)) == 0 {
			c.checkResult(t, tools[i])
		}
		_, result := t.Position().Lookup("result")
		_, fails := t.Position().Lookup("error")
		if result == fails && (result || t.Table == "") && t.Position().Complete() {
			c.list.Add(ruleInvalid.At(SpanOf(t, "id"), "the mock of tool %q needs a result or an error", t.ID).WithHint("set one of them"))
		}
		c.checkTable(t, tools, mocks, state)
	}
}

// checkResult warns about a result that the tool cannot have by its outputs. A step fails if an output
// is missing, and does not read what is not declared; values of primitive types are not converted.
func (c *checker) checkResult(t *spec.ToolMock, of spec.Tool) {
	field, set := t.Position().Lookup("result")
	outputs, declared := of.Results()
	if !set || !declared || len(outputs) == 0 || t.Result == nil {
		return
	}
	object, isObject := t.Result.(map[string]any)
	if isObject && len(outputs) == 1 && (outputs[0].Type.IsRecord() || outputs[0].Type.Custom != nil) {
		_, named := object[outputs[0].ID]
		isObject = named // else it is the value of the output
	}
	if !isObject {
		for _, v := range outputs {
			c.checkOutput(t, v, t.Result, field.Span())
		}
		return
	}
	var ids []string
	for _, v := range outputs {
		ids = append(ids, v.ID)
	}
	complete := true
	for _, part := range field.Parts {
		if slices.Contains(ids, part.Name) {
			continue
		}
		complete = false
		d := ruleMock.At(part.Key, "tool %s has no output %q", t.ID, part.Name)
		if diag.Nearest(part.Name, ids) == "" {
			d = d.WithHint("its outputs: %s", strings.Join(ids, ", "))
		}
		c.list.Add(d.WithNearest(part.Name, ids))
	}
	for _, v := range outputs {
		x, given := object[v.ID]
		switch {
		case given && x != nil:
			c.checkOutput(t, v, x, field.Field(v.ID).Span())
		case !v.IsOptional() && complete: // else a name that is reported may be meant
			c.list.Add(ruleMock.At(field.Span(), "the result lacks the output %q of tool %s", v.ID, t.ID))
		}
	}
}

// checkOutput warns about a value that is not of the type of an output.
func (c *checker) checkOutput(t *spec.ToolMock, v *spec.Variable, x any, place source.Span) {
	if !isChecked(v.Type) {
		return
	}
	if _, err := value.Coerce(v.Type, x); err != nil {
		c.list.Add(ruleMock.At(place, "output %s of tool %s: %s", v.ID, t.ID, err))
	}
}

// isChecked reports whether values of a type are checked before they are used. Media may be the
// names of files.
func isChecked(t spec.Type) bool {
	for t.Elem != nil {
		t = *t.Elem
	}
	return t.IsPrimitive() && !t.IsMedia()
}

// chatModels returns the chat models of an application and its references.
func chatModels(app *spec.Application) []*spec.Model {
	var all []*spec.Model
	for _, d := range app.Documents() {
		for _, m := range d.Models {
			if chat, ok := m.(*spec.Model); ok {
				all = append(all, chat)
			}
		}
	}
	return all
}

// allTools returns the tools of an application and its references.
func allTools(app *spec.Application) []spec.Tool {
	var all []spec.Tool
	for _, d := range app.Documents() {
		all = append(all, d.Tools...)
	}
	return all
}

// WithMock returns a copy of a model that answers by the rules of a mock. It keeps
// the id and the settings that decide how tokens are counted.
func WithMock(m *spec.Model, d *spec.ModelMock) *spec.Model {
	mocked := *m
	mocked.Provider, mocked.Rules = "mock", d.Rules
	return &mocked
}

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
