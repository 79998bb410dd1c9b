package runtime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
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
	return (&auditLog{path: path}).write
}

// auditLog is a file to which each record is appended as a line of JSON.
type auditLog struct {
	path string
	mu   sync.Mutex // lines of this process do not overlap where a file system splits long writes
}

// write appends a record. The file is opened each time: a program that rotates
// logs can rename it.
func (l *auditLog) write(r memory.AuditRecord) error {
	const ownerOnly = 0o600
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, ownerOnly)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
