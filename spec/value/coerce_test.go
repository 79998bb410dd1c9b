package value_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestCoerce_Scalars(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	bad := errors.New("rejected")
	tests := []struct {
		typ  string
		in   any
		want any
	}{
		{"text", "a", "a"}, {"text", []byte("é"), "é"}, {"text", []byte{0xff}, bad},
		{"text", int64(1), bad}, {"text", true, bad}, {"text", 1.5, bad}, {"text", json.Number("1"), bad},
		{"text", value.Date{Year: 2024, Month: 1, Day: 2}, bad}, {"text", nil, bad}, {"text?", nil, nil},
		{"int", int64(5), int64(5)}, {"int", 5.0, int64(5)}, {"int", "5", int64(5)}, {"int", " 5 ", int64(5)},
		{"int", "5.0", int64(5)}, {"int", true, int64(1)}, {"int", false, int64(0)}, {"int", json.Number("5"), int64(5)},
		{"int", uint8(7), int64(7)}, {"int", "-3", int64(-3)}, {"int", "9223372036854775807", int64(math.MaxInt64)},
		{"int", 5.5, bad}, {"int", "", bad}, {"int", "1e3", bad}, {"int", "0x1", bad}, {"int", "5.5", bad}, {"int", "5.", bad},
		{"int", json.Number("9223372036854775808"), bad}, {"int", math.Inf(1), bad}, {"int", 9.3e18, bad}, {"int", []any{}, bad},
		{"float", 1.5, 1.5}, {"float", int64(2), 2.0}, {"float", "1.5", 1.5}, {"float", "1e3", 1000.0}, {"float", true, 1.0},
		{"float", "inf", math.Inf(1)}, {"float", "-Infinity", math.Inf(-1)}, {"float", "", bad}, {"float", "0x1p4", bad},
		{"float", float32(0.1), 0.1}, {"float", json.Number("12345678901234567890"), 12345678901234567890.0},
		{"boolean", true, true}, {"boolean", int64(1), true}, {"boolean", 0.0, false}, {"boolean", "YES", true},
		{"boolean", "off", false}, {"boolean", "T", true}, {"boolean", "n", false}, {"boolean", "0", false},
		{"boolean", "maybe", bad}, {"boolean", int64(2), bad}, {"boolean", 0.5, bad},
		{"bytes", "aGk=", []byte("aGk=")}, {"image", []byte{1, 2}, []byte{1, 2}}, {"file", int64(1), bad},
		{"bytes", map[string]any{"base64": "aGk="}, []byte("hi")}, {"bytes", map[string]any{"base64": "?"}, bad},
		{"date", "2024-05-06", value.Date{Year: 2024, Month: 5, Day: 6}},
		{"date", "2024-05-06T00:00:00", value.Date{Year: 2024, Month: 5, Day: 6}},
		{"date", int64(86400), value.Date{Year: 1970, Month: 1, Day: 2}},
		{"date", "2024-05-06T12:00:00", bad}, {"date", int64(86401), bad}, {"date", "06.05.2024", bad}, {"date", true, bad},
		{"date", "2024-02-30", bad},
		{"datetime", "2024-05-06", value.DateTime{Time: noon.Add(-12 * time.Hour)}},
		{"datetime", "2024-05-06 12:00", value.DateTime{Time: noon}},
		{"datetime", "2024-05-06t12:00:00z", value.DateTime{Time: noon, Zoned: true}},
		{"datetime", noon.Unix(), value.DateTime{Time: noon, Zoned: true}},
		{"datetime", "1714996800", value.DateTime{Time: noon, Zoned: true}},
		{"datetime", noon, value.DateTime{Time: noon, Zoned: true}},
		{"datetime", "20240229", bad}, {"datetime", "2024", bad}, {"datetime", "202402", bad}, {"datetime", "86400", value.DateTime{Time: time.Unix(86400, 0).UTC(), Zoned: true}}, {"datetime", " 20241399 ", bad}, {"datetime", "202402291200", bad}, {"date", "20240229", bad}, {"list[datetime]", []any{"20240229"}, bad},
		{"datetime", int64(20240229), value.DateTime{Time: time.Unix(20240229, 0).UTC(), Zoned: true}},
		{"datetime", "20240229.5", value.DateTime{Time: time.Unix(20240229, 500e6).UTC(), Zoned: true}},
		{"datetime", "yesterday", bad}, {"datetime", 1e300, bad}, {"datetime", true, bad},
		{"time", "12:30", value.Time(12*time.Hour + 30*time.Minute)},
		{"time", "12:30:01.5", value.Time(12*time.Hour + 30*time.Minute + 1500*time.Millisecond)},
		{"time", int64(60), value.Time(time.Minute)}, {"time", int64(86400), bad}, {"time", -1.0, bad}, {"time", "25:00", bad},
		{"MessageRole", "user", "user"}, {"MessageRole", "boss", bad},
		{"list[int]", []any{"1", 2.0}, []any{int64(1), int64(2)}}, {"list[int]", []string{"1"}, []any{int64(1)}},
		{"list[int]", "1", bad}, {"list[text?]", []any{nil, "a"}, []any{nil, "a"}}, {"list[int]?", nil, nil},
		{"citation_url", map[string]any{"b": 1, "a": json.Number("2")}, value.NewRecord("", value.Field{Name: "a", Value: int64(2)}, value.Field{Name: "b", Value: int64(1)})},
	}
	for _, tt := range tests {
		got, err := value.Coerce(valuetest.Type(t, tt.typ), tt.in)
		refused := tt.want == any(bad)
		switch {
		case refused && err == nil:
			t.Errorf("%s accepts %#v as %#v", tt.typ, tt.in, got)
		case !refused && err != nil:
			t.Errorf("%s of %#v: %v", tt.typ, tt.in, err)
		case !refused && !value.Equal(got, tt.want):
			t.Errorf("%s of %#v: got %#v, want %#v", tt.typ, tt.in, got, tt.want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n{") {
			t.Errorf("%s of %#v: the error is not one plain line: %s", tt.typ, tt.in, err)
		}
	}
	if nan, err := value.Coerce(valuetest.Type(t, "float"), "nan"); err != nil || !math.IsNaN(nan.(float64)) {
		t.Error("nan is no float:", nan, err)
	}
}

func TestCoerce_Errors(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"sku: text", "price: float", "tags: list[text?]?"})
	order := valuetest.Custom(t, "Order", []string{"id: int", "items: list[Item]", "again: Order?"}, item)
	price := map[string]any{"sku": "a", "price": "abc"}
	fine := map[string]any{"sku": "a", "price": 1}
	tests := []struct {
		typ, json, want string
		in              any
	}{
		{typ: "list[Item]", in: []any{fine, fine, price}, want: `[2].price: expected float, got "abc"`},
		{typ: "Order", in: map[string]any{"id": 1, "items": []any{fine, fine, price}}, want: `items[2].price: expected float, got "abc"`},
		{typ: "Order", json: `{"id":1,"items":[],"again":{"id":"x","items":[]}}`, want: `again.id: expected int, got "x"`},
		{typ: "Order", json: `{"items":[]}`, want: "id: missing, expected int"},
		{typ: "Order", json: `{"id":null,"items":[]}`, want: "id: expected int, got null"},
		{typ: "Order", json: `{"id":1,"items":{}}`, want: "items: expected list[Item], got an object"},
		{typ: "Order", json: `[1,2]`, want: "expected Order, got a list of 2"},
		{typ: "Item", json: `{"sku":"a","price":1,"tags":["x",5]}`, want: "tags[1]: expected text, got 5"},
		{typ: "int", in: strings.Repeat("é", 100), want: `expected int, got "` + strings.Repeat("é", 40) + `…"`},
		{typ: "int", in: "a\nb", want: `expected int, got "a\nb"`},
		{typ: "ChatMessage", json: `{"role":"usr","blocks":[]}`, want: `unknown role "usr", did you mean "user"?`},
		{typ: "ChatMessage", json: `5`, want: "expected ChatMessage, got 5"},
		{typ: "SearchResult", json: `{"content":1,"doc_id":"a","score":"x"}`, want: `score: expected float, got "x"`},
		{typ: "SearchResult", json: `{"content":1,"doc_id":"a","score":1,"rank":2}`, want: `unknown field "rank": SearchResult has content, doc_id, score`},
		{typ: "RAGSearchResult", json: `{"content":{"chunk_id":"c"},"doc_id":"a","score":1}`, want: "content.document_id: missing, expected text"},
		{typ: "Embedding", json: `{"vector":[1,"x"]}`, want: `vector[1]: expected float, got "x"`},
		{typ: "Embedding", json: `{"vector":[],"metadata":3}`, want: "metadata: expected an object, got 3"},
		{typ: "Nothing", in: "x", want: "the type Nothing is not known"},
	}
	for _, tt := range tests {
		in := tt.in
		if tt.json != "" {
			in = valuetest.Parse(t, tt.json)
		}
		_, err := value.Coerce(valuetest.Type(t, tt.typ, item, order), in)
		var coerceErr *value.Error
		if !errors.As(err, &coerceErr) || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.typ, err, tt.want)
		}
	}
}

func TestCoerce_RecordFieldsInOrder(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"b: text", "a: int?", "when: date?"})
	got, err := value.Coerce(valuetest.Type(t, "Item", item), valuetest.Parse(t, `{"unknown":1,"when":"2024-01-02","b":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if s := string(value.JSON(got)); s != `{"b":"x","a":null,"when":"2024-01-02"}` {
		t.Error(s)
	}
	chunk, err := value.Coerce(valuetest.Type(t, "RAGChunk"), map[string]any{"chunk_id": "c", "document_id": "d"})
	if err != nil {
		t.Fatal(err)
	}
	if s := string(value.JSON(chunk)); s != `{"vector":null,"content":null,"metadata":{},"chunk_id":"c","document_id":"d"}` {
		t.Error(s)
	}
}

func TestCoerce_TextToUserMessage(t *testing.T) {
	v, err := value.Coerce(valuetest.Type(t, "ChatMessage"), "Where is my parcel?")
	m, ok := v.(chat.Message)
	if err != nil || !ok || m.Role != chat.User || m.Text() != "Where is my parcel?" || m.ID == "" {
		t.Fatalf("%#v, %v", v, err)
	}
	again, err := value.Coerce(valuetest.Type(t, "ChatMessage"), m)
	if err != nil || again.(chat.Message).ID != m.ID {
		t.Error("a message has lost its id", err)
	}
}

func TestCoerce_Cells(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"n: int"})
	tests := []struct {
		typ  string
		cell value.ParseCell
		want string
	}{
		{"text", "007", `"007"`}, {"text", "", `""`}, {"text?", "", `""`}, {"text", " a ", `" a "`}, {"text", "[1]", `"[1]"`},
		{"int", "007", "7"}, {"int?", "", "null"}, {"int?", "  ", "null"}, {"int", "", "expected int, got \"\""},
		{"float?", "x", `expected float, got "x"`}, {"boolean", "Yes", "true"}, {"date?", "", "null"},
		{"list[int]", "[1, 2]", "[1,2]"}, {"list[int]?", "", "null"}, {"list[text]", "a, b", `expected list[text], got "a, b"`},
		{"Item", `{"n": "3"}`, `{"n":3}`}, {"Item?", "", "null"}, {"Item", "{", `expected Item, got "{"`},
		{"ChatMessage", "hello", `{"role":"user","blocks":[{"type":"text","content":"hello"}]}`},
		{"ChatMessage", "{braces}", `{"role":"user","blocks":[{"type":"text","content":"{braces}"}]}`},
		{"ChatMessage", `{"role":"system","blocks":[]}`, `{"role":"system","blocks":[]}`},
	}
	for _, tt := range tests {
		got, err := value.Coerce(valuetest.Type(t, tt.typ, item), tt.cell)
		s := string(value.JSON(got))
		if err != nil {
			s = err.Error()
		}
		if s != tt.want {
			t.Errorf("%s of cell %q: got %s, want %s", tt.typ, tt.cell, s, tt.want)
		}
	}
}

func TestAssign(t *testing.T) {
	v := &spec.Variable{ID: "n", Type: valuetest.Type(t, "int"), Optional: true}
	for _, in := range []any{nil, value.Unset, value.ParseCell("")} {
		if got, err := value.Assign(v, in); got != nil || err != nil {
			t.Errorf("%v: %v, %v", in, got, err)
		}
	}
	if _, err := value.Assign(&spec.Variable{ID: "n", Type: valuetest.Type(t, "int")}, value.Unset); err == nil || err.Error() != "expected int, got nothing" {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	day := value.Date{Year: 2024, Month: 1, Day: 2}
	tests := []struct {
		in   any
		want string
	}{
		{nil, ""}, {value.Unset, ""}, {"a", "a"}, {true, "true"}, {int64(-7), "-7"}, {1.0, "1.0"}, {0.1, "0.1"},
		{1e16, "1e+16"}, {1e15, "1000000000000000.0"}, {0.00001, "1e-05"}, {math.NaN(), "nan"}, {math.Inf(-1), "-inf"},
		{[]any{"x", int64(1), nil, 1.0}, `["x",1,null,1]`}, {value.NewRecord("T", value.Field{Name: "b", Value: "<&>"}, value.Field{Name: "a", Value: day}), `{"b":"<&>","a":"2024-01-02"}`},
		{chat.Text(chat.Assistant, "hi"), "hi"}, {[]byte("text"), "text"}, {[]byte{0xff}, `{"base64":"/w=="}`},
		{day, "2024-01-02"}, {value.Time(time.Hour), "01:00:00"}, {json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		{value.DateTime{Time: time.Date(2024, 1, 2, 3, 4, 5, 6000, time.FixedZone("x", 3600)), Zoned: true}, "2024-01-02T03:04:05.000006+01:00"},
		{map[string]any{"b": 1, "a": []string{"x"}}, `{"a":["x"],"b":1}`},
	}
	for _, tt := range tests {
		if got := value.Text(tt.in); got != tt.want {
			t.Errorf("%#v: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestToGo(t *testing.T) {
	in := value.NewRecord("T", value.Field{Name: "d", Value: value.Date{Year: 2024, Month: 1, Day: 2}},
		value.Field{Name: "l", Value: []any{value.NewRecord("", value.Field{Name: "n", Value: int64(1)})}},
		value.Field{Name: "m", Value: chat.Text(chat.User, "x")}, value.Field{Name: "u", Value: value.Unset})
	want := map[string]any{"d": "2024-01-02", "l": []any{map[string]any{"n": int64(1)}}, "u": nil,
		"m": map[string]any{"role": "user", "blocks": []any{map[string]any{"type": "text", "content": "x"}}}}
	if diff := cmp.Diff(want, value.ToGo(in)); diff != "" {
		t.Error(diff)
	}
}

// TestParseDateTime_Offsets: an offset is below 24 hours, as in ISO 8601.
func TestParseDateTime_Offsets(t *testing.T) {
	for text, want := range map[string]bool{"2024-02-29T10:00:00+23:59": true, "2024-02-29T10:00:00-12": true, "2024-02-29T10:00:00+24:00": false, "2024-02-29T10:00-24": false} {
		if _, ok := value.ParseDateTime(text); ok != want {
			t.Errorf("%s: %v", text, ok)
		}
	}
}

// TestCoerce_CompactDate checks that a date without separators is not taken for seconds since 1970.
func TestCoerce_CompactDate(t *testing.T) {
	for typ, want := range map[string]string{
		"date":      `expected date with separators, such as 2024-02-29, got "20240229"`,
		"datetime?": `expected datetime with separators, such as 2024-02-29, got "20240229"`,
		"int":       "",
	} {
		_, err := value.Coerce(valuetest.Type(t, typ), "20240229")
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
