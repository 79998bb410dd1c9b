package redis

import (
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/internal/filter"
)

// condition returns a query that all entries satisfy that satisfy the filter. Entries that
// other programs wrote have no tags; they are checked here.
func (s *state) condition(f filter.Filter) remote.Translated[string] {
	if !s.own {
		return remote.Translated[string]{Exact: f == nil}
	}
	t := remote.Translate(f, newDialect())
	if t.Found {
		t.Query = "(" + t.Query + "|(-" + tagQuery(remote.OwnTag) + "))"
	}
	return t
}

// tagQuery returns the condition that an entry has any of the tags.
func tagQuery(of ...string) string {
	return "(@" + tagsField + ":{" + strings.Join(of, "|") + "})"
}

// dialect makes conditions in parentheses.
type dialect struct{ remote.TagConditions[string] }

func newDialect() dialect { return dialect{remote.TagConditions[string]{Has: tagQuery}} }

// And requires all conditions.
func (dialect) And(of []string) string { return "(" + strings.Join(of, " ") + ")" }

// Or requires any condition.
func (dialect) Or(of []string) string { return "(" + strings.Join(of, "|") + ")" }

// Not requires that a condition is not satisfied.
func (dialect) Not(of string) string { return "(-" + of + ")" }
