package sessions_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/postgres"
	"github.com/qtype-dev/qtype/internal/memory/redis"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

// BenchmarkSessions measures requests of a caller with 500 sessions among 2,000.
func BenchmarkSessions(b *testing.B) {
	for name, open := range map[string]func() memory.Store{
		"inprocess": memory.NewInProcess,
		"sqlite": func() memory.Store {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "memory.db"))
			testkit.Must(b, err)
			return s
		},
		"postgres": func() memory.Store {
			server, err := servertest.Postgres()
			servertest.Need(b, err)
			b.Cleanup(func() { testkit.Must(b, server.Close()) })
			s, err := postgres.Open(server.URL())
			testkit.Must(b, err)
			return s
		},
		"redis": func() memory.Store {
			server, err := servertest.Redis()
			servertest.Need(b, err)
			b.Cleanup(func() { testkit.Must(b, server.Close()) })
			s, err := redis.Open("redis://" + server.Address())
			testkit.Must(b, err)
			return s
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := newServer(b, open())
			defer func() { testkit.Must(b, s.app.Close(context.Background())) }()
			for n := range 2_000 {
				s.say(b, []string{"ada", "bob", "cid", "dan"}[n%4], fmt.Sprint("s", n), "question")
			}
			for _, path := range []string{"/sessions", "/sessions?q=nothing", "/sessions/s4", "/sessions/s4/messages", "/sessions/s4/context"} {
				b.Run(path[1:], func(b *testing.B) {
					for b.Loop() {
						s.must(b, "ada", "GET "+path, "", 200)
					}
				})
			}
		})
	}
}
