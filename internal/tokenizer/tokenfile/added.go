//go:build !js

package tokenfile

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
