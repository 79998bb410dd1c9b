package tool

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
)

func TestSchema(t *testing.T) {
	item := &spec.CustomType{ID: "Item", Description: "One thing."}
	item.Properties = spec.Properties{{Name: "name", Type: valuetest.Type(t, "text")}, {Name: "parts", Type: valuetest.Type(t, "list[Item]?", item)}}
	vars := []*spec.Variable{}
	for _, v := range [][2]string{{"z", "text"}, {"n", "int?"}, {"f", "float"}, {"b", "boolean"}, {"d", "date"}, {"t", "time"}, {"dt", "datetime"},
		{"img", "image"}, {"l", "list[int]"}, {"o", "list[text?]"}, {"item", "Item"}, {"items", "list[Item]?"}, {"m", "ChatMessage?"}, {"r", "MessageRole?"}} {
		vars = append(vars, &spec.Variable{ID: v[0], Type: valuetest.Type(t, v[1], item)})
	}
	vars[4].Optional = true
	const want = `{"type":"object","properties":{"z":{"type":"string"},"n":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"},` +
		`"d":{"type":"string","format":"date"},"t":{"type":"string","format":"time"},"dt":{"type":"string","format":"date-time"},` +
		`"img":{"type":"string","contentEncoding":"base64"},"l":{"type":"array","items":{"type":"integer"}},` +
		`"o":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}},"item":{"$ref":"#/$defs/Item"},` +
		`"items":{"type":"array","items":{"$ref":"#/$defs/Item"}},"m":{"type":"object","description":"a ChatMessage"},` +
		`"r":{"type":"string","enum":["assistant","chatbot","developer","function","model","system","tool","user"]}},` +
		`"required":["z","f","b","t","dt","img","l","o","item"],"additionalProperties":false,` +
		`"$defs":{"Item":{"description":"One thing.","type":"object","properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#/$defs/Item"}}},"required":["name"],"additionalProperties":false}}}`
	got := Schema(vars)
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	if got := string(Schema(nil)); got != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Error(got)
	}
	check(t, got, `{"z":"","f":1,"b":true,"t":"10:00","dt":"2026-01-01T00:00:00Z","img":"","l":[1],"o":[null],"item":{"name":"a","parts":[{"name":"b"}]}}`, true)
	check(t, got, `{"z":1}`, false)
}

// A strict schema requires all properties; optional ones may be null.
func TestDescribe_Strict(t *testing.T) {
	item := &spec.CustomType{ID: "Item", Properties: spec.Properties{{Name: "name", Type: valuetest.Type(t, "text?")}}}
	vars := []*spec.Variable{{ID: "n", Type: valuetest.Type(t, "int?")}, {ID: "item", Type: valuetest.Type(t, "Item", item)}}
	const want = `{"type":"object","properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]},"item":{"$ref":"#/$defs/Item"}},"required":["n","item"],"additionalProperties":false,` +
		`"$defs":{"Item":{"type":"object","properties":{"name":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["name"],"additionalProperties":false}}}`
	got := Describe(&spec.ToolBase{Strict: true}, vars).Parameters
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	check(t, got, `{"n":null,"item":{"name":null}}`, true)
	check(t, got, `{"item":{"name":"a"}}`, false)
}

// check validates with a third-party JSON schema validator.
func check(t *testing.T, schema json.RawMessage, instance string, valid bool) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(instance)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(value); (err == nil) != valid {
		t.Errorf("%s: %v", instance, err)
	}
}
