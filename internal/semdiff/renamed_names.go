package semdiff

import (
	"regexp"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// Patterns of variable names in texts: {name} in a template, :name in a query, name
// in an expression.
var (
	inTemplate   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\s*([^{}\s]+)\s*\}`) })
	inQuery      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:([\pL_][\pL\pN_]*)`) })
	inExpression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([\pL_][\pL\pN_]*)`) })
)

// namesInSyntax returns the pattern of variable names in texts of a syntax, by
// the tag `syntax` of a field; nil for other texts.
func namesInSyntax(syntax string) *regexp.Regexp {
	switch syntax {
	case "template":
		return inTemplate()
	case "sql":
		return inQuery()
	}
	return nil
}

// renameInText replaces the names of renamed variables in a text of the old
// document, so that renaming a variable does not change the text.
func (r *reader) renameInText(text string, names *regexp.Regexp) string {
	if len(r.variableNames) == 0 || names == nil {
		return text
	}
	var out []byte
	rest := 0
	for _, m := range names.FindAllStringSubmatchIndex(text, -1) {
		if renamed, ok := r.variableNames[text[m[2]:m[3]]]; ok {
			out = append(append(out, text[rest:m[2]]...), renamed...)
			rest = m[3]
		}
	}
	return string(append(out, text[rest:]...))
}

// renamedVariables returns the new names of the renamed variables of a flow.
func (r *reader) renamedVariables(f *spec.Flow) map[string]string {
	words := map[string]string{}
	if f == nil {
		return words
	}
	for _, v := range f.Variables {
		if renamed, ok := r.renamed[v]; ok {
			words[v.ID] = renamed
		}
	}
	return words
}
