package spec

import (
	"slices"
	"strings"
)

// fileStep is a step that may use nothing outside of the process but files.
type fileStep interface {
	usesFilesOnly() bool
}

// UsesFilesOnly reports whether a step uses nothing outside of the process but files, which
// the fixtures of a test can have.
func UsesFilesOnly(s Step) bool {
	f, ok := s.(fileStep)
	return ok && f.usesFilesOnly()
}

func (s *FileSource) usesFilesOnly() bool         { return true }
func (s *FileWriter) usesFilesOnly() bool         { return true }
func (s *DocToTextConverter) usesFilesOnly() bool { return true }

func (s *DocumentSource) usesFilesOnly() bool {
	return slices.ContainsFunc(Readers(), func(r Reader) bool { return r.Local && r.IsNamed(s.ReaderModule) })
}

func (s *SQLSource) usesFilesOnly() bool {
	return s.Connection.Ref == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(s.Connection.Reveal())), "sqlite")
}
