//go:build !js

package tokenfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// unknownPenalty is how much less probable an unknown character is than any token.
const unknownPenalty = 10

// lattice finds the most probable tokens of a text.
type lattice struct {
	scores  map[string]float64
	single  bool // scores have single precision, as SentencePiece computes
	longest int  // bytes of the longest token
	unknown float64
}

// newLattice returns a lattice; minScore is the lowest score of a token.
func newLattice(scores map[string]float64, minScore float64, single bool) *lattice {
	l := &lattice{scores: scores, single: single, unknown: minScore - unknownPenalty}
	for token := range scores {
		l.longest = max(l.longest, len(token))
	}
	return l
}

// node is the best path to a place in the text.
type node struct {
	score   float64
	start   int // of the last token, -1 if no path is known
	unknown bool
}

// token is one token of a text.
type token struct {
	text    string
	unknown bool
}

// tokens returns the tokens of a text; each unknown character is one.
func (l *lattice) tokens(text string) []token {
	best := make([]node, len(text)+1)
	for i := range best {
		best[i].start = -1
	}
	for at := 0; at < len(text); {
		size := l.extend(best, text, at)
		at += size
	}
	var out []token
	for end := len(text); end > 0; end = best[end].start {
		out = append(out, token{text[best[end].start:end], best[end].unknown})
	}
	slices.Reverse(out)
	return out
}

// extend adds the tokens that begin at a place, and returns the size of its character.
func (l *lattice) extend(best []node, text string, at int) int {
	_, size := utf8.DecodeRuneInString(text[at:])
	known := false // the character is a token
	for end := at + size; end <= min(len(text), at+l.longest); {
		if score, ok := l.scores[text[at:end]]; ok {
			l.update(best, at, end, score, false)
			known = known || end == at+size
		}
		_, next := utf8.DecodeRuneInString(text[end:])
		if next == 0 {
			break
		}
		end += next
	}
	if !known {
		l.update(best, at, at+size, l.unknown, true)
	}
	return size
}

func (l *lattice) update(best []node, from, to int, score float64, unknown bool) {
	sum := best[from].score + score
	if l.single {
		sum = float64(float32(best[from].score) + float32(score))
	}
	if best[to].start < 0 || sum > best[to].score {
		best[to] = node{sum, from, unknown}
	}
}

// unigram is the model Unigram of a tokenizer.json.
type unigram struct {
	*lattice
	bytes *byteTokens // nil without byte_fallback
}

func readUnigram(raw json.RawMessage) (model, error) {
	var d struct {
		Vocab        [][2]json.RawMessage `json:"vocab"`
		ByteFallback bool                 `json:"byte_fallback"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("model: %w", jsonError(err))
	}
	if len(d.Vocab) == 0 {
		return nil, errors.New("model: the vocabulary is empty")
	}
	scores, ids := make(map[string]float64, len(d.Vocab)), make(map[string]int32, len(d.Vocab))
	lowest := math.Inf(1)
	for i, pair := range d.Vocab {
		var token string
		var score float64
		if err := errors.Join(json.Unmarshal(pair[0], &token), json.Unmarshal(pair[1], &score)); err != nil {
			return nil, fmt.Errorf("model: token %d: %w", i, jsonError(err))
		}
		scores[token], ids[token] = score, int32(i)
		lowest = min(lowest, score)
	}
	m := &unigram{lattice: newLattice(scores, lowest, false)}
	if d.ByteFallback {
		m.bytes = newByteTokens(ids)
	}
	return m, nil
}

// count joins adjacent unknown characters.
func (m *unigram) count(text string) int {
	n, run := 0, ""
	flush := func() {
		switch {
		case run == "":
		case m.bytes != nil && m.bytes.of(run) != nil:
			n += len(run)
		default:
			n++
		}
		run = ""
	}
	for _, t := range m.tokens(text) {
		if t.unknown {
			run += t.text
			continue
		}
		flush()
		n++
	}
	flush()
	return n
}
