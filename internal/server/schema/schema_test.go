package schema_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contract returns the contract of a flow with inputs and the same outputs, declared as
// "name: type".
func contract(t testing.TB, decls ...string) *schema.Flow {
	item := valuetest.Custom(t, "Item", []string{"name: text", "price: float?", "tags: list[text]", "part: Item?", "photo: bytes?"})
	f := &spec.Flow{}
	f.ID = "shop"
	for _, v := range valuetest.Variables(t, []*spec.CustomType{item}, decls...) {
		f.Inputs = append(f.Inputs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
		f.Outputs = append(f.Outputs, spec.Ref[*spec.Variable]{ID: v.ID, To: v})
	}
	return schema.NewFlow(f)
}

func compile(t *testing.T, o any) *jsonschema.Schema {
	t.Helper()
	raw, err := json.Marshal(o)
	testkit.Must(t, err)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	testkit.Must(t, c.AddResource("flow.json", parsed))
	compiled, err := c.Compile("flow.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return compiled
}

// draw returns a value of a type.
func draw(t *rapid.T, typ spec.Type, depth int) any {
	if typ.Optional && (depth > 2 || rapid.Bool().Draw(t, "null")) {
		return nil
	}
	switch {
	case typ.Elem != nil:
		list := make([]any, rapid.IntRange(0, max(0, 3-depth)).Draw(t, "items"))
		for i := range list {
			list[i] = draw(t, *typ.Elem, depth+1)
		}
		return list
	case typ.Custom != nil:
		var fields []value.Field
		for _, p := range typ.Custom.Properties {
			fields = append(fields, value.Field{Name: p.Name, Value: draw(t, p.Type, depth+1)})
		}
		return value.NewRecord(typ.Custom.ID, fields...)
	case typ.Is("ChatMessage"):
		return drawMessage(t)
	case typ.IsMedia():
		return rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.SampledFrom([][]byte{[]byte("data:,a"), []byte(`{"bytes_base64": "aGk="}`), []byte("{}")})).Draw(t, "bytes")
	}
	switch typ.Name {
	case "int":
		return rapid.Int64().Draw(t, "int")
	case "float":
		return rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "float")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "date":
		return coerce(t, typ, rapid.StringMatching(`20[0-9]{2}-0[1-9]-[12][0-8]`).Draw(t, "date"))
	case "datetime":
		return coerce(t, typ, rapid.StringMatching(`20[0-9]{2}-0[1-9]-[12][0-8]T1[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{6})?(Z|\+0[0-9]:30)`).Draw(t, "datetime"))
	case "time":
		return coerce(t, typ, rapid.StringMatching(`1[0-9]:[0-5][0-9]:[0-5][0-9]`).Draw(t, "time"))
	case "MessageRole":
		return coerce(t, typ, string(rapid.SampledFrom(chat.Roles()).Draw(t, "role")))
	}
	return rapid.String().Draw(t, "text")
}

func coerce(t *rapid.T, typ spec.Type, text string) any {
	v, err := value.Coerce(typ, text)
	testkit.Must(t, err)
	return v
}

func drawMessage(t *rapid.T) chat.Message {
	m := chat.Message{ID: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "id"), Role: rapid.SampledFrom(chat.Roles()).Draw(t, "role")}
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		if rapid.Bool().Draw(t, "is text") || m.Role == chat.System || m.Role == chat.Developer {
			m.Blocks = append(m.Blocks, chat.Block{Type: "text", Text: rapid.String().Draw(t, "text")})
		} else {
			m.Blocks = append(m.Blocks, chat.Block{Type: "image", MimeType: "image/png", Data: append([]byte("\x89PNG\r\n\x1a\n"), rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "image")...)})
		}
	}
	return m
}

var everyType = []string{"a: text", "b: int", "c: float", "d: boolean", "e: bytes", "f: date", "g: datetime", "h: time", "i: ChatMessage", "j: MessageRole",
	"k: list[text]", "l: list[int?]", "m: Item", "n: list[Item]", "o: text?", "p: Item?", "q: file?", "r/~: int"}

// A result validates against the schema of results, and can be sent as a request: it
// validates against the schema of requests, and decodes to the same values.
func TestFlow_RoundTrip(t *testing.T) {
	f := contract(t, everyType...)
	results, requests := compile(t, f.OutputSchema()), compile(t, f.InputSchema())
	rapid.Check(t, func(t *rapid.T) {
		values := make([]any, len(f.Outputs))
		for i, v := range f.Outputs {
			values[i] = draw(t, v.Type, 0)
		}
		text := "{" + string(f.AppendOutputs(nil, values)) + "}"
		parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		testkit.Must(t, err)
		if err := results.Validate(parsed); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := requests.Validate(parsed); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		body, err := schema.ParseBody([]byte(text))
		testkit.Must(t, err)
		rows, err := f.Rows(body)
		testkit.Must(t, err)
		got, wrong := f.Decode(rows[0].Record, "", nil)
		if len(wrong) > 0 {
			t.Fatalf("%v\n%s", wrong, text)
		}
		again := make([]any, len(f.Inputs))
		for i, v := range f.Inputs {
			again[i] = got[v.ID]
		}
		if back := "{" + string(f.AppendOutputs(nil, again)) + "}"; back != text {
			t.Fatalf("sent %s\n got %s", text, back)
		}
		if string(value.JSON(f.Record(values))) != text {
			t.Fatalf("Record differs from %s", text)
		}
	})
}

// The example of a flow is a valid request.
func TestFlow_Example(t *testing.T) {
	f := contract(t, everyType...)
	example := f.Example()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(example))
	testkit.Must(t, err)
	if err := compile(t, f.InputSchema()).Validate(parsed); err != nil {
		t.Errorf("%v\n%s", err, example)
	}
	body, err := schema.ParseBody(example)
	testkit.Must(t, err)
	rows, err := f.Rows(body)
	testkit.Must(t, err)
	if _, wrong := f.Decode(rows[0].Record, "", nil); len(wrong) > 0 {
		t.Errorf("%v\n%s", wrong, example)
	}
}
