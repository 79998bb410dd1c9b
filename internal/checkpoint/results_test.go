package checkpoint

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// entry encodes rows with the variables "a" and "b".
func entry(rows []*steps.Row, err error) []byte {
	w := NewResultsWriter([]string{"a", "b"}, []int{0, 1}, func(*steps.Error) string { return "timeout" })
	for _, row := range rows {
		w.Add(row)
	}
	return w.Finish(err)
}

func TestResults_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []*steps.Row
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			rows = append(rows, &steps.Row{Values: []any{anyValue(3).Draw(t, "a"), anyValue(3).Draw(t, "b")}})
		}
		got, err := ReadResults(entry(rows, nil))
		if err != nil || got.Err != nil || len(got.Rows) != len(rows) {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, row := range rows {
			if d := cmp.Diff(row.Values, got.Rows[i].Values, sameRecord(), cmpopts.IgnoreFields(chat.Message{}, "ID"), cmp.AllowUnexported(value.DateTime{})); d != "" {
				t.Error(d)
			}
		}
	})
}

func TestResults_Failures(t *testing.T) {
	failed := &steps.Error{Step: "s", Err: &steps.Error{Step: "inner", Err: errors.New("late")}}
	got, err := ReadResults(entry([]*steps.Row{{Values: []any{int64(1), "x"}}, {Values: []any{nil, nil}, Err: failed}}, errors.New("broke")))
	if err != nil || got.Err == nil || got.Err.Error() != "broke" || len(got.Rows) != 2 || got.Rows[1].Err.Error() != failed.Error() {
		t.Fatalf("%+v, %v", got, err)
	}
	if r, ok := errors.AsType[*ReplayedError](got.Rows[1].Err); !ok || r.Code != "timeout" {
		t.Errorf("got %+v", r)
	}
}

func TestResults_MessagesGetNewIDs(t *testing.T) {
	m := message("hello")
	text := entry([]*steps.Row{{Values: []any{m, []any{m}}}}, nil)
	seen := map[string]bool{m.ID: true}
	for range 2 {
		got, err := ReadResults(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{got.Rows[0].Values[0], got.Rows[0].Values[1].([]any)[0]} {
			id := v.(chat.Message).ID
			if id == "" || seen[id] {
				t.Errorf("the id %q is not new", id)
			}
			seen[id] = true
		}
	}
}

func FuzzReadResults(f *testing.F) {
	f.Add(entry([]*steps.Row{{Values: []any{value.NewRecord("T", value.Field{Name: "x", Value: int64(1)}), []any{2.5}}}}, errors.New("x")))
	f.Add(entry([]*steps.Row{{Values: []any{message("hi"), nil}}, {Values: []any{nil, nil}, Err: &steps.Error{Step: "s", Err: errors.New("e")}}}, nil))
	f.Add([]byte(`{"rows":[{"outputs":{"a":{}}},7,{"failed":7}]}`)) // an entry of format 1
	f.Fuzz(func(t *testing.T, text []byte) {
		res, err := ReadResults(text)
		if err == nil && res == nil {
			t.Error("neither results nor an error")
		}
	})
}
