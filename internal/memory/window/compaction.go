package window

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Compaction makes a window smaller before messages leave it: once it exceeds the limit of
// the policy, in tokens, or the context window of a model, old messages are sent in a short
// form. The history and the window itself keep them whole, so that the form follows from
// the messages of the window alone.
type Compaction struct {
	ToolResults int // tokens of an old tool result in its short form, at least MinShortResult; 0: results stay whole
	KeepResults int // the number of newest tool results that stay whole, at least those of the newest call
	// At is for flush with a context that summarizes: the share of the room of a call, above 0
	// and at most 1, at which the older half of the window leaves. The room is token_limit, or
	// the context window of the model if that is smaller; messages, system message, context,
	// descriptions of tools and the answer count. It replaces chat_history_token_ratio and
	// token_flush_size. 0: the limits apply.
	At          float64
	ImageRounds int // the number of newest rounds that keep their images, in a small window too; 0: all
}

// MinShortResult is the smallest Compaction.ToolResults: the note alone needs some 30 tokens.
const MinShortResult = 50

// Check returns an error for invalid settings.
func (c Compaction) Check() error {
	switch {
	case c.ToolResults != 0 && c.ToolResults < MinShortResult:
		return fmt.Errorf("shorten_tool_results must be at least %d, not %d", MinShortResult, c.ToolResults)
	case c.KeepResults < 0:
		return fmt.Errorf("keep_tool_results must not be negative, not %d", c.KeepResults)
	case c.At != 0 && !(c.At > 0 && c.At <= 1):
		return fmt.Errorf("compact_at must be above 0 and at most 1, not %v", c.At)
	case c.ImageRounds < 0:
		return fmt.Errorf("drop_images must be positive, not %d", c.ImageRounds)
	}
	return nil
}

// Compactor makes the short forms of the messages of a memory.
type Compactor struct {
	Compaction
	counter Counter

	mu    sync.Mutex
	forms map[formKey]*store.Entry // forms that were made; nil for a message that has none
}

// formKey identifies a short form: the note has the position. That of a message without its
// images has none.
type formKey struct {
	entry *store.Entry
	place int64
}

// maxForms is how many short forms are kept in memory.
const maxForms = 512

// NewCompactor returns nil if nothing is compacted.
func NewCompactor(c Compaction, counter Counter) *Compactor {
	if c.ToolResults == 0 && c.ImageRounds == 0 {
		return nil
	}
	return &Compactor{Compaction: c, counter: counter, forms: map[formKey]*store.Entry{}}
}

// shorten returns entries with short forms in place of old results, and these forms. places
// has the positions of entries that are not stored yet.
func (c *Compactor) shorten(entries []*store.Entry, places map[*store.Entry]int64) (out, short []*store.Entry) {
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
func (c *Compactor) candidates(entries []*store.Entry) []int {
	end, newest := len(entries), 0
	for end > 0 && IsResult(entries[end-1]) { // those of the newest call
		end, newest = end-1, newest+1
	}
	var all []int
	for i, e := range entries[:end] {
		if IsResult(e) {
			all = append(all, i)
		}
	}
	n := len(all) - max(c.KeepResults-newest, 0)
	return slices.DeleteFunc(all[:max(n, 0)], func(i int) bool { return entries[i].Tokens <= c.ToolResults })
}

// form returns the short form of a result, nil if it has none.
func (c *Compactor) form(e *store.Entry, place int64) *store.Entry {
	return c.cached(formKey{e, place}, func() *store.Entry { return c.newForm(e, place) })
}

// cached returns a form, and makes it if it is not known.
func (c *Compactor) cached(key formKey, make func() *store.Entry) *store.Entry {
	c.mu.Lock()
	form, known := c.forms[key]
	c.mu.Unlock()
	if known {
		return form
	}
	form = make()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.forms) >= maxForms {
		clear(c.forms)
	}
	c.forms[key] = form
	return form
}

// newForm returns the start and the end of a result, with a note of what is left out.
func (c *Compactor) newForm(e *store.Entry, place int64) *store.Entry {
	text := []rune(e.Message.Text())
	keep := len(text) * (c.ToolResults - MinShortResult/2) / e.Tokens
	for range 8 {
		f := *e
		f.Message.Blocks = withShortText(e.Message.Blocks, text, keep, e.Tokens, place)
		f.Tokens = TokensOf(c.counter, &f.Message)
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

// withoutImages returns entries with captions in place of the images of old rounds, and the
// entries that have them. User messages that directly follow each other begin one round.
func (c *Compactor) withoutImages(entries []*store.Entry) (out, plain []*store.Entry) {
	out = entries
	for i, e := range entries[:oldRounds(entries, c.ImageRounds)] {
		if !hasImage(e) {
			continue
		}
		form := c.cached(formKey{entry: e}, func() *store.Entry { return c.captioned(e) })
		if form == nil {
			continue
		}
		if len(plain) == 0 {
			out = slices.Clone(entries)
		}
		out[i], plain = form, append(plain, form)
	}
	return out, plain
}

// oldRounds returns how many entries precede the newest rounds.
func oldRounds(entries []*store.Entry, newest int) int {
	for i, e := range slices.Backward(entries) {
		if !IsUser(e) || i > 0 && IsUser(entries[i-1]) {
			continue
		}
		if newest--; newest == 0 {
			return i
		}
	}
	return 0
}

// hasImage reports whether a message has an image.
func hasImage(e *store.Entry) bool { return slices.ContainsFunc(e.Message.Blocks, isImage) }

func isImage(b chat.Block) bool { return b.Type == "image" }

// captioned returns an entry with captions in place of its images, nil if they are not
// shorter.
func (c *Compactor) captioned(e *store.Entry) *store.Entry {
	f := *e
	f.Message = e.Message.WithoutItems() // they were made for the images
	f.Message.Blocks = slices.Clone(f.Message.Blocks)
	for i, b := range f.Message.Blocks {
		if isImage(b) {
			f.Message.Blocks[i] = chat.Block{Type: "text", Text: caption(b)}
		}
	}
	if f.Tokens = TokensOf(c.counter, &f.Message); f.Tokens > e.Tokens {
		return nil
	}
	return &f
}

// caption describes an image that is not sent, such as [image left out: image/png, 1,024 bytes].
func caption(b chat.Block) string {
	var parts []string
	if b.MimeType != "" {
		parts = append(parts, b.MimeType)
	}
	if b.Media() {
		parts = append(parts, textfmt.Count(len(b.Data), "byte"))
	}
	if len(parts) == 0 {
		return "[image left out]"
	}
	return "[image left out: " + strings.Join(parts, ", ") + "]"
}
