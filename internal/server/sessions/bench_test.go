package sessions_test

import (
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

func BenchmarkSessions(b *testing.B) {
	b.Run("inprocess", func(b *testing.B) { sessionstest.Measure(b, memory.NewInProcess()) })
	b.Run("sqlite", func(b *testing.B) {
		s, err := sqlite.Open(filepath.Join(b.TempDir(), "memory.db"))
		testkit.Must(b, err)
		sessionstest.Measure(b, s)
	})
}
