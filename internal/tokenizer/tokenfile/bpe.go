//go:build !js

package tokenfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// bpe is byte pair encoding by a list of merges.
type bpe struct {
	vocab        map[string]int32
	merges       map[pair]merge
	unk          string
	prefix       string // of all but the first character of a word
	suffix       string // of the last character of a word
	fuseUnk      bool   // adjacent unknown characters are one token
	byteFallback bool   // an unknown character is one token for each of its bytes
	ignoreMerges bool   // a word that is a token is not merged
	bytes        *byteTokens
}

type pair struct{ left, right int32 }

type merge struct{ rank, id int32 }

type bpeJSON struct {
	Vocab        map[string]int32  `json:"vocab"`
	Merges       []json.RawMessage `json:"merges"`
	Unk          *string           `json:"unk_token"`
	Prefix       *string           `json:"continuing_subword_prefix"`
	Suffix       *string           `json:"end_of_word_suffix"`
	FuseUnk      bool              `json:"fuse_unk"`
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	Dropout      *float64          `json:"dropout"`
}

func readBPE(raw json.RawMessage) (model, error) {
	var d bpeJSON
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	m := &bpe{vocab: d.Vocab, merges: make(map[pair]merge, len(d.Merges)), unk: text(d.Unk), prefix: text(d.Prefix),
		suffix: text(d.Suffix), fuseUnk: d.FuseUnk, byteFallback: d.ByteFallback, ignoreMerges: d.IgnoreMerges, bytes: newByteTokens(d.Vocab)}
	if _, known := m.vocab[m.unk]; !known {
		m.unk = ""
	}
	for rank, raw := range d.Merges {
		if err := m.addMerge(int32(rank), raw); err != nil {
			return nil, fmt.Errorf("model: merge %d: %w", rank+1, err)
		}
	}
	return m, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// addMerge adds a merge, either "a b" or ["a", "b"].
func (m *bpe) addMerge(rank int32, raw json.RawMessage) error {
	var parts []string
	if len(raw) > 0 && raw[0] == '"' {
		var line string
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		parts = strings.Split(line, " ")
	} else if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("it must have two tokens, not %d", len(parts))
	}
	ids := [3]int32{}
	for i, token := range []string{parts[0], parts[1], parts[0] + strings.TrimPrefix(parts[1], m.prefix)} {
		id, known := m.vocab[token]
		if !known {
			return fmt.Errorf("the token %q is not in the vocabulary", token)
		}
		ids[i] = id
	}
	m.merges[pair{ids[0], ids[1]}] = merge{rank, ids[2]}
	return nil
}

// count merges the characters of a word.
func (m *bpe) count(word string) int {
	if m.ignoreMerges {
		if _, known := m.vocab[word]; known {
			return 1
		}
	}
	symbols := m.symbols(word)
	if len(symbols) < 2 {
		return len(symbols)
	}
	q := newMerger(symbols, m.rank)
	return q.run(len(symbols))
}

// rank returns the merge of two tokens.
func (m *bpe) rank(left, right int32) (rank float64, id int32, ok bool) {
	found, ok := m.merges[pair{left, right}]
	return float64(found.rank), found.id, ok
}

// symbols returns the tokens of the single characters of a word.
func (m *bpe) symbols(word string) []int32 {
	symbols := make([]int32, 0, len(word))
	unknown := false // the last symbol is one or more unknown characters
	for at, r := range word {
		size := utf8.RuneLen(r)
		char := word[at : at+size]
		token := char
		if m.prefix != "" && at > 0 {
			token = m.prefix + token
		}
		if m.suffix != "" && at+size == len(word) {
			token += m.suffix
		}
		if id, known := m.vocab[token]; known {
			symbols, unknown = append(symbols, id), false
			continue
		}
		if ids := m.bytes.of(token); m.byteFallback && ids != nil {
			symbols, unknown = append(symbols, ids...), false
			continue
		}
		if m.unk != "" && (!unknown || !m.fuseUnk) {
			symbols, unknown = append(symbols, m.vocab[m.unk]), true
		}
	}
	return symbols
}

// byteTokens are the tokens <0x00> to <0xFF>.
type byteTokens struct{ ids [256]int32 }

func newByteTokens(vocab map[string]int32) *byteTokens {
	t := &byteTokens{}
	for b := range t.ids {
		id, known := vocab[fmt.Sprintf("<0x%02X>", b)]
		if !known {
			id = -1
		}
		t.ids[b] = id
	}
	return t
}

// of returns the tokens of the bytes of a text, nil if one is missing.
func (t *byteTokens) of(text string) []int32 {
	ids := make([]int32, 0, len(text))
	for i := range len(text) {
		if t.ids[text[i]] < 0 {
			return nil
		}
		ids = append(ids, t.ids[text[i]])
	}
	return ids
}
