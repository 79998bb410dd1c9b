package servers_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/encrypted/encryptedtest"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
)

func TestMain(m *testing.M) {
	servers.Quiet()
	encryptedtest.Main(servers.Openers())
	if address := os.Getenv(callerVariable); address != "" {
		if err := callForever(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.AllowWaiting()
	goleak.VerifyTestMain(m)
}

// newStores starts the servers, and returns functions that return the addresses of empty stores on them.
func newStores(t testing.TB) map[string]func() string {
	t.Helper()
	pg, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, pg.Close()) })
	rd, err := servertest.Redis()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, rd.Close()) })
	var n atomic.Int64
	return map[string]func() string{
		"redis": func() string { return fmt.Sprintf("redis://%s/0?key_prefix=t%d:", rd.Address(), n.Add(1)) },
		"postgres": func() string {
			separator := "?"
			if strings.Contains(pg.URL(), "?") {
				separator = "&"
			}
			return fmt.Sprintf("%s%stable_prefix=t%d_", pg.URL(), separator, n.Add(1))
		},
	}
}

// openStore opens the store of an address until the end of the test.
func openStore(t testing.TB, address string) store.Store {
	t.Helper()
	s, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

// withStores returns a context of a program with the stores of servers.
func withStores(ctx context.Context) context.Context {
	parts := runtime.CoreParts()
	parts.Stores = servers.Openers()
	return runtime.WithParts(ctx, parts)
}
