package runtime

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// anyValue draws a value that a row may hold.
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
	m.ToolCalls = []chat.ToolCall{{ID: "call_1", Name: "find", Arguments: `{"a": 1}`}}
	return m
}

// TestValuesAreReadBackAsTheyWere: of whatever kind, whatever type is declared;
// only messages get ids of their own.
func TestValuesAreReadBackAsTheyWere(t *testing.T) {
	sameRecord := cmp.Comparer(func(a, b *value.Record) bool {
		return a.Type() == b.Type() && cmp.Equal(a.Names(), b.Names()) && string(appendValue(nil, a)) == string(appendValue(nil, b))
	})
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(3).Draw(t, "value")
		text := appendValue(nil, v)
		if !json.Valid(text) {
			t.Fatalf("no JSON: %s", text)
		}
		parsed, err := value.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeValue(parsed)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d := cmp.Diff(v, back, sameRecord, cmpopts.IgnoreFields(chat.Message{}, "ID"), cmp.AllowUnexported(value.DateTime{})); d != "" {
			t.Errorf("%s\n%s", text, d)
		}
	})
}

// FuzzReadEntry: no entry, however damaged, makes a panic.
func FuzzReadEntry(f *testing.F) {
	f.Add(`{"rows":[{"outputs":{"a":{"record":"T","fields":{"x":1}}}},{"failed":["s"],"error":"e"}],"error":"x"}`)
	f.Add(`{"rows":[{"outputs":{"a":{"message":{"role":"user","blocks":[]}}}}]}`)
	f.Add(`{"rows":[{"outputs":{"a":{}}},7,{"failed":7}]}`)
	f.Fuzz(func(t *testing.T, entry string) {
		res, err := readEntry([]byte(entry), []port{{name: "a"}})
		if err == nil && res == nil {
			t.Error("neither a result nor an error")
		}
	})
}
