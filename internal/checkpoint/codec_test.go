package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// anyValue draws a value that a row may have.
func anyValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Just[any](value.Unset), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.String().AsAny(),
		rapid.Float64().AsAny(), rapid.SampledFrom([]any{math.Inf(1), math.Inf(-1), 2.0, math.Copysign(0, -1), 1e300, json.Number("123456789012345678901234567890")}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return append([]byte{}, b...) }),
		rapid.Just[any](value.Date{Year: 2026, Month: 2, Day: 3}),
		rapid.Just[any](value.Time(13*time.Hour + 5*time.Minute + 250*time.Millisecond)),
		rapid.Map(rapid.String(), func(s string) any { return message(s) }),
	}
	for _, text := range []string{"2026-02-03T04:05:06Z", "2026-02-03T04:05:06.125+02:00", "2026-02-03T04:05:06"} {
		d, _ := value.ParseDateTime(text)
		scalars = append(scalars, rapid.Just[any](d))
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	list := rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(l []any) any { return append([]any{}, l...) })
	record := rapid.Custom(func(t *rapid.T) any {
		var fields []value.Field
		for i, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "names") {
			fields = append(fields, value.Field{Name: name, Value: anyValue(depth-1).Draw(t, fmt.Sprint("field", i))})
		}
		return value.NewRecord(rapid.SampledFrom([]string{"", "Order", "Embedding", "record"}).Draw(t, "type"), fields...)
	})
	return rapid.OneOf(append(scalars, list, record)...)
}

func message(text string) chat.Message {
	m := chat.Text(chat.Assistant, text)
	m.Blocks = append(m.Blocks, chat.Block{Type: "image", Data: []byte{0, 255, 'x'}, MimeType: "image/png"}, chat.Block{Type: "image", Text: "https://a.example/b.png"})
	m = m.With(chat.ToolCall{ID: "call_1", Name: "find", Arguments: `{"a": 1}`})
	m.Origin = &chat.Origin{API: "messages", Server: "https://api.example", Model: "m", Prefix: "p"}
	m.Blocks = append(m.Blocks, chat.Block{Type: chat.ReasoningType, Text: "<hm>", Item: &chat.Item{Field: "thinking", JSON: `{ "s": "\u0061<&" }`}})
	return m
}

// sameRecord compares records by type, names and encoded values.
func sameRecord() cmp.Option {
	return cmp.Comparer(func(a, b *value.Record) bool {
		return a.Type() == b.Type() && cmp.Equal(a.Names(), b.Names()) && bytes.Equal(AppendValue(nil, a), AppendValue(nil, b))
	})
}

func noCode(*steps.Error) string { return "" }

func TestRow_RoundTrip(t *testing.T) {
	sameFloat := cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
	rapid.Check(t, func(t *rapid.T) {
		slots := []int{2, 0}
		enc, dec := RowEncoder{Slots: slots, Code: noCode}, RowDecoder{Slots: slots}
		var rows []*steps.Row
		var texts [][]byte
		for i := range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := &steps.Row{Session: rapid.String().Draw(t, "session"), Number: rapid.Int64().Draw(t, "number"), Values: []any{value.Unset, "not written", value.Unset}}
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
			rows, texts = append(rows, row), append(texts, enc.Append(nil, row))
		}
		for i, want := range rows {
			got := &steps.Row{Values: []any{value.Unset, value.Unset, value.Unset}}
			if err := dec.Decode(texts[i], got); err != nil {
				t.Fatal(err)
			}
			if got.Session != want.Session || got.Number != want.Number || fmt.Sprint(got.Err) != fmt.Sprint(want.Err) {
				t.Fatalf("got %v %q %d, want %v %q %d", got.Err, got.Session, got.Number, want.Err, want.Session, want.Number)
			}
			for _, at := range slots {
				if diff := cmp.Diff(want.Values[at], got.Values[at], sameRecord(), sameFloat, cmp.AllowUnexported(value.DateTime{})); diff != "" {
					t.Fatal(diff)
				}
			}
		}
	})
}

// TestRow_KeepsIdentityOfLists: Collect groups rows by the list that Explode took,
// also if two lists are equal.
func TestRow_KeepsIdentityOfLists(t *testing.T) {
	list, other := []any{"x"}, []any{"x"}
	enc, dec := RowEncoder{Slots: []int{0}}, RowDecoder{Slots: []int{0}}
	var got []*steps.Row
	for _, v := range []any{list, any(value.Unset), list, other} {
		row := &steps.Row{Values: []any{value.Unset}}
		if err := dec.Decode(enc.Append(nil, &steps.Row{Values: []any{v}}), row); err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	first, third, fourth := got[0].Values[0].([]any), got[2].Values[0].([]any), got[3].Values[0].([]any)
	if &first[0] != &third[0] || &first[0] == &fourth[0] {
		t.Error("the identity of lists was lost")
	}
}

func TestRow_RejectsDeepNesting(t *testing.T) {
	text := append([]byte{0, 0, 0}, bytes.Repeat([]byte{tagList, 1}, maxDepth+1)...)
	dec := RowDecoder{Slots: []int{0}}
	if err := dec.Decode(append(text, tagNull), &steps.Row{Values: []any{value.Unset}}); !errors.Is(err, errMalformed) {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeRow(f *testing.F) {
	enc := RowEncoder{Slots: []int{0}, Code: noCode}
	f.Add(enc.Append(nil, &steps.Row{Session: "s", Number: 3, Values: []any{[]any{int64(1), value.NewRecord("R", value.Field{Name: "a", Value: message("x")})}}}))
	f.Add(enc.Append(nil, &steps.Row{Values: []any{value.Unset}, Err: &steps.Error{Step: "a", Err: errors.New("no")}}))
	f.Fuzz(func(_ *testing.T, text []byte) {
		dec := RowDecoder{Slots: []int{0}}
		_ = dec.Decode(text, &steps.Row{Values: []any{value.Unset}})
	})
}
