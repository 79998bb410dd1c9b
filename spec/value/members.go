package value

import "github.com/qtype-dev/qtype/spec"

// Member is a field of a record type.
type Member struct {
	Name string    // the field's name
	Type spec.Type // its type; spec.Any for free-form content
}

// Members returns the fields of a custom type or of a domain type, in order. It returns
// nil for types whose values are not records with fixed fields, as ChatMessage.
func Members(t spec.Type) []Member {
	if t.Elem != nil {
		return nil
	}
	var all []Member
	if t.Custom != nil {
		for _, p := range t.Custom.Properties {
			all = append(all, Member{p.Name, p.Type})
		}
		return all
	}
	for _, m := range members(t.Name) {
		all = append(all, Member{m.name, m.typ})
	}
	return all
}
