package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// person returns a recursive record type.
func person(t testing.TB) *spec.CustomType {
	return valuetest.Custom(t, "Person", []string{"name: text", "age: int?", "friends: list[Person]", "photo: image?", "born: date?"})
}

// drawType draws a type expression.
func drawType(t *rapid.T, custom *spec.CustomType, depth int) spec.Type {
	optional := rapid.Bool().Draw(t, "optional")
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "list") == 0 {
		elem := drawType(t, custom, depth-1)
		return spec.Type{Elem: &elem, Optional: optional}
	}
	name := rapid.SampledFrom(append(append(spec.Primitives(), spec.DomainTypes()...), "Person")).Draw(t, "name")
	out := spec.Type{Name: name, Optional: optional}
	if name == "Person" {
		out.Custom = custom
	}
	return out
}

// drawValue draws a value of a type.
func drawValue(t *rapid.T, typ spec.Type, depth int) any {
	if typ.Optional && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	if typ.Elem != nil {
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			out = append(out, drawValue(t, *typ.Elem, depth-1))
		}
		return out
	}
	if v, ok := drawScalar(t, typ.Name); ok {
		return v
	}
	return drawRecord(t, typ, depth)
}

func drawScalar(t *rapid.T, name string) (any, bool) {
	text := rapid.String()
	switch name {
	case "text":
		return text.Draw(t, "text"), true
	case "int":
		return rapid.Int64().Draw(t, "int"), true
	case "float":
		return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 5, 1e21, 1e-7})).Draw(t, "float"), true
	case "boolean":
		return rapid.Bool().Draw(t, "bool"), true
	case "bytes", "file", "image", "audio", "video":
		return rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(text, func(s string) []byte { return []byte(s) })).Draw(t, "bytes"), true
	case "date":
		return drawTime(t).Date(), true
	case "datetime":
		return drawTime(t), true
	case "time":
		return value.Time(rapid.Int64Range(0, int64(24*time.Hour)-1).Draw(t, "time")), true
	case "MessageRole":
		return string(rapid.SampledFrom(chat.Roles()).Draw(t, "role")), true
	case "citation_url", "citation_document":
		if v := drawJSON(t, 2); v != nil {
			return v, true
		}
		return "null needs an optional type", true
	case "any":
		return drawJSON(t, 2), true
	}
	return nil, false
}

func drawTime(t *rapid.T) value.DateTime {
	at := time.Unix(rapid.Int64Range(-62135596800+86400, 253402300799-86400).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanos")).UTC()
	if rapid.Bool().Draw(t, "zoned") {
		offset := rapid.IntRange(-14*60, 14*60).Draw(t, "offset") * 60
		return value.DateTime{Time: at.In(time.FixedZone("", offset)), Zoned: true}
	}
	return value.DateTime{Time: at}
}

// drawJSON draws a free-form JSON value.
func drawJSON(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return rapid.Float64Range(1e-3, 1e3).Filter(func(f float64) bool { return f != math.Trunc(f) }).Draw(t, "float")
	case 4:
		if depth > 0 {
			return rapid.Custom(func(t *rapid.T) any { return drawJSON(t, depth-1) }).Draw(t, "item")
		}
	case 5:
		out := []any{}
		for range rapid.IntRange(0, depth).Draw(t, "len") {
			out = append(out, drawJSON(t, depth-1))
		}
		return out
	case 6:
		return drawObject(t, depth)
	case 7:
		return json.Number(rapid.StringMatching(`-?[1-9][0-9]{20,40}`).Draw(t, "big"))
	}
	return rapid.String().Draw(t, "text")
}

func drawObject(t *rapid.T, depth int) *value.Record {
	r := value.NewRecord("")
	for range rapid.IntRange(0, max(depth, 0)).Draw(t, "fields") {
		r = r.With(rapid.String().Draw(t, "key"), drawJSON(t, depth-1))
	}
	return r
}

func drawRecord(t *rapid.T, typ spec.Type, depth int) any {
	text := func(name string) value.Field { return value.Field{Name: name, Value: rapid.String().Draw(t, name)} }
	of := func(name string, typ spec.Type) value.Field {
		return value.Field{Name: name, Value: drawValue(t, typ, depth-1)}
	}
	float := spec.Type{Name: "float"}
	vector := spec.Type{Elem: &float}
	anything := spec.Type{Name: "any"}
	meta := func() value.Field { return value.Field{Name: "metadata", Value: drawObject(t, 2)} }
	kind := value.Field{Name: "type", Value: rapid.SampledFrom(spec.Primitives()).Draw(t, "kind")}
	int64s := spec.Type{Name: "int"}
	switch typ.Name {
	case "ChatMessage":
		return drawMessage(t)
	case "ChatContent":
		return value.NewRecord(typ.Name, kind, of("content", anything), of("mime_type", spec.Type{Name: "text", Optional: true}))
	case "Embedding":
		return value.NewRecord(typ.Name, of("vector", vector), of("content", anything), meta())
	case "RAGDocument":
		return value.NewRecord(typ.Name, of("content", anything), text("file_id"), text("file_name"), of("uri", spec.Type{Name: "text", Optional: true}), meta(), kind)
	case "RAGChunk":
		vector.Optional = true
		return value.NewRecord(typ.Name, of("vector", vector), of("content", anything), meta(), text("chunk_id"), text("document_id"))
	case "SearchResult":
		return value.NewRecord(typ.Name, of("content", anything), text("doc_id"), of("score", float))
	case "RAGSearchResult":
		return value.NewRecord(typ.Name, of("content", spec.Type{Name: "RAGChunk"}), text("doc_id"), of("score", float))
	case "AggregateStats":
		return value.NewRecord(typ.Name, of("num_successful", int64s), of("num_failed", int64s), of("num_total", int64s))
	}
	var fields []value.Field
	for _, p := range typ.Custom.Properties {
		if p.Type.IsListOf("Person") && depth <= 0 {
			fields = append(fields, value.Field{Name: p.Name, Value: []any{}})
			continue
		}
		fields = append(fields, of(p.Name, p.Type))
	}
	return value.NewRecord(typ.Name, fields...)
}

func drawMessage(t *rapid.T) chat.Message {
	m := chat.Message{Role: rapid.SampledFrom(chat.Roles()).Draw(t, "role"), Name: rapid.SampledFrom([]string{"", "Ann"}).Draw(t, "name")}
	for range rapid.IntRange(0, 2).Draw(t, "blocks") {
		if rapid.Bool().Draw(t, "media") {
			m.Blocks = append(m.Blocks, chat.Block{Type: "image", Data: append([]byte{1}, rapid.SliceOf(rapid.Byte()).Draw(t, "data")...), MimeType: "image/png"})
			continue
		}
		m.Blocks = append(m.Blocks, chat.Block{Type: "text", Text: rapid.String().Draw(t, "text")})
	}
	return m
}

// same is like Equal but ignores ids of messages, which JSON omits, and NaN.
func same(a, b any) bool { return string(value.JSON(a)) == string(value.JSON(b)) && sameKind(a, b) }

func sameKind(a, b any) bool {
	switch a := a.(type) {
	case chat.Message, float64:
		return true
	case []any:
		for i := range a {
			if !sameKind(a[i], b.([]any)[i]) {
				return false
			}
		}
		return true
	case *value.Record:
		for name, x := range a.All() {
			y, ok := b.(*value.Record).Get(name)
			if !ok || !sameKind(x, y) {
				return false
			}
		}
		return a.Type() == b.(*value.Record).Type()
	}
	return value.Equal(a, b)
}

func TestJSON_RoundTrip(t *testing.T) {
	person := person(t)
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t, person, 3)
		v := drawValue(t, typ, 3)
		text := string(value.JSON(v))
		if !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %s", text)
		}
		raw, err := value.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		back, err := value.Coerce(typ, raw)
		if err != nil {
			t.Fatalf("%s of %s: %v", typ, text, err)
		}
		if !same(v, back) {
			t.Fatalf("%s: %s came back as %s", typ, text, value.JSON(back))
		}
		if again, err := value.Coerce(typ, back); err != nil || !same(again, back) {
			t.Fatalf("%s: coercing twice changes %s: %v", typ, text, err)
		}
	})
}

func TestParse_KeepsOrderAndDigits(t *testing.T) {
	const text = `{"z": 1, "a": [1.50, 1e3, 12345678901234567890123, -0.0], "z": {"k": "\u00e9\ud83d\ude00\ud800"}}`
	const want = `{"z":{"k":"é😀` + "\uFFFD" + `"},"a":[1.5,1000,12345678901234567890123,-0.0]}`
	if got := string(value.JSON(valuetest.Parse(t, text))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParse_Errors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "line 1, column 1: expected a value, found the end of the text"},
		{`{"a": 1,}`, `line 1, column 9: expected a key in quotes, found '}'`},
		{"{\n  \"é\": tru\n}", `line 2, column 8: expected a value, found 't'`},
		{`[1 2]`, `line 1, column 4: expected , or ], found '2'`},
		{`{"a" 1}`, `line 1, column 6: expected :, found '1'`},
		{`"abc`, "line 1, column 5: the text in quotes does not end"},
		{`"\x"`, `line 1, column 2: \x is not an escape`}, {`"\é"`, `line 1, column 2: \é is not an escape`},
		{"\"\\\n\"", `line 1, column 2: a backslash before U+000A is not an escape`},
		{"\"a\nb\"", `line 1, column 3: a text holds the control character '\n': write it as an escape`},
		{"01", "line 1, column 1: a number does not begin with 0"}, {"1.", "line 1, column 3: expected a digit, found the end of the text"},
		{"NaN", "line 1, column 1: expected a value, found 'N'"}, {"1 2", "line 1, column 3: there is more after the value"},
		{strings.Repeat("[", 2000), "line 1, column 1001: objects and lists nest deeper than 1000"},
	}
	for _, tt := range tests {
		_, err := value.Parse(tt.text)
		var syntax *value.SyntaxError
		if !errors.As(err, &syntax) || err.Error() != tt.want {
			t.Errorf("%.40q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestParsePrefix_Lenient(t *testing.T) {
	const text = "{\"a\": [NaN, -Infinity, Infinity], \"b\": \"x\ny\"} and so on"
	v, n, err := value.ParsePrefix(text)
	if err != nil || text[n:] != " and so on" || string(value.JSON(v)) != `{"a":["NaN","-Infinity","Infinity"],"b":"x\ny"}` {
		t.Errorf("%s, %d, %v", value.JSON(v), n, err)
	}
}

func TestParse_ManyKeys(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		b.WriteString(`,"k` + string(value.JSON(i)) + `":1`)
	}
	r := valuetest.Parse(t, "{"+b.String()[1:]+"}").(*value.Record)
	if r.Len() != 100_000 {
		t.Error(r.Len())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,null,true,"x"]}`, `"\ud83d\ude00"`, `-0.0e+5`, ` [ ] `, "NaN", `{"a":1,"a":2}`, "\"\xff\"", `{"base64":"aGk="}`} {
		f.Add(s)
	}
	types := []string{"text", "int?", "float", "boolean", "bytes", "date", "datetime", "time", "list[text]", "ChatMessage",
		"RAGChunk", "Embedding", "MessageRole", "citation_url", "AggregateStats", "list[ChatContent]"}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := value.Parse(text)
		var std any
		stdErr := json.Unmarshal([]byte(text), &std)
		var tooBig *json.UnmarshalTypeError
		if (err == nil) != (stdErr == nil) && !errors.As(stdErr, &tooBig) && !strings.Contains(err.Error(), "nest deeper") {
			t.Fatalf("got %v, encoding/json returns %v", err, stdErr)
		}
		_, n, _ := value.ParsePrefix(text)
		if n < 0 || n > len(text) {
			t.Fatal(n)
		}
		if err != nil {
			v = value.ParseCell(strings.ToValidUTF8(text, "?"))
		}
		for _, name := range types {
			x, err := value.Coerce(valuetest.Type(t, name), v)
			if err != nil {
				if err.Error() == "" || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%q", err)
				}
				continue
			}
			again, err := value.Parse(string(value.JSON(x)))
			if err != nil {
				t.Fatalf("%s: JSON of it is not JSON: %v", name, err)
			}
			back, err := value.Coerce(valuetest.Type(t, name), again)
			if err != nil || !same(x, back) {
				t.Fatalf("%s: %s came back as %s: %v", name, value.JSON(x), value.JSON(back), err)
			}
		}
	})
}
