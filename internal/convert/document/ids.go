package document

import (
	"fmt"
	"strings"
)

// NewIDs returns the ids of an application, with those reserved that conversational
// flows use for variables.
func NewIDs(app string) *IDs {
	taken := map[string]bool{}
	for _, id := range []string{app, "question", "answer", "prompt", "query"} {
		taken[id] = true
	}
	return &IDs{Taken: taken}
}

// IDs assigns unique ids of the document and of variables.
type IDs struct {
	Taken map[string]bool
	next  map[string]int // by name, the number that was not tried yet; made when the first one is
}

// New returns an unused id similar to name, or to fallback if name has no usable
// character.
func (n *IDs) New(name, fallback string) string {
	made := Slug(name)
	if made == "" {
		made = fallback
	}
	free := made
	for n.Taken[free] {
		if n.next == nil {
			n.next = map[string]int{}
		}
		i := max(n.next[made], 2)
		n.next[made] = i + 1
		free = fmt.Sprintf("%s_%d", made, i)
	}
	n.Taken[free] = true
	return free
}

// Slug replaces the characters of a name that an id cannot have; it returns "" if
// none are left.
func Slug(name string) string {
	made := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, strings.TrimSpace(name))
	for strings.Contains(made, "__") && !strings.Contains(name, "__") {
		made = strings.ReplaceAll(made, "__", "_")
	}
	made = strings.Trim(made, "_")
	if strings.Trim(made, "_-.") == "" {
		return ""
	}
	if c := made[0] | 0x20; c < 'a' || c > 'z' {
		made = "x" + made
	}
	return made
}

// IsIdentifier reports whether a name can be an identifier in an expression.
func IsIdentifier(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	switch s {
	case "", "in", "not", "and", "or", "let", "if", "else", "nil", "true", "false", "matches", "contains", "startsWith", "endsWith":
		return false
	}
	return true
}
