package validate

import (
	"regexp"
	"strings"
	"sync"
)

// typeForms are forms of lists and optional types in other languages: text[], List[str],
// Array<text>, Optional[text], text | None, and a list without its bracket.
var typeForms = sync.OnceValue(func() []typeForm {
	form := func(pattern, before, after string) typeForm {
		return typeForm{regexp.MustCompile(`(?i)^` + pattern + `$`), before, after}
	}
	const list = `(?:list|array|sequence|vector|set)`
	return []typeForm{
		form(`(\w+) *\[ *\]`, "list[", "]"),
		form(`\[ *(\w+) *\]`, "list[", "]"),
		form(list+` *\[ *(\w+) *\]?`, "list[", "]"),
		form(list+` *[<(] *(\w+) *[>)]?`, "list[", "]"),
		form(list+` +of +(\w+?)s?`, "list[", "]"),
		form(`optional *[\[<(] *(\w+) *[\])>]?`, "", "?"),
		form(`(\w+) *\| *(?:none|null|undefined)`, "", "?"),
	}
})

// typeForm is a form of a type, and what is before and after its element here.
type typeForm struct {
	pattern       *regexp.Regexp
	before, after string
}

// typeForm returns the type expression that is meant by one in the form of another
// language; empty if the element is no known type.
func (p *checker) typeForm(written string) string {
	for _, f := range typeForms() {
		m := f.pattern.FindStringSubmatch(strings.TrimSpace(written))
		if m == nil {
			continue
		}
		if element := p.knownType(m[1]); element != "" {
			return f.before + element + f.after
		}
	}
	return ""
}

// knownType returns the name of a built-in or custom type, also for a name that other languages
// have for it; empty if there is none.
func (p *checker) knownType(name string) string {
	for _, known := range builtIn() {
		if known == name {
			return name
		}
	}
	if p.types[name] != nil {
		return name
	}
	meant, _ := typeSynonym(name)
	return meant
}
