package main

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// loadApplication reads an application for a command that does not run it. what
// completes an error: "only an application …".
func loadApplication(ctx context.Context, path, what string) (*spec.Application, error) {
	p, list := qtype.Check(ctx, path)
	if err := list.Err(); err != nil {
		return nil, err
	}
	if p.Document.Application == nil {
		return nil, fmt.Errorf("%s is not an application: only an application %s", path, what)
	}
	return p.Document.Application, nil
}

// printWarnings writes how many warnings a document has; validate shows them.
func (s *streams) printWarnings(path string, list diag.List) {
	if n := list.Warnings(); n > 0 {
		fmt.Fprintf(s.Err, "%s: see \"qtype validate %s\"\n", textfmt.Count(n, "warning"), terminal.Clean(path))
	}
}
