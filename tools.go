package qtype

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/diagram"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Change is a difference in meaning between two documents. Its Impact is whether
// it breaks callers or stored conversations.
type Change = semdiff.Change

// Diff compares two documents by their meaning. If one of them has errors, Diff
// returns these as a diag.List.
func Diff(ctx context.Context, before, after string, opts ...Option) ([]Change, error) {
	o := optionsOf(opts).check
	return authoring.Diff(ctx, authoring.Version{Path: before, Options: o}, authoring.Version{Path: after, Options: o})
}

// IsBreaking reports whether one of the changes breaks callers or stored conversations.
func IsBreaking(changes []Change) bool { return semdiff.Count(changes, semdiff.Breaking) > 0 }

// DrawFormat is the format of a drawing.
type DrawFormat = diagram.Format

// The formats of drawings.
const (
	DrawMermaid = diagram.Mermaid // Mermaid text
	DrawSVG     = diagram.SVG     // a picture
	DrawHTML    = diagram.HTML    // a page with the picture
)

// Draw writes a diagram of a document: its flows with their steps, the data between
// them, and the models, memories and tools that they use. Secrets are not drawn.
func Draw(ctx context.Context, w io.Writer, path string, format DrawFormat, opts ...Option) error {
	return authoring.Draw(ctx, w, path, format, optionsOf(opts).check)
}

// ConvertKind is a kind of file that Convert reads.
type ConvertKind = convert.Kind

// The kinds of files.
const (
	ConvertAIRefinery = convert.AIRefinery // a project file of AI Refinery
	ConvertXFlow      = convert.XFlow      // a workflow of xFlow
	ConvertPromptFlow = convert.PromptFlow // a flow of prompt flow, or a Prompty file
	ConvertAPI        = convert.API        // an OpenAPI 3 or Swagger 2 file
	ConvertModule     = convert.Module     // the source of a Python module; it needs python3
)

// ConvertKinds returns the kinds of files that Convert reads.
func ConvertKinds() []ConvertKind { return convert.Kinds() }

// ConvertOptions configure Convert.
type ConvertOptions struct {
	Kind ConvertKind // the kind of the file
	Path string      // the file, and its name in diagnostics
	From io.Reader   // where to read it; nil to read the file
}

// Convert converts a file of another system to a document and returns its text. The
// list has what the document cannot express: after a warning it has the same results
// as the file; after an error it differs, and has a comment TODO at the place. The core converts OpenAPI files and
// Python modules; the context of package distribution has the other kinds.
func Convert(ctx context.Context, o ConvertOptions) (text string, list diag.List) {
	if o.From != nil {
		return convert.Reader(ctx, o.Kind, o.Path, o.From)
	}
	return convert.File(ctx, o.Kind, o.Path)
}

// TestReport is the result of the tests in a file.
type TestReport = testrun.Report

// TestOutcome is the result of a test.
type TestOutcome = testrun.Outcome

// TestRecordMode is what a test does with calls that no mock answers, if its file
// declares recordings.
type TestRecordMode = testrun.RecordMode

// The modes of recordings.
const (
	TestReplay        = testrun.Replay        // answer from the recordings
	TestRecord        = testrun.Record        // make and record all calls
	TestRecordMissing = testrun.RecordMissing // make and record the calls without a recording
)

// TestOptions configure Test.
type TestOptions struct {
	Names  *regexp.Regexp // run only tests whose names match; nil for all
	Record TestRecordMode // what tests do with calls that no mock answers, if their file declares recordings
	Prune  bool           // remove recordings that no test uses
	// AllowEffects lets all tests read and write files, query databases, start programs and
	// call servers, as if they listed everything under allow.
	AllowEffects bool
	Content      []byte             // of the file at the only path, in place of its own; nil to read it
	Trials       int                // how often each test is run; 0 for as often as its file says
	Options      []Option           // how applications are read and run
	Started      func(*TestReport)  // called before the tests of a file are run, or if they cannot be; may be nil
	Finished     func(*TestOutcome) // called after each test; may be nil
	Ended        func(*TestReport)  // called after the tests of a file; may be nil
}

// Test runs the tests in files *.qtype-test.yaml, with mocks in place of models and
// tools. Of a directory, it runs all such files below it. It stops if ctx is done.
func Test(ctx context.Context, paths []string, o TestOptions) ([]TestReport, error) {
	files := paths
	if o.Content == nil {
		found, err := apptest.Find(paths)
		if err != nil {
			return nil, err
		}
		files = found
	}
	var reports []TestReport
	for _, path := range files {
		r, err := o.file(ctx, path)
		if reports = append(reports, r); err != nil {
			return reports, err
		}
		if ctx.Err() != nil {
			return reports, context.Cause(ctx)
		}
	}
	return reports, nil
}

// file runs the tests of one file.
func (o TestOptions) file(ctx context.Context, path string) (TestReport, error) {
	var read loader.Options
	if o.Content != nil {
		read.Open = func(context.Context, string) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(o.Content)), nil
		}
	}
	file, list := testrun.Load(ctx, path, read, o.open)
	r := TestReport{Path: path, Diagnostics: list}
	var tests []*spec.Test
	if file != nil {
		tests = file.Tests(o.Names)
		file.Mode = o.Record
		file.AllowEffects, file.Trials = o.AllowEffects, o.Trials
		r.Recorded = file.HasRecordings()
	}
	if o.Started != nil && (file == nil || len(tests) > 0) {
		o.Started(&r)
	}
	for _, t := range tests {
		outcome := file.Run(ctx, t)
		r.Outcomes = append(r.Outcomes, outcome)
		if o.Finished != nil {
			o.Finished(outcome)
		}
	}
	if file == nil || ctx.Err() != nil {
		return r, nil //nolint:nilerr // the outcomes of the tests have the cancellation
	}
	stale, err := file.EndRecordings(r.Outcomes, o.Prune)
	r.Diagnostics = append(r.Diagnostics, stale...)
	if o.Ended != nil {
		o.Ended(&r)
	}
	return r, err
}

// open is a testrun.Opener.
func (o TestOptions) open(ctx context.Context, path string) (*testrun.Program, diag.List) {
	p, list := Check(ctx, path, o.Options...)
	start := func(env testrun.Env) (*runtime.App, error) {
		opts := slices.Concat(o.Options, []Option{WithEphemeral(), WithMocks(env.Mocks), WithHTTP(env.HTTP), WithApproval(env.Approve)})
		return New(p, opts...)
	}
	return &testrun.Program{App: p.Document.Application, New: start}, list
}

// FileKinds returns the kinds of files other than documents that lint can check: tests and
// evaluations, with their applications. Nothing is run.
func FileKinds(opts ...Option) []*lint.Kind { return authoring.FileKinds(optionsOf(opts).check) }
