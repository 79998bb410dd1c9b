package spec

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// VerbatimText is a text that models read as it is written.
type VerbatimText struct {
	Key  string // its key in the node
	Text string // empty if it is not set
}

// VerbatimTexts returns the texts of a node with the tag verbatim.
func VerbatimTexts(n Node) []VerbatimText {
	v := reflect.Indirect(reflect.ValueOf(n))
	if v.Kind() != reflect.Struct {
		return nil
	}
	var texts []VerbatimText
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("verbatim") == "true" {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			texts = append(texts, VerbatimText{key, v.Field(i).String()})
		}
	}
	return texts
}

// bracedVariable matches a name in single or doubled braces.
var bracedVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}`)
})

// Placeholder is a part of a text that looks like a placeholder of a template.
type Placeholder struct {
	Text string // with its braces
	Name string // the variable
	At   int    // its first byte in the text
}

// Placeholders returns what its author may take for placeholders: names in doubled braces, and
// names of variables in single ones. ${NAME} is not one: the loader replaces it.
func (t VerbatimText) Placeholders(isVariable func(name string) bool) []Placeholder {
	var found []Placeholder
	for _, at := range bracedVariable().FindAllStringSubmatchIndex(t.Text, -1) {
		one := Placeholder{Text: t.Text[at[0]:at[1]], At: at[0]}
		if at[2] >= 0 {
			one.Name = t.Text[at[2]:at[3]]
		} else if one.Name = t.Text[at[4]:at[5]]; !isVariable(one.Name) {
			continue
		}
		if !strings.HasSuffix(t.Text[:at[0]], "$") {
			found = append(found, one)
		}
	}
	return found
}
