//go:build !js

package tokenizer

import (
	"fmt"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// get returns the encoding and loads it the first time.
func (l *lazyEncoding) get() (*Encoding, error) {
	l.once.Do(func() { l.encoding, l.err = l.load() })
	return l.encoding, l.err
}

// load reads the vocabulary.
func (l *lazyEncoding) load() (*Encoding, error) {
	v, err := loadVocabulary(l.file, l.size)
	if err != nil {
		return nil, err
	}
	return l.with(v), nil
}

// loadVocabulary reads an embedded vocabulary.
func loadVocabulary(file string, tokens int) (*vocabulary, error) {
	f, err := assets.Assets.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read token vocabulary: %w", err)
	}
	defer f.Close()
	v, err := readVocabulary(f, tokens)
	if err != nil {
		return nil, fmt.Errorf("read token vocabulary %s: %w", file, err)
	}
	return v, nil
}
