package stepcache

import (
	"testing"
	"time"
)

// Clock sets what the time is.
func (s *Store) Clock(now func() time.Time) { s.now = now }

// Total is what the triggers have counted for a step.
func (s *Store) Total(t *testing.T, scope Scope) (bytes int64) {
	t.Helper()
	f, err := s.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	row := f.read.QueryRowContext(t.Context(), "SELECT bytes FROM totals WHERE namespace = ? AND step = ?", scope.Namespace, scope.Step)
	if err := row.Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}
