package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/memory"
)

// auditVariable is the environment variable with the file of --audit-log.
const auditVariable = "QTYPE_AUDIT_LOG"

// auditFlag is the flag --audit-log.
type auditFlag struct{ file string }

func (a *auditFlag) addTo(f *pflag.FlagSet) {
	f.StringVar(&a.file, "audit-log", "", "append a line of JSON for each approval, call and result of a tool to `FILE` (default: the file that "+auditVariable+" names)")
}

// path returns the file of the log, empty for none.
func (a *auditFlag) path() string { return cmp.Or(a.file, os.Getenv(auditVariable)) }

// check rejects a log in a file that is used otherwise: it would be replaced, or change an input.
func (a *auditFlag) check(others ...string) error {
	for _, other := range others {
		if remotefs.IsSame(a.path(), other) {
			return usagef("the audit log %s is another file of this command: use another name", a.path())
		}
	}
	return nil
}

// options returns the options of an application whose calls are recorded.
func (a *auditFlag) options() ([]qtype.Option, error) {
	if a.path() == "" {
		return nil, nil
	}
	option, err := qtype.WithAuditLog(a.path())
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be written: %w", err)
	}
	return []qtype.Option{option}, nil
}

// context returns a context whose calls are those of the user of the system.
func (a *auditFlag) context(ctx context.Context) context.Context {
	if a.path() == "" {
		return ctx
	}
	return memory.WithActor(ctx, actor())
}
