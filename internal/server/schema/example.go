package schema

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
)

// Example returns a request with a value for each required input.
func (f *Flow) Example() []byte {
	o := object{}
	for _, v := range f.Inputs {
		if !v.IsOptional() {
			o = append(o, typeschema.Member{Name: v.ID, Value: exampleOf(v.Type, 0)})
		}
	}
	raw, err := json.Marshal(o)
	if err != nil { // objects, lists and texts always encode
		return []byte("{}")
	}
	return raw
}

// examples are the values of primitive types.
var examples = map[string]any{"int": 1, "float": 1.5, "boolean": true, "date": "2026-01-31", "datetime": "2026-01-31T12:00:00Z", "time": "12:00:00",
	"ChatMessage": "Hello", "MessageRole": "user"}

// exampleOf returns a value of a type. depth ends the recursion of types that contain
// themselves.
func exampleOf(t spec.Type, depth int) any {
	switch {
	case depth > 4:
		return nil
	case t.Elem != nil:
		return []any{exampleOf(*t.Elem, depth+1)}
	case t.Custom != nil:
		o := object{}
		for _, p := range t.Custom.Properties {
			if !p.Type.Optional {
				o = append(o, typeschema.Member{Name: p.Name, Value: exampleOf(p.Type, depth+1)})
			}
		}
		return o
	case examples[t.Name] != nil:
		return examples[t.Name]
	case t.IsRecord():
		return object{}
	}
	return "text"
}
