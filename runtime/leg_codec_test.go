package runtime

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// TestRowsAreReadBackAsTheyWere: values of whatever kind, messages with their ids,
// and why a row failed.
func TestRowsAreReadBackAsTheyWere(t *testing.T) {
	sameRecord := cmp.Comparer(func(a, b *value.Record) bool {
		return a.Type() == b.Type() && cmp.Equal(a.Names(), b.Names()) && string(appendValue(nil, a)) == string(appendValue(nil, b))
	})
	sameFloat := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
	rapid.Check(t, func(t *rapid.T) {
		slots := []int{2, 0}
		enc, dec := rowEncoder{slots: slots}, rowDecoder{slots: slots}
		var rows []*steps.Row
		var texts [][]byte
		for i := range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := &steps.Row{Session: rapid.String().Draw(t, "session"), Number: rapid.Int64().Draw(t, "number"), Values: []any{value.Unset, "not kept", value.Unset}}
			for _, at := range slots {
				row.Values[at] = anyValue(2).Draw(t, fmt.Sprint("value", i))
				if i > 0 && rapid.Bool().Draw(t, "again") {
					row.Values[at] = rows[i-1].Values[at]
				}
			}
			if path := rapid.SliceOfN(rapid.StringMatching(`[a-z]+`), 0, 3).Draw(t, "path"); rapid.Bool().Draw(t, "failed") {
				err := errors.New(rapid.String().Draw(t, "reason"))
				for _, step := range path {
					err = &steps.Error{Step: step, Err: err}
				}
				row.Err = &steps.Error{Step: "outer", Err: err}
			}
			rows, texts = append(rows, row), append(texts, enc.row(nil, row))
		}
		for i, want := range rows {
			got := &steps.Row{Values: []any{value.Unset, value.Unset, value.Unset}}
			if err := dec.row(texts[i], got); err != nil {
				t.Fatal(err)
			}
			if got.Session != want.Session || got.Number != want.Number || fmt.Sprint(got.Err) != fmt.Sprint(want.Err) {
				t.Fatalf("got %v %q %d, want %v %q %d", got.Err, got.Session, got.Number, want.Err, want.Session, want.Number)
			}
			for _, at := range slots {
				if diff := cmp.Diff(want.Values[at], got.Values[at], sameRecord, sameFloat, cmp.AllowUnexported(value.DateTime{})); diff != "" {
					t.Fatal(diff)
				}
			}
		}
	})
}

// TestAKeptFailureHasItsCode: for counting and for --errors.
func TestAKeptFailureHasItsCode(t *testing.T) {
	for want, err := range map[string]*steps.Error{
		"http_429": {Step: "a", Err: &steps.Error{Step: "b", Err: &model.Error{Model: "m", Status: 429}}},
		"timeout":  {Step: "a", Err: &TimeoutError{}},
		"input":    {Err: errors.New("no")},
		"failed":   {Step: "a", Err: errors.New("no")},
	} {
		enc, dec, got := rowEncoder{}, rowDecoder{}, &steps.Row{}
		if e := dec.row(enc.row(nil, &steps.Row{Err: err}), got); e != nil {
			t.Fatal(e)
		}
		if ErrorCode(got.Err) != want || got.Err.Error() != err.Error() {
			t.Errorf("got %s: %v, want %s: %v", ErrorCode(got.Err), got.Err, want, err)
		}
	}
}

// TestListsOfOneMakerStayOne: Collect tells rows apart by the list that Explode
// took, also where two lists have one content.
func TestListsOfOneMakerStayOne(t *testing.T) {
	list, other := []any{"x"}, []any{"x"}
	enc, dec := rowEncoder{slots: []int{0}}, rowDecoder{slots: []int{0}}
	var got []*steps.Row
	for _, v := range []any{list, any(value.Unset), list, other} {
		row := &steps.Row{Values: []any{value.Unset}}
		if err := dec.row(enc.row(nil, &steps.Row{Values: []any{v}}), row); err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	first, third, fourth := got[0].Values[0].([]any), got[2].Values[0].([]any), got[3].Values[0].([]any)
	if &first[0] != &third[0] || &first[0] == &fourth[0] {
		t.Error("lists were mixed up")
	}
}

// FuzzKeptRow: whatever a journal holds, reading it ends in a row or an error.
func FuzzKeptRow(f *testing.F) {
	enc := rowEncoder{slots: []int{0}}
	f.Add(enc.row(nil, &steps.Row{Session: "s", Number: 3, Values: []any{[]any{int64(1), value.NewRecord("R", value.Field{Name: "a", Value: message("x")})}}}))
	f.Add(enc.row(nil, &steps.Row{Values: []any{value.Unset}, Err: &steps.Error{Step: "a", Err: errors.New("no")}}))
	f.Fuzz(func(t *testing.T, text []byte) {
		dec := rowDecoder{slots: []int{0}}
		_ = dec.row(text, &steps.Row{Values: []any{value.Unset}})
	})
}
