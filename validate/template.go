package validate

import "strings"

// placeholder is one {…} of a prompt template, or a brace that is none.
type placeholder struct {
	text  string // as it is written, braces included
	name  string // what stands before ! and :
	fault string // why the braces cannot be read; empty for a placeholder
	place excerpt
}

// placeholders reads a template: {name}, {name!r}, {name:>8}; {{ and }} are
// braces (steps.md 2). Reading goes on behind a fault.
func placeholders(template string) []placeholder {
	var found []placeholder
	for at := 0; ; {
		n := strings.IndexAny(template[at:], "{}")
		if n < 0 {
			return found
		}
		at += n
		rest := template[at:]
		if strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}") {
			at += 2
			continue
		}
		one := placeholderAt(rest)
		one.place = excerptAt(template, at, len(one.text))
		found = append(found, one)
		at += len(one.text)
	}
}

// placeholderAt reads what text begins with, a brace.
func placeholderAt(text string) placeholder {
	if text[0] == '}' {
		return placeholder{text: "}", fault: "a single } closes nothing; write }} for a brace"}
	}
	end := strings.IndexAny(text[1:], "{}") + 1
	if end == 0 || text[end] == '{' {
		return placeholder{text: "{", fault: "this { is never closed; write {{ for a brace"}
	}
	name, _, _ := strings.Cut(text[1:end], ":")
	name, _, _ = strings.Cut(name, "!")
	return placeholder{text: text[:end+1], name: name}
}
