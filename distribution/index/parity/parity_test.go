// Package parity_test compares retrieval with an index on a server with that of QType (Python).
package parity_test

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// run runs a flow and returns its result rows.
func run(t *testing.T, app *runtime.App, flow, session string, rows []map[string]any) (out []*runtime.Result) {
	t.Helper()
	var inputs []runtime.Input
	for _, r := range rows {
		inputs = append(inputs, runtime.Input{Values: r, Session: session})
	}
	for row, err := range app.Run(t.Context(), flow, slices.Values(inputs)) {
		testkit.Must(t, err)
		out = append(out, row)
	}
	return out
}
