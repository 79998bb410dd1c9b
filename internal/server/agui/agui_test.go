package agui_test

import (
	"context"
	"net/http/httptest"
	"os"
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

// serve returns the address of a server of the flows for tests.
func serve(t *testing.T) string {
	t.Helper()
	return serveWith(t, nil)
}

// serveWith is serve with access control, nil for none.
func serveWith(t *testing.T, control *access.Control) string {
	t.Helper()
	_, address := serveStore(t, memory.NewInProcess(), control)
	return address
}

// serveStore is serveWith over a store.
func serveStore(t *testing.T, store memory.Store, control *access.Control) (*server.Server, string) {
	t.Helper()
	app, err := runtimetest.Open(t.Context(), "testdata/agents.qtype.yaml", runtime.Options{Store: storetest.Shared(store)})
	testkit.Must(t, err)
	s := server.New(app, server.Options{Heartbeat: 50 * time.Millisecond, Access: control})
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		testkit.CloseServer(ts)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		_ = app.Close(ctx)
	})
	return s, ts.URL
}

// TestClient drives flows with the official client. QTYPE_AGUI is a node_modules folder with
// @ag-ui/client and @ag-ui/core.
func TestClient(t *testing.T) {
	modules := testkit.External(t, "QTYPE_AGUI", "a node_modules folder with @ag-ui/client and @ag-ui/core")
	cmd := testkit.Command(t, "node", "testdata/client.cjs", serve(t))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	testkit.Must(t, err)
}
