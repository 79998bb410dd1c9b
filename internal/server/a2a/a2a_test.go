package a2a_test

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a server of the flows for tests and its address.
func serve(t *testing.T, store memory.Store, control *access.Control) (*server.Server, string) {
	t.Helper()
	app, err := runtimetest.Open(t.Context(), "../agui/testdata/agents.qtype.yaml", runtime.Options{Store: storetest.Shared(store)})
	testkit.Must(t, err)
	s := server.New(app, server.Options{Heartbeat: 50 * time.Millisecond, Access: control})
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		testkit.CloseServer(ts)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		_ = app.Close(ctx)
	})
	return s, ts.URL
}

// TestClient drives flows with the official client for Node. QTYPE_A2A is a node_modules
// folder with @a2a-js/sdk.
func TestClient(t *testing.T) {
	modules := testkit.External(t, "QTYPE_A2A", "a node_modules folder with @a2a-js/sdk")
	_, address := serve(t, memory.NewInProcess(), nil)
	_, secured := serve(t, memory.NewInProcess(), keys(t))
	cmd := testkit.Command(t, "node", "testdata/client.cjs", address, secured, strings.Repeat("a", 32))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	testkit.Must(t, err)
}
