package validate

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/spec"
)

// noun is what a kind of reference asks for, in a user's words, without an article.
func noun(wants reflect.Type) string {
	switch wants {
	case reflect.TypeFor[spec.Auth]():
		return "auth"
	case reflect.TypeFor[*spec.AWSAuth]():
		return "auth of type aws"
	case reflect.TypeFor[*spec.DocumentIndex]():
		return "document index"
	case reflect.TypeFor[*spec.EmbeddingModel]():
		return "embedding model"
	case reflect.TypeFor[*spec.Flow]():
		return "flow"
	case reflect.TypeFor[spec.Index]():
		return "index"
	case reflect.TypeFor[*spec.Memory]():
		return "memory"
	case reflect.TypeFor[*spec.Model]():
		return "chat model"
	case reflect.TypeFor[spec.ModelEntity]():
		return "model"
	case reflect.TypeFor[spec.Step]():
		return "step"
	case reflect.TypeFor[*spec.Store]():
		return "store"
	case reflect.TypeFor[spec.Tool]():
		return "tool"
	case reflect.TypeFor[*spec.Variable]():
		return "variable"
	case reflect.TypeFor[*spec.VectorIndex]():
		return "vector index"
	}
	return "component"
}

// nounOf is what an entity is, as exactly as references tell entities apart.
func nounOf(e spec.Entity) string {
	switch e := e.(type) {
	case *spec.EmbeddingModel:
		return "embedding model"
	case *spec.Model:
		return "chat model"
	case *spec.DocumentIndex:
		return "document index"
	case *spec.VectorIndex:
		return "vector index"
	case spec.Auth:
		return "auth of type " + spec.TypeName(e)
	}
	return string(e.Kind())
}

// an puts the indefinite article before a noun.
func an(noun string) string {
	vowels := "aeio"
	if len(noun) > 1 && unicode.IsUpper(rune(noun[0])) && unicode.IsUpper(rune(noun[1])) {
		vowels = "AEFHILMNORSX" // an abbreviation is spelled out: an MCPTool
	}
	if noun != "" && strings.ContainsRune(vowels, rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// joinNames lists the first of some names, quoted.
func joinNames(names []string) string {
	const most = 5
	quoted := make([]string, 0, most+1)
	for i, name := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
