package redis

import (
	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/internal/filter"
)

// The parts of queries, for tests of the language.
var (
	Tags         = remote.Tags
	QueryWords   = remote.QueryWords
	IndexedWords = remote.IndexedWords
)

// The fields of Tags and IndexedWords.
const (
	TagsField  = tagsField
	WordsField = wordsField
)

// own is an index that this module created.
var own = &state{own: true}

// Condition returns the condition of a filter; empty if it cannot be expressed.
func Condition(f filter.Filter) string { return own.condition(f).Query }

// TextQuery returns the query for the words of a text that satisfy a filter.
func TextQuery(text string, f filter.Filter) string {
	return own.textQuery(remote.QueryWords(text), own.condition(f))
}
