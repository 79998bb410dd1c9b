package mockstate_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestState_Differences compares states after calls: the order of rows and the types of numbers do not count.
func TestState_Differences(t *testing.T) {
	start := mockstate.Tables{"orders": {{"number": 7, "state": "new"}, {"number": 8, "state": "new"}}, "log": nil}
	mocks := []*spec.ToolMock{{ID: "cancel", Table: "orders", Where: map[string]any{"number": "$number"}, Set: map[string]any{"state": "cancelled", "why": "$why"}}}
	got, want := mockstate.New(start), mockstate.New(start)
	for _, n := range []any{8, 7.0} {
		if _, err := got.Call(mocks, map[string]any{"number": n, "why": []any{"late", json.Number("1.00")}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []any{7, 8} {
		result, err := want.Call(mocks, map[string]any{"number": n, "why": []any{"late", 1.0}})
		if row, ok := result.(map[string]any); err != nil || !ok || row["state"] != "cancelled" {
			t.Fatal(result, err)
		}
	}
	if d := got.Differences(want); d != nil {
		t.Errorf("equal states differ: %q", d)
	}
	d := got.Differences(mockstate.New(start, mockstate.Tables{"orders": {{"number": 7, "state": "new"}}, "log": {{"x": "<1>"}}}))
	wanted := []string{`log lacks {"x":"<1>"}`, `orders lacks {"number":7,"state":"new"}`, `orders has {"number":7,"state":"cancelled","why":["late",1]}`, `orders has {"number":8,"state":"cancelled","why":["late",1]}`}
	if !slices.Equal(d, wanted) {
		t.Errorf("got  %q\nwant %q", d, wanted)
	}
	var failed *mockstate.CallError
	if _, err := got.Call(mocks, map[string]any{"number": 9}); !errors.As(err, &failed) {
		t.Error("a call without a row is answered")
	}
	if start["orders"][0]["state"] != "new" {
		t.Error("the tables of the file were changed")
	}
}
