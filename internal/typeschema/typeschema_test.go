package typeschema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compile compiles the schema of a type with its definitions. It fails if they are not
// valid JSON Schema (draft 2020-12).
func compile(t *testing.T, style typeschema.Style, typ spec.Type) *jsonschema.Schema {
	t.Helper()
	s := typeschema.New(style)
	o := s.Of(typ)
	if defs := s.Defs(); defs != nil {
		o = append(o, typeschema.Member{Name: "$defs", Value: defs})
	}
	raw, err := json.Marshal(o)
	testkit.Must(t, err)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.AssertContent()
	testkit.Must(t, c.AddResource("type.json", parsed))
	compiled, err := c.Compile("type.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return compiled
}

func accepts(t *testing.T, s *jsonschema.Schema, text string) bool {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	testkit.Must(t, err)
	return s.Validate(v) == nil
}

// customs are a type that contains itself, and one that contains it.
func customs(t *testing.T) []*spec.CustomType {
	node := valuetest.Custom(t, "Node", []string{"name: text", "next: Node?", "weights: list[float?]"})
	node.Description = "An element."
	return []*spec.CustomType{node, valuetest.Custom(t, "Pair", []string{"left: Node", "right: list[Node]?"}, node)}
}

var clients, models = typeschema.Style{Clients: true}, typeschema.Style{}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		style       typeschema.Style
		typ         string
		good, wrong []string
	}{
		{models, "text", []string{`"a"`}, []string{`1`, `null`}},
		{models, "int", []string{`1`, `-9`}, []string{`1.5`, `"1"`}},
		{clients, "int", []string{`9223372036854775807`}, []string{`9223372036854775808`}},
		{models, "float", []string{`1`, `1.5`}, []string{`"1.5"`}},
		{models, "boolean", []string{`true`}, []string{`"true"`, `1`}},
		{models, "date", []string{`"2026-01-31"`}, []string{`"31.1.2026"`}},
		{models, "time", []string{`"12:00:00Z"`}, []string{`"noon"`}},
		{models, "datetime", []string{`"2026-01-31T12:00:00Z"`}, []string{`"2026-01-31"`}},
		{models, "image", []string{`"aGk="`}, []string{`"a!"`, `{"base64": "aGk="}`}},
		{clients, "image", []string{`"data:image/png;base64,aGk="`, `{"base64": "aGk="}`, `{"bytes_base64": "aGk=", "mime": "image/png"}`}, []string{`{"base64": "a"}`, `{}`, `7`}},
		{models, "MessageRole", []string{`"user"`}, []string{`"king"`}},
		{models, "ChatMessage", []string{`{"anything": 1}`}, []string{`"hello"`}},
		{clients, "ChatMessage", []string{`{"role": "user", "blocks": [{"type": "text", "content": "a"}, {"type": "image", "content": {"base64": "aGk="}, "mime_type": null}]}`},
			[]string{`{"role": "user"}`, `{"role": "user", "blocks": [{"type": "text"}]}`, `{"role": "king", "blocks": []}`, `{"role": "user", "blocks": [], "mood": "good"}`}},
		{models, "RAGDocument", []string{`{}`}, []string{`[]`}},
		{models, "list[int]", []string{`[]`, `[1]`}, []string{`1`, `[null]`, `["a"]`}},
		{models, "list[int?]", []string{`[1, null]`}, []string{`["a"]`}},
		{models, "Pair", []string{`{"left": {"name": "a", "weights": [1, null], "next": {"name": "b", "weights": []}}, "right": []}`, `{"left": {"name": "a", "weights": []}}`},
			[]string{`{}`, `{"left": {"name": "a", "weights": []}, "middle": 1}`, `{"left": {"name": "a", "weights": [], "next": {"name": 1, "weights": []}}}`, `{"left": {"name": "a", "weights": []}, "right": null}`}},
		{clients, "Pair", []string{`{"left": {"name": "a", "weights": [], "next": null}, "right": null}`}, []string{`{"left": null}`}},
	} {
		s := compile(t, tt.style, valuetest.Type(t, tt.typ, customs(t)...))
		for _, text := range tt.good {
			if !accepts(t, s, text) {
				t.Errorf("%s %+v rejects %s", tt.typ, tt.style, text)
			}
		}
		for _, text := range tt.wrong {
			if accepts(t, s, text) {
				t.Errorf("%s %+v accepts %s", tt.typ, tt.style, text)
			}
		}
	}
}

// Every type of the language has a valid schema in both styles.
func TestOf_EveryType(t *testing.T) {
	for _, style := range []typeschema.Style{models, clients} {
		for _, name := range spec.BuiltInTypes() {
			compile(t, style, valuetest.Type(t, name))
			compile(t, style, valuetest.Type(t, "list["+name+"?]"))
		}
	}
}

func TestDefs(t *testing.T) {
	s := typeschema.New(typeschema.Style{Refs: "#/components/schemas/"})
	if defs := s.Defs(); defs != nil {
		t.Errorf("definitions without types: %v", defs)
	}
	all := customs(t)
	raw, err := json.Marshal(s.Of(valuetest.Type(t, "Pair", all...)))
	testkit.Must(t, err)
	if string(raw) != `{"$ref":"#/components/schemas/Pair"}` {
		t.Errorf("reference %s", raw)
	}
	defs := s.Defs()
	if len(defs) != 2 || defs[0].Name != "Node" || defs.Get("Pair") == nil || defs.Get("Other") != nil {
		t.Errorf("definitions %v", defs)
	}
	if node, _ := defs.Get("Node").(typeschema.Object); node.Get("description") != "An element." {
		t.Errorf("Node: %v", node)
	}
}

// The properties of an object keep their order, in which models read them.
func TestObject_Order(t *testing.T) {
	vars := valuetest.Variables(t, nil, "z: int", "a: text?", "<b>: float")
	raw, err := json.Marshal(typeschema.New(models).Record(typeschema.Fields(vars)).Get("properties"))
	testkit.Must(t, err)
	if want := `{"z":{"type":"integer"},"a":{"type":"string"},"\u003cb\u003e":{"type":"number"}}`; string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	if _, err := json.Marshal(typeschema.Object{{Name: "a", Value: func() {}}}); err == nil {
		t.Error("a function was encoded")
	}
}
