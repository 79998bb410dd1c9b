package runtime_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
)

// TestRun_NoSession runs rows without a session: they fail where a memory is used, also
// by a flow that a tool runs, and run elsewhere.
func TestRun_NoSession(t *testing.T) {
	app := openCase(t, observed)
	for flow, input := range map[string]string{"talk": "question", "inner": "text"} {
		for res, err := range app.Run(t.Context(), flow, slices.Values([]runtime.Input{runtime.Row(map[string]any{input: "x"})})) {
			if err != nil {
				t.Fatal(err)
			}
			if flow == "inner" {
				if res.Err != nil {
					t.Errorf("flow inner failed: %v", res.Err)
				}
				continue
			}
			needed, ok := errors.AsType[*runtime.NoSessionError](res.Err)
			if !ok || needed.Memory != "notes" || runtime.ErrorCode(res.Err) != runtime.CodeInput || res.Session != "" {
				t.Errorf("got %v", res.Err)
			}
		}
	}
}
