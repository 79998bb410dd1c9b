package runtime

import (
	"context"
	"path/filepath"

	"github.com/qtype-dev/qtype/internal/auditlog"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// auditor returns what writes the audit log of a memory, nil for none. A store that
// replaces the declared one, as in tests, has no log.
func (a *App) auditor(m *spec.Memory) memory.Auditor {
	if m.AuditLog == "" || a.opts.Store != nil {
		return nil
	}
	path := a.opts.Policy.Output(m.AuditLog)
	if !filepath.IsAbs(path) && path == m.AuditLog {
		path = filepath.Join(folderOf(m), path)
	}
	if err := a.opts.Policy.Write(path); err != nil {
		return func(memory.AuditRecord) error { return err }
	}
	log := auditlog.New(path)
	return func(r memory.AuditRecord) error { return log.Append(r) }
}

// withAuditFlow returns a context for the steps of a flow, whose calls of tools are recorded.
func (a *App) withAuditFlow(ctx context.Context, f *spec.Flow) context.Context {
	if a.audit == nil {
		return ctx
	}
	return tool.WithAuditFlow(ctx, f.ID)
}
