package stepcache

import (
	"testing"
	"time"
)

// Clock sets the clock.
func (s *Store) Clock(now func() time.Time) { s.now = now }

// Total returns the total of a step, which triggers maintain.
func (s *Store) Total(t *testing.T, scope Scope) (bytes int64) {
	t.Helper()
	c, err := s.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	row := c.Read.QueryRowContext(t.Context(), "SELECT bytes FROM totals WHERE namespace = ? AND step = ?", scope.Namespace, scope.Step)
	if err := row.Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}
