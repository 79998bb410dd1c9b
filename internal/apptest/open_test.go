package apptest_test

import (
	"context"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// open is an apptest.Opener.
func open(ctx context.Context, path string) (*apptest.Program, diag.List) {
	p, list := qtype.Check(ctx, path)
	return &apptest.Program{App: p.Document.Application, New: func(env apptest.Env) (*runtime.App, error) {
		return qtype.New(p, qtype.WithEphemeral(), qtype.WithMocks(env.Mocks), qtype.WithHTTP(env.HTTP), qtype.WithApproval(env.Approve))
	}}, list
}
