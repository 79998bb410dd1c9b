package main

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/spec"
)

// application reads a document for a command that looks into it without a run.
// what says what the command needs an application for, such as "has steps".
func application(ctx context.Context, path, what string) (*spec.Application, error) {
	p, faults := qtype.Check(ctx, path)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if p.Document.Application == nil {
		return nil, fmt.Errorf("%s is not an application: only an application %s", path, what)
	}
	return p.Document.Application, nil
}
