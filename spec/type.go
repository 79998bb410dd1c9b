package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Type is a type expression: `text`, `int?`, `list[Order]`, `list[text]?`.
type Type struct {
	Name     string      // a primitive, a domain type or a custom type's id; empty for a list
	Elem     *Type       // the element type of a list
	Optional bool        // the value may be null or unset
	Custom   *CustomType // the custom type that Name names, once linked
}

// Primitives lists the built-in scalar types, in the order that docs show them.
func Primitives() []string {
	return []string{"text", "int", "float", "boolean", "bytes", "file", "image", "audio", "video",
		"date", "datetime", "time", "citation_url", "citation_document"}
}

// DomainTypes lists the built-in record types and MessageRole.
func DomainTypes() []string {
	return []string{"AggregateStats", "ChatContent", "ChatMessage", "Embedding", "MessageRole",
		"RAGChunk", "RAGDocument", "RAGSearchResult", "SearchResult"}
}

// Any is the name of the type that every JSON value fits, null too. validate also puts
// it in place of an unknown element of {element_type: …}, which QType does not check.
const Any = "any"

// BuiltInTypes lists the names of all types that need no declaration.
func BuiltInTypes() []string { return slices.Concat(Primitives(), DomainTypes(), []string{Any}) }

// String is the expression as a document writes it.
func (t Type) String() string {
	s := t.Name
	if t.Elem != nil {
		s = "list[" + t.Elem.String() + "]"
	}
	if t.Optional {
		s += "?"
	}
	return s
}

// IsList reports whether the type is a list.
func (t Type) IsList() bool { return t.Elem != nil }

// Is reports whether the type is the named one; `optional` is ignored.
func (t Type) Is(name string) bool { return t.Elem == nil && t.Name == name }

// IsListOf reports whether the type is a list of the named one.
func (t Type) IsListOf(name string) bool { return t.Elem != nil && t.Elem.Is(name) }

// Same reports whether two types are equal; `optional` at the top is ignored, as QType does.
func (t Type) Same(u Type) bool {
	if t.Elem == nil || u.Elem == nil {
		return t.Elem == nil && u.Elem == nil && t.Name == u.Name
	}
	return t.Elem.Same(*u.Elem) && t.Elem.Optional == u.Elem.Optional
}

// IsPrimitive reports whether the type is a built-in scalar.
func (t Type) IsPrimitive() bool { return t.Elem == nil && slices.Contains(Primitives(), t.Name) }

// IsMedia reports whether values of the type are byte strings.
func (t Type) IsMedia() bool {
	return t.Elem == nil && slices.Contains([]string{"bytes", "file", "image", "audio", "video"}, t.Name)
}

// IsRecord reports whether the type is a custom type or a domain record.
func (t Type) IsRecord() bool {
	return t.Elem == nil && t.Name != "MessageRole" && (t.Custom != nil || slices.Contains(DomainTypes(), t.Name))
}

// TypeError explains why a type expression is invalid.
type TypeError struct {
	Text      string // the expression
	Misplaced bool   // the error is a misplaced `?`
}

// Error names the expression.
func (e *TypeError) Error() string {
	if e.Misplaced {
		return fmt.Sprintf("misplaced ? in %q", e.Text)
	}
	return fmt.Sprintf("%q is not a type expression", e.Text)
}

// ParseType parses a type expression. Lists may nest, and every level may have a ?; the
// validator checks which of them a position allows. The name is not looked up. The
// error is a *TypeError.
func ParseType(text string) (Type, error) {
	t, err := parseType(text, 0)
	if err != nil {
		return Type{}, &TypeError{Text: text, Misplaced: errors.Is(err, errMisplaced)}
	}
	return t, nil
}

var (
	errMisplaced = errors.New("misplaced ?")
	errShape     = errors.New("not a type expression")
)

const maxTypeDepth = 32

func parseType(s string, depth int) (Type, error) {
	if depth > maxTypeDepth {
		return Type{}, errShape
	}
	bare, optional := strings.CutSuffix(s, "?")
	if strings.HasSuffix(bare, "?") {
		return Type{}, errMisplaced
	}
	inner, isList := strings.CutPrefix(bare, "list[")
	if !isList {
		switch {
		case strings.Contains(bare, "?"):
			return Type{}, errMisplaced
		case bare == "" || strings.ContainsAny(bare, "[] \t\n"):
			return Type{}, errShape
		}
		return Type{Name: bare, Optional: optional}, nil
	}
	inner, closed := strings.CutSuffix(inner, "]")
	if !closed {
		return Type{}, errShape
	}
	elem, err := parseType(inner, depth+1)
	if err != nil {
		return Type{}, err
	}
	return Type{Elem: &elem, Optional: optional}, nil
}
