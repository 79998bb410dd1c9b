package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
)

// TestEncodeBody: a body has the bytes that package json writes, but for the line end.
func TestEncodeBody(t *testing.T) {
	for _, body := range []any{
		map[string]any{},
		map[string]any{"b": 1, "a": "<x>", "c": nil},
		map[string]any{"messages": []json.RawMessage{}, "more": []json.RawMessage(nil)},
		map[string]any{"model": "m", "messages": []json.RawMessage{[]byte(`{"a":1}`), []byte(`"b"`)}, "z": map[string]int{"y": 1}},
		struct{ A string }{"&"},
	} {
		var got, want bytes.Buffer
		testkit.Must(t, encodeBody(&got, body))
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		testkit.Must(t, enc.Encode(body))
		if g, w := bytes.TrimSpace(got.Bytes()), bytes.TrimSpace(want.Bytes()); !bytes.Equal(g, w) {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	}
	if err := encodeBody(new(bytes.Buffer), map[string]any{"a": func() {}}); err == nil {
		t.Error("a function was encoded")
	}
}

// TestSchemaCache: each request has the schemas of its own tools, whatever the last one had.
func TestSchemaCache(t *testing.T) {
	var c schemaCache
	named := func(schemas ...string) (tools []model.Tool) {
		for _, s := range schemas {
			tools = append(tools, model.Tool{Name: "t", Parameters: json.RawMessage(s)})
		}
		return tools
	}
	const whole = `{"type":"object","properties":{"a":{}}}`
	for _, test := range []struct{ given, want []model.Tool }{
		{named(`{}`), named(EmptySchema)},
		{named(whole), named(whole)},
		{named(whole), named(whole)},
		{named(whole, `{"type":"object"}`), named(whole, EmptySchema)},
		{named(`null`, whole), named(EmptySchema, whole)},
		{nil, nil},
	} {
		got := c.complete(test.given)
		for i := range got {
			var g, w any
			testkit.Must(t, json.Unmarshal(got[i].Parameters, &g))
			testkit.Must(t, json.Unmarshal(test.want[i].Parameters, &w))
			if a, b := encoded(t, g), encoded(t, w); a != b {
				t.Errorf("tool %d: %s, want %s", i, a, b)
			}
		}
		if len(got) != len(test.want) {
			t.Errorf("%d tools, want %d", len(got), len(test.want))
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	testkit.Must(t, err)
	return string(raw)
}
