//go:build !js

package tokenfile

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
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

// ranker returns the rank and the token of a merge; the lowest rank is merged first.
type ranker func(left, right int32) (rank float64, id int32, ok bool)

// merger merges adjacent symbols in the order of rank, then position.
type merger struct {
	ids        []int32 // -1 for a symbol that was merged into the one before
	prev, next []int32
	rank       ranker
	queue      candidates
}

// candidate is a possible merge of the symbol at with the next one.
type candidate struct {
	rank        float64
	at          int32
	left, right int32 // the tokens that it merges
	id          int32
}

func newMerger(ids []int32, rank ranker) *merger {
	m := &merger{ids: ids, prev: make([]int32, len(ids)), next: make([]int32, len(ids)), rank: rank}
	for i := range ids {
		m.prev[i], m.next[i] = int32(i-1), int32(i+1)
	}
	for i := range len(ids) - 1 {
		m.offer(int32(i))
	}
	heap.Init(&m.queue)
	return m
}

// offer adds the merge of the symbol at with the next one, if there is one.
func (m *merger) offer(at int32) bool {
	next := m.next[at]
	if int(next) >= len(m.ids) {
		return false
	}
	left, right := m.ids[at], m.ids[next]
	rank, id, ok := m.rank(left, right)
	if ok {
		m.queue = append(m.queue, candidate{rank, at, left, right, id})
	}
	return ok
}

// push offers a merge while the queue is a heap.
func (m *merger) push(at int32) {
	if at >= 0 && m.offer(at) {
		heap.Fix(&m.queue, len(m.queue)-1)
	}
}

// run merges until no merge is left and returns the number of symbols, of count at first.
func (m *merger) run(count int) int {
	for len(m.queue) > 0 {
		c, _ := heap.Pop(&m.queue).(candidate)
		next := m.next[c.at]
		if m.ids[c.at] != c.left || int(next) >= len(m.ids) || m.ids[next] != c.right {
			continue // one of them was merged since
		}
		m.ids[c.at], m.ids[next] = c.id, -1
		m.next[c.at] = m.next[next]
		if after := m.next[c.at]; int(after) < len(m.ids) {
			m.prev[after] = c.at
		}
		count--
		m.push(m.prev[c.at])
		m.push(c.at)
	}
	return count
}

// remaining yields the symbols that are left.
func (m *merger) remaining(yield func(at int) bool) {
	for at := 0; at < len(m.ids); at = int(m.next[at]) {
		if !yield(at) {
			return
		}
	}
}

// candidates is a heap.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push appends a candidate.
func (c *candidates) Push(x any) {
	one, _ := x.(candidate)
	*c = append(*c, one)
}

// Pop removes the last candidate.
func (c *candidates) Pop() any {
	last := len(*c) - 1
	one := (*c)[last]
	*c = (*c)[:last]
	return one
}

// addedToken is a token that is recognized in the text itself.
type addedToken struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only between characters that are not part of a word
	LStrip     bool   `json:"lstrip"`      // with the spaces before it
	RStrip     bool   `json:"rstrip"`      // with the spaces after it
	Normalized bool   `json:"normalized"`  // found in the normalized text
}

// part is a part of a text: an added token, or text between two of them.
type part struct {
	text  string
	token bool
	first bool // at the start of the whole text
}

// tokenTrie finds added tokens.
type tokenTrie struct{ nodes []trieNode }

type trieNode struct {
	next  map[byte]int32
	token *addedToken // nil if no token ends here
}

func newTokenTrie() *tokenTrie { return &tokenTrie{nodes: make([]trieNode, 1)} }

// add adds a token by the text that it is found by.
func (t *tokenTrie) add(text string, token addedToken) {
	if text == "" {
		return
	}
	at := int32(0)
	for i := range len(text) {
		next, ok := t.nodes[at].next[text[i]]
		if !ok {
			next = int32(len(t.nodes))
			if t.nodes[at].next == nil {
				t.nodes[at].next = map[byte]int32{}
			}
			t.nodes[at].next[text[i]] = next
			t.nodes = append(t.nodes, trieNode{})
		}
		at = next
	}
	t.nodes[at].token = &token
}

// longest returns the longest token that text begins with, nil for none.
func (t *tokenTrie) longest(text string) (found *addedToken, length int) {
	at := int32(0)
	for i := range len(text) {
		next, ok := t.nodes[at].next[text[i]]
		if !ok {
			break
		}
		if at = next; t.nodes[at].token != nil {
			found, length = t.nodes[at].token, i+1
		}
	}
	return found, length
}

// split returns the parts of a text.
func (t *tokenTrie) split(text string) []part {
	var parts []part
	done := 0 // the end of the last part
	for at := 0; at < len(text) && len(t.nodes) > 1; {
		token, length := t.longest(text[at:])
		if token == nil {
			at++
			continue
		}
		from, to := at, at+length
		at = to
		if token.SingleWord && (endsWithWord(text[:from]) || beginsWithWord(text[to:])) {
			continue
		}
		if token.LStrip {
			from = max(len(strings.TrimRightFunc(text[:from], unicode.IsSpace)), done)
		}
		if token.RStrip {
			to += len(text[to:]) - len(strings.TrimLeftFunc(text[to:], unicode.IsSpace))
		}
		if done < from {
			parts = append(parts, part{text: text[done:from], first: done == 0})
		}
		parts = append(parts, part{text: text[from:to], token: true, first: from == 0})
		done = to
	}
	if done < len(text) {
		parts = append(parts, part{text: text[done:], first: done == 0})
	}
	return parts
}

func endsWithWord(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && isWord(r)
}

func beginsWithWord(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && isWord(r)
}

// isWord reports whether \w of a regular expression matches a character.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}
