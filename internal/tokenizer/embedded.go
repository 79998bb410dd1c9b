//go:build !js

package tokenizer

import (
	"fmt"

	"github.com/qtype-dev/qtype/internal/tokenizer/vocabularies"
)

// get returns the encoding and loads it the first time.
func (l *lazyEncoding) get() (*Encoding, error) {
	l.once.Do(func() { l.encoding, l.err = l.load() })
	return l.encoding, l.err
}

// load reads the embedded vocabulary.
func (l *lazyEncoding) load() (*Encoding, error) {
	v, err := readVocabulary(vocabularies.Files[l.file], l.size)
	if err != nil {
		return nil, fmt.Errorf("read token vocabulary %s: %w", l.file, err)
	}
	return l.with(v), nil
}
