package replay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// tokenComparison compares the tokens of messages with LangChain4j's estimator for OpenAI.
type tokenComparison struct {
	count memory.Counter
	kinds map[string]*kindTokens
}

// kindTokens are sums over the messages of one kind.
type kindTokens struct{ messages, ours, theirs int }

// add checks the tokens of the messages of a transcript: that they differ by what each side
// counts around a call and a result, and by nothing else.
func (c *tokenComparison) add(t *testing.T, transcript otherTranscript, theirs [][]int) {
	t.Helper()
	for i, l := range transcript.Lines {
		for j, m := range l.Messages {
			kind, more := c.difference(t, m)
			if got := m.Tokens - theirs[i][j]; got != more {
				t.Errorf("%s: %d tokens, LangChain4j has %d, want %d more than it: %+v", kind, m.Tokens, theirs[i][j], more, m)
			}
			if c.kinds == nil {
				c.kinds = map[string]*kindTokens{}
			}
			if c.kinds[kind] == nil {
				c.kinds[kind] = &kindTokens{}
			}
			sum := c.kinds[kind]
			sum.messages, sum.ours, sum.theirs = sum.messages+1, sum.ours+m.Tokens, sum.theirs+theirs[i][j]
		}
	}
}

// difference returns the kind of a message, and how many tokens more than LangChain4j
// a memory counts. LangChain4j counts 5 for one call besides its arguments and twice its name.
// For several calls it counts 21, and for each one 7, its name, and 2, the name and the value
// of each argument in place of the JSON text.
func (c *tokenComparison) difference(t *testing.T, m otherMessage) (kind string, more int) {
	const call, result = 12, 9 // what a memory counts
	switch n := len(m.Calls); {
	case m.Role == chat.Tool:
		return "a tool result", result
	case n == 0:
		return "a text", 0
	case n == 1:
		return "one call", call - 5 - c.count.Count(m.Calls[0].Name)
	}
	more = -21
	for _, one := range m.Calls {
		var arguments map[string]any
		testkit.Must(t, json.Unmarshal([]byte(one.Arguments), &arguments))
		more += call - 7 + c.count.Count(one.Arguments)
		for name, value := range arguments {
			more -= 2 + c.count.Count(name) + c.count.Count(fmt.Sprint(value))
		}
	}
	return "several calls", more
}

// log writes the mean size of each kind of message.
func (c *tokenComparison) log(t *testing.T) {
	var lines []string
	for kind, sum := range c.kinds {
		n := float64(sum.messages)
		lines = append(lines, fmt.Sprintf("%s: %d messages, %.1f tokens, LangChain4j %.1f", kind, sum.messages, float64(sum.ours)/n, float64(sum.theirs)/n))
	}
	slices.Sort(lines)
	t.Log(strings.Join(lines, "\n"))
}
