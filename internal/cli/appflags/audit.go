package appflags

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// auditVariable is the environment variable with the file of --audit-log.
const auditVariable = "QTYPE_AUDIT_LOG"

// Audit is the flag --audit-log.
type Audit struct{ File string }

// AddTo adds the flag.
func (a *Audit) AddTo(f *pflag.FlagSet) {
	f.StringVar(&a.File, "audit-log", "", "append a line of JSON for each approval, call and result of a tool to `FILE` (default: the file that "+auditVariable+" names)")
}

// Path returns the file of the log, empty for none.
func (a *Audit) Path() string { return cmp.Or(a.File, os.Getenv(auditVariable)) }

// Check rejects a log in a file that is used otherwise: it would be replaced, or change an input.
func (a *Audit) Check(others ...string) error {
	for _, other := range others {
		if remotefs.IsSame(a.Path(), other) {
			return terminal.Usagef("the audit log %s is another file of this command: use another name", a.Path())
		}
	}
	return nil
}

// Options returns the options of an application whose calls are recorded.
func (a *Audit) Options() ([]qtype.Option, error) {
	if a.Path() == "" {
		return nil, nil
	}
	option, err := qtype.WithAuditLog(a.Path())
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be written: %w", err)
	}
	return []qtype.Option{option}, nil
}

// Context returns a context in which the user of the system makes the calls.
func (a *Audit) Context(ctx context.Context) context.Context {
	if a.Path() == "" {
		return ctx
	}
	return WithActor(ctx)
}
