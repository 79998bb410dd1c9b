package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/spec"
)

// typeNoun is the noun for a Go type in messages, without an article.
type typeNoun struct {
	goType reflect.Type
	noun   string
}

// typeNouns lists the Go types that references can refer to.
func typeNouns() []typeNoun {
	return []typeNoun{
		{reflect.TypeFor[spec.Auth](), "auth"},
		{reflect.TypeFor[*spec.AWSAuth](), "auth of type aws"},
		{reflect.TypeFor[*spec.DocumentIndex](), "document index"},
		{reflect.TypeFor[*spec.EmbeddingModel](), "embedding model"},
		{reflect.TypeFor[*spec.Flow](), "flow"},
		{reflect.TypeFor[spec.Index](), "index"},
		{reflect.TypeFor[*spec.Memory](), "memory"},
		{reflect.TypeFor[*spec.Model](), "chat model"},
		{reflect.TypeFor[spec.ModelEntity](), "model"},
		{reflect.TypeFor[spec.Step](), "step"},
		{reflect.TypeFor[*spec.Store](), "store"},
		{reflect.TypeFor[spec.Tool](), "tool"},
		{reflect.TypeFor[*spec.Variable](), "variable"},
		{reflect.TypeFor[*spec.VectorIndex](), "vector index"},
	}
}

// lookupNoun returns the noun for a Go type, or otherwise if the table does not have it.
func lookupNoun(t reflect.Type, otherwise string) string {
	nouns := typeNouns()
	if i := slices.IndexFunc(nouns, func(n typeNoun) bool { return n.goType == t }); i >= 0 {
		return nouns[i].noun
	}
	return otherwise
}

// targetNoun returns the noun for the entities that a reference can refer to.
func targetNoun(target reflect.Type) string { return lookupNoun(target, "component") }

// kindNoun returns the noun for an entity, as specific as the types of references.
func kindNoun(e spec.Entity) string {
	if auth, ok := e.(spec.Auth); ok {
		return "auth of type " + spec.TypeName(auth)
	}
	return lookupNoun(reflect.TypeOf(e), string(e.Kind()))
}

// an adds the indefinite article to a noun.
func an(noun string) string {
	vowels := "aeio"
	if len(noun) > 1 && unicode.IsUpper(rune(noun[0])) && unicode.IsUpper(rune(noun[1])) {
		vowels = "AEFHILMNORSX" // an abbreviation is pronounced letter by letter: an MCPTool
	}
	if noun != "" && strings.ContainsRune(vowels, rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// joinNames quotes and joins names. It replaces all but the first few by their number.
func joinNames(names []string) string {
	const maxNames = 5
	quoted := make([]string, 0, maxNames+1)
	for i, name := range names {
		if i == maxNames {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-maxNames))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
