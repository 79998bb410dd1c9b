//go:build js

package tokenizer

import (
	"fmt"
	"slices"
)

// A program in a browser has no embedded vocabularies: a page loads them when they are
// needed, and until then counts are estimates. It has one thread, so that these
// variables need no lock.

// missing has the files of the vocabularies that were needed and not supplied.
var missing []string

// get returns the encoding. Without a vocabulary it estimates.
func (l *lazyEncoding) get() (*Encoding, error) {
	if l.encoding == nil {
		l.encoding = l.with(nil)
	}
	if l.encoding.tokens == nil && !slices.Contains(missing, l.file) {
		missing = append(missing, l.file)
	}
	return l.encoding, nil
}

// Missing returns the files of the vocabularies that were needed and not supplied.
func Missing() []string { return slices.Clone(missing) }

// Supply makes encodings count with the content of the file of a vocabulary.
func Supply(file string, content []byte) error {
	for i := range encodings {
		l := &encodings[i]
		if l.file != file {
			continue
		}
		v, err := readVocabulary(string(content), l.size)
		if err != nil {
			return fmt.Errorf("read token vocabulary %s: %w", file, err)
		}
		l.encoding = l.with(v)
	}
	missing = slices.DeleteFunc(missing, func(m string) bool { return m == file })
	return nil
}
