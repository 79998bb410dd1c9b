package spec

import (
	"slices"
	"strconv"
)

// Thinking is how much a model reasons before it answers: one of ThinkingWords, or a number of
// tokens as text. Empty leaves it to the model.
type Thinking string

// The words of Thinking.
const (
	ThinkingOff    Thinking = "off"
	ThinkingLow    Thinking = "low"
	ThinkingMedium Thinking = "medium"
	ThinkingHigh   Thinking = "high"
	ThinkingMax    Thinking = "max"
)

// ThinkingWords lists the words, from the least to the most.
func ThinkingWords() []Thinking {
	return []Thinking{ThinkingOff, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingMax}
}

// Valid reports whether t is a word or a positive number of tokens.
func (t Thinking) Valid() bool { return slices.Contains(ThinkingWords(), t) || t.Budget() > 0 }

// Budget returns the number of tokens, 0 for a word.
func (t Thinking) Budget() int {
	n, err := strconv.Atoi(string(t))
	if err != nil {
		return 0
	}
	return n
}
