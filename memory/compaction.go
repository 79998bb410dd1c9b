package memory

import (
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Compaction makes a window smaller before messages leave it: once it exceeds the limit of
// the policy, in tokens, or the context window of a model, old messages are sent in a short
// form. The history and the window itself keep them whole, so that the form follows from
// the messages of the window alone.
type Compaction struct {
	ToolResults int // tokens of an old tool result in its short form, at least MinShortResult; 0: results stay whole
	KeepResults int // the number of newest tool results that stay whole, at least those of the newest call
}

// MinShortResult is the smallest Compaction.ToolResults: the note alone needs some 30 tokens.
const MinShortResult = 50

// check returns an error for invalid settings.
func (c Compaction) check() error {
	switch {
	case c.ToolResults != 0 && c.ToolResults < MinShortResult:
		return fmt.Errorf("shorten_tool_results must be at least %d, not %d", MinShortResult, c.ToolResults)
	case c.KeepResults < 0:
		return fmt.Errorf("keep_tool_results must not be negative, not %d", c.KeepResults)
	}
	return nil
}

// compactor makes the short forms of the messages of a memory.
type compactor struct {
	Compaction
	counter Counter

	mu    sync.Mutex
	forms map[formKey]*Entry // forms that were made; nil for a message that has none
}

// formKey identifies a short form: the note has the position.
type formKey struct {
	entry *Entry
	place int64
}

// maxForms is how many short forms are kept in memory.
const maxForms = 512

// newCompactor returns nil if nothing is compacted.
func newCompactor(c Compaction, counter Counter) *compactor {
	if c.ToolResults == 0 {
		return nil
	}
	return &compactor{Compaction: c, counter: counter, forms: map[formKey]*Entry{}}
}

// shorten returns entries with short forms in place of old results, and these forms. places
// has the positions of those that are not stored yet.
func (c *compactor) shorten(entries []*Entry, places map[*Entry]int64) (out, short []*Entry) {
	out = entries
	for _, i := range c.candidates(entries) {
		e := entries[i]
		place := e.Seq
		if place == 0 {
			place = places[e]
		}
		form := c.form(e, place)
		if form == nil {
			continue
		}
		if len(short) == 0 {
			out = slices.Clone(entries)
		}
		out[i], short = form, append(short, form)
	}
	return out, short
}

// candidates returns the indexes of the results that may be shortened, ascending.
func (c *compactor) candidates(entries []*Entry) []int {
	end, newest := len(entries), 0
	for end > 0 && isResult(entries[end-1]) { // those of the newest call
		end, newest = end-1, newest+1
	}
	var all []int
	for i, e := range entries[:end] {
		if isResult(e) {
			all = append(all, i)
		}
	}
	n := len(all) - max(c.KeepResults-newest, 0)
	return slices.DeleteFunc(all[:max(n, 0)], func(i int) bool { return entries[i].Tokens <= c.ToolResults })
}

// form returns the short form of a result, nil if it has none.
func (c *compactor) form(e *Entry, place int64) *Entry {
	key := formKey{e, place}
	c.mu.Lock()
	form, known := c.forms[key]
	c.mu.Unlock()
	if known {
		return form
	}
	form = c.newForm(e, place)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.forms) >= maxForms {
		clear(c.forms)
	}
	c.forms[key] = form
	return form
}

// newForm returns the start and the end of a result, with a note of what is left out.
func (c *compactor) newForm(e *Entry, place int64) *Entry {
	text := []rune(e.Message.Text())
	keep := len(text) * (c.ToolResults - MinShortResult/2) / e.Tokens
	for range 8 {
		f := *e
		f.Message.Blocks = withShortText(e.Message.Blocks, text, keep, e.Tokens, place)
		f.Tokens = tokensOf(c.counter, &f.Message)
		if f.Tokens <= c.ToolResults {
			return &f
		}
		keep = keep * c.ToolResults / f.Tokens * 9 / 10
	}
	return nil // media, or a counter that no short text satisfies
}

// withShortText returns blocks with keep characters of their text, which had tokens.
func withShortText(blocks []chat.Block, text []rune, keep, tokens int, place int64) []chat.Block {
	out := slices.DeleteFunc(slices.Clone(blocks), hasText)
	tail := keep / 3
	left := tokens - tokens*keep/max(len(text), 1)
	short := fmt.Sprintf("%s\n[… about %s of %s left out; the whole result is message %d …]\n%s", string(text[:keep-tail]),
		textfmt.Thousands(left), textfmt.Count(tokens, "token"), place, string(text[len(text)-tail:]))
	return slices.Insert(out, 0, chat.Block{Type: "text", Text: short})
}
