package ranking

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/wordvectors"
)

// form is what is known of a word.
type form struct {
	word    string
	stem    string
	stop    bool
	meaning wordvectors.Vector
}

// forms has the words that were asked for lately, by their hashes. It is safe for concurrent use.
type forms struct {
	seed   maphash.Seed
	recent [1 << 14]atomic.Pointer[form] // 350 bytes each
}

// lexicon returns the words of the process.
//
//nolint:gochecknoglobals // a cache
var lexicon = sync.OnceValue(func() *forms { return &forms{seed: maphash.MakeSeed()} })

// form returns what is known of a word; it must not be changed.
func (l *forms) form(word string) *form {
	place := &l.recent[maphash.String(l.seed, word)%uint64(len(l.recent))]
	if f := place.Load(); f != nil && f.word == word {
		return f
	}
	word = strings.Clone(word) // it may be a part of a long text
	f := &form{word: word, stem: stem(word), stop: isStopWord(word), meaning: wordvectors.Default().Word(word)}
	place.Store(f)
	return f
}
