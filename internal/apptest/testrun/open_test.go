package testrun_test

import (
	"context"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// open is an apptest.Opener.
func open(ctx context.Context, path string) (*testrun.Program, diag.List) {
	p, list := qtype.Check(ctx, path)
	return &testrun.Program{App: p.Document.Application, New: func(env testrun.Env) (*runtime.App, error) {
		return qtype.New(p, qtype.WithEphemeral(), qtype.WithMocks(env.Mocks), qtype.WithHTTP(env.HTTP), qtype.WithApproval(env.Approve))
	}}, list
}
