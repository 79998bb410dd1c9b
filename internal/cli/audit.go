package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
)

// auditVariable is the environment variable with the file of --audit-log.
const auditVariable = "QTYPE_AUDIT_LOG"

// AuditFlag is the flag --audit-log.
type AuditFlag struct{ File string }

// AddTo adds the flag.
func (a *AuditFlag) AddTo(f *pflag.FlagSet) {
	f.StringVar(&a.File, "audit-log", "", "append a line of JSON for each approval, call and result of a tool to `FILE` (default: the file that "+auditVariable+" names)")
}

// path returns the file of the log, empty for none.
func (a *AuditFlag) path() string { return cmp.Or(a.File, os.Getenv(auditVariable)) }

// Options returns the options of an application whose calls are recorded.
func (a *AuditFlag) Options() ([]qtype.Option, error) {
	if a.path() == "" {
		return nil, nil
	}
	option, err := qtype.WithAuditLog(a.path())
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be written: %w", err)
	}
	return []qtype.Option{option}, nil
}

// Context returns a context whose calls are those of the user of the system.
func (a *AuditFlag) Context(ctx context.Context) context.Context {
	if a.path() == "" {
		return ctx
	}
	return WithActor(ctx)
}
