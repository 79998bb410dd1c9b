//go:build !js

package tokenfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// wordPiece takes the longest token at each place of a word.
type wordPiece struct {
	vocab    map[string]int32
	prefix   string // of tokens that continue a word
	maxChars int    // a longer word is unknown
}

func readWordPiece(raw json.RawMessage) (model, error) {
	d := struct {
		Vocab    map[string]int32 `json:"vocab"`
		Prefix   string           `json:"continuing_subword_prefix"`
		MaxChars int              `json:"max_input_chars_per_word"`
	}{Prefix: "##", MaxChars: 100}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	return &wordPiece{d.Vocab, d.Prefix, d.MaxChars}, nil
}

// count returns the number of tokens of a word; an unknown word is one token.
func (m *wordPiece) count(word string) int {
	if utf8.RuneCountInString(word) > m.maxChars {
		return 1
	}
	n := 0
	for start := 0; start < len(word); {
		end := m.longest(word, start)
		if end == start {
			return 1
		}
		start = end
		n++
	}
	return n
}

// longest returns the end of the longest token at start, or start if there is none.
func (m *wordPiece) longest(word string, start int) int {
	for end := len(word); end > start; {
		token := word[start:end]
		if start > 0 {
			token = m.prefix + token
		}
		if _, known := m.vocab[token]; known {
			return end
		}
		_, size := utf8.DecodeLastRuneInString(word[start:end])
		end -= size
	}
	return start
}

// wordLevel counts each word as one token.
type wordLevel struct {
	vocab map[string]int32
	unk   bool // unknown words are a token
}

func readWordLevel(raw json.RawMessage) (model, error) {
	var d struct {
		Vocab map[string]int32 `json:"vocab"`
		Unk   string           `json:"unk_token"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	_, unk := d.Vocab[d.Unk]
	return &wordLevel{d.Vocab, unk}, nil
}

func (m *wordLevel) count(word string) int {
	if _, known := m.vocab[word]; known || m.unk {
		return 1
	}
	return 0
}
