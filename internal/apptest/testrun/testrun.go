// Package testrun runs the tests of an application, which package apptest reads from files
// *.qtype-test.yaml: mocks of models and tools, the turns to run, and the conditions to
// check.
//
// Tests are offline and isolated: each has a new App, whose memories are discarded
// at its end. Calls that no mock answers come from recordings, which a run with
// RecordMode makes.
package testrun

import (
	"context"
	"net/http"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/tool"
)

// File is a valid test file whose tests can run.
type File struct {
	*apptest.File
	Mode RecordMode // what the tests do with calls that no mock answers

	// AllowEffects lets all tests read and write files, query databases, start programs and
	// call servers.
	AllowEffects bool

	Trials int // how often each test is run; 0 for as often as the file says

	program *Program
}

// Program is an application that tests run.
type Program struct {
	App *spec.Application
	// New makes the application with what a test replaces in it. Memories are in process.
	New func(Env) (*runtime.App, error)
}

// Env is what a test replaces in an application.
type Env struct {
	Mocks   runtime.Mocks // in place of models and tools
	HTTP    *http.Client  // refuses every request; nil while calls are recorded
	Approve tool.Approver // approves every call
}

// Opener reads and checks an application. The program is complete if the list has no
// errors; App is nil if the document is not an application.
type Opener func(ctx context.Context, path string) (*Program, diag.List)

// Load reads a test file with its application as apptest.Load does.
func Load(ctx context.Context, path string, read loader.Options, open Opener) (*File, diag.List) {
	f := &File{}
	declared, list := apptest.Load(ctx, path, read, func(ctx context.Context, path string) (*spec.Application, diag.List) {
		program, list := open(ctx, path)
		if f.program = program; program == nil {
			return nil, list
		}
		return program.App, list
	})
	if declared == nil {
		return nil, list
	}
	f.File = declared
	return f, list
}
