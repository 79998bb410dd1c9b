package mock_test

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/qtype-dev/qtype/internal/model/mock"
)

// TestInstance checks instances by the schemas that they are made of.
func TestInstance(t *testing.T) {
	for _, text := range []string{
		`{"type":"object","properties":{"a":{"type":"string","minLength":12},"b":{"type":"integer","minimum":3},"c":{"type":"number","exclusiveMinimum":0}},"required":["a","b","c"]}`,
		`{"type":"object","properties":{"list":{"type":"array","minItems":2,"items":{"enum":["x","y"]}},"none":{"type":["null","string"]}},"required":["list"]}`,
		`{"properties":{"kind":{"const":"fixed"},"one":{"oneOf":[{"type":"boolean"},{"type":"integer"}]}},"required":["kind","one"]}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"integer","maximum":-4}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string","maxLength":2}},"required":["b"]}]}`,
		`{"$defs":{"node":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"day":{"type":"string","format":"date"}},"required":["day"]}},"$ref":"#/$defs/node"}`,
		`{"type":"array","minItems":1000000000,"items":{"type":"array","minItems":1000000000}}`,
	} {
		made, err := mock.Instance(json.RawMessage(text), "word")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if len(made) > 1<<20 {
			t.Errorf("%s: %d bytes", text, len(made))
			continue
		}
		var declared jsonschema.Schema
		var v any
		if err := json.Unmarshal([]byte(text), &declared); err != nil {
			t.Fatal(err)
		}
		schema, err := declared.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(made), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil && len(made) < 10_000 {
			t.Errorf("%s gives %s: %v", text, made, err)
		}
	}
}
