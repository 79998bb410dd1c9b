package validate

import "strings"

// placeholder is one {…} of a prompt template, or a brace that is none.
type placeholder struct {
	text  string // as it is written, braces included
	name  string // what stands before ! and :
	fault string // why the braces cannot be read; empty for a placeholder
}

// placeholders reads a template: {name}, {name!r}, {name:>8}; {{ and }} are
// braces (steps.md 2). Reading goes on behind a fault.
func placeholders(template string) []placeholder {
	var found []placeholder
	for rest := template; ; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			return found
		}
		rest = rest[at:]
		switch {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			rest = rest[2:]
			continue
		case rest[0] == '}':
			found = append(found, placeholder{text: "}", fault: "a single } closes nothing; write }} for a brace"})
			rest = rest[1:]
			continue
		}
		end := strings.IndexAny(rest[1:], "{}") + 1
		if end == 0 || rest[end] == '{' {
			found = append(found, placeholder{text: "{", fault: "this { is never closed; write {{ for a brace"})
			rest = rest[1:]
			continue
		}
		inside := rest[1:end]
		name, _, _ := strings.Cut(inside, ":")
		name, _, _ = strings.Cut(name, "!")
		found = append(found, placeholder{text: rest[:end+1], name: name})
		rest = rest[end+1:]
	}
}
