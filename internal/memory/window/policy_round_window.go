package window

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

const defaultNotice = "Notice: Chat history truncated due to maximum context window. "

// roundWindow keeps the last rounds within a number of characters, as AI
// Refinery's ChatMemoryModule does. The limits of the moment of reading decide,
// so a view holds what a later read may need: the last rounds, whole, or a
// little more than the characters that fit.
type roundWindow struct {
	most   int    // n_rounds
	max    int    // max_context, in characters
	notice string // inserted before the text that was cut
}

func newRoundWindow(l Limits) Policy {
	return &roundWindow{most: l.int("n_rounds"), max: l.int("max_context"), notice: defaultNotice}
}

func (p *roundWindow) CountsSystem() bool                    { return false }
func (p *roundWindow) Describe(*store.Event, []*store.Entry) {}
func (p *roundWindow) Usage(_, _ int) (int, int, store.Unit) { return 0, p.max, store.InCharacters }

// Evict returns what no read under these limits can need: rounds beyond the
// number, and what precedes more than max characters. What stays has one
// message or round more than is sent, which shows that something was cut.
func (p *roundWindow) Evict(v *View, _, _ int) Eviction {
	n, count, chars := 0, v.rounds(), v.chars
	for count > p.most || chars > p.max {
		end, size := nextRound(v, n)
		if end == len(v.Entries) {
			break // the newest round
		}
		if count <= p.most && chars-size <= p.max {
			return evictPrefix(n)
		}
		n, count, chars = end, count-1, chars-size
	}
	for chars > p.max {
		end, size := nextUnit(v, n)
		if end >= len(v.Entries) || chars-size <= p.max {
			break
		}
		n, chars = end, chars-size
	}
	return evictPrefix(n)
}

// nextRound returns the end of the round that begins at from, and its characters.
func nextRound(v *View, from int) (end, chars int) {
	end = from
	for end < len(v.Entries) && (end == from || !IsUser(v.Entries[end])) {
		chars += int(v.sizes[end])
		end++
	}
	return end, chars
}

// nextUnit returns the end of the message at from with its tool results, and their characters.
func nextUnit(v *View, from int) (end, chars int) {
	if from == len(v.Entries) {
		return from, 0
	}
	end = from + v.unit(from)
	for _, size := range v.sizes[from:end] {
		chars += int(size)
	}
	return end, chars
}

// budget returns how many characters fit in addition to the notice, and that
// notice. There is no notice if it leaves no room.
func (p *roundWindow) budget() (int, string) {
	if rest := p.max - utf8.RuneCountInString(p.notice); rest > 0 {
		return rest, p.notice
	}
	return p.max, ""
}

// SelectForCall drops rounds beyond the number, then, if the rest has too many
// characters, whole rounds, then messages of the newest round; at last it cuts
// the front of what is left.
func (p *roundWindow) SelectForCall(v *View) Selection {
	n, chars := 0, v.chars
	for count := v.rounds(); count > p.most; count-- {
		end, size := nextRound(v, n)
		n, chars = end, chars-size
	}
	if chars <= p.max {
		return Selection{Left: evictPrefix(n), Used: chars}
	}
	budget, notice := p.budget()
	for chars > budget {
		end, size := nextRound(v, n)
		if end == len(v.Entries) {
			break
		}
		n, chars = end, chars-size
	}
	end, size := nextUnit(v, n)
	for chars > budget && end < len(v.Entries) {
		n, chars = end, chars-size
		end, size = nextUnit(v, n)
	}
	return Selection{Left: evictPrefix(n), Cut: cutFront(v.Entries[n:end], chars-budget, notice), Note: true,
		Used: min(chars, budget) + utf8.RuneCountInString(notice)}
}

// SelectKept drops messages that precede the newest of the entries that are sent, then
// the oldest that follow it; at last it cuts the front of the newest one, if there is any
// room for it.
func (p *roundWindow) SelectKept(v *View, kept Eviction) Selection {
	from, chars, whole := 0, 0, 0
	var first []*store.Entry
	for low, high := range kept.Runs {
		for i := low; i < high; i++ {
			first, whole = append(first, v.Entries[i]), whole+int(v.sizes[i])
		}
		from = high
	}
	budget, notice := p.budget()
	if budget <= whole {
		budget, notice = p.max, ""
	}
	budget -= whole
	for _, size := range v.sizes[from:] {
		chars += int(size)
	}
	n := from
	end, size := nextUnit(v, n)
	for chars > budget && (end < len(v.Entries) || budget < 1) && n < len(v.Entries) {
		n, chars = end, chars-size
		end, size = nextUnit(v, n)
	}
	sel := Selection{Cut: cutFront(first, 0, notice), Note: true}
	sel.Left = evictPrefix(n).except(kept)
	if chars > budget && n < len(v.Entries) {
		sel.Cut = slices.Concat(sel.Cut, first[1:], cutFront(v.Entries[n:end], chars-budget, ""))
	}
	return sel
}

// cutFront removes excess characters at the front, message by message, and puts
// the notice before the rest of the first one. It returns copies.
func cutFront(entries []*store.Entry, excess int, notice string) []*store.Entry {
	var out []*store.Entry
	for i, e := range entries {
		if i > 0 && excess <= 0 {
			break
		}
		c := *e
		c.Message = c.Message.WithoutItems() // they were made for the whole text
		c.Message.Blocks, excess = cutBlocks(c.Message.Blocks, excess)
		if i == 0 {
			c.Message.Blocks = withNotice(c.Message.Blocks, notice)
		}
		out = append(out, &c)
	}
	return out
}

func cutBlocks(blocks []chat.Block, excess int) ([]chat.Block, int) {
	blocks = slices.Clone(blocks)
	for i, b := range blocks {
		if excess <= 0 {
			break
		}
		if !hasText(b) {
			continue
		}
		n := min(utf8.RuneCountInString(b.Text), excess)
		blocks[i].Text, excess = dropCharacters(b.Text, n), excess-n
	}
	return blocks, excess
}

// dropCharacters returns text without its first n characters.
func dropCharacters(text string, n int) string {
	for range n {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}

func withNotice(blocks []chat.Block, notice string) []chat.Block {
	if notice == "" {
		return blocks
	}
	if i := slices.IndexFunc(blocks, hasText); i >= 0 {
		blocks[i].Text = notice + blocks[i].Text
		return blocks
	}
	return slices.Insert(blocks, 0, chat.Block{Type: "text", Text: notice})
}

// Covers reports whether the view has everything, more rounds than the limit,
// or more characters.
func (p *roundWindow) Covers(v *View) bool {
	if v.Begin <= v.MinSeq() {
		return true
	}
	count := v.rounds()
	whole := len(v.Entries) > 0 && IsUser(v.Entries[0]) // the first round is
	return count > p.most || count == p.most && whole || v.chars > p.max
}

func (p *roundWindow) WithOptions(o ReadOptions) (Policy, error) {
	one := *p
	for key, to := range map[string]struct {
		value int
		field *int
	}{"n_rounds": {o.NRounds, &one.most}, "max_context": {o.MaxContext, &one.max}} {
		if to.value < 0 {
			return nil, fmt.Errorf("%s must be positive, not %d", key, to.value)
		}
		if to.value > 0 {
			*to.field = to.value
		}
	}
	switch {
	case o.NoNotice:
		one.notice = ""
	case o.Notice != "":
		one.notice = o.Notice
	}
	return &one, nil
}

// Evicted compares with the window before, not with what the view still has for reads under
// wider limits: that depends on when the view was read.
func (p *roundWindow) Evicted(v *View, first int64, before, added []*store.Entry) *store.Event {
	e := store.Event{Kind: store.EventFlush, Rule: spec.PolicyRoundWindow, Turn: v.State.Turns, Time: v.State.LastSaid,
		Limit: p.max, Unit: store.InCharacters}
	var all []*store.Entry
	for _, entry := range slices.Concat(before, added) {
		if entry.Seq < first || IsSystem(entry) {
			continue
		}
		all = append(all, entry)
		if entry.Seq >= v.State.First {
			continue
		}
		if e.Messages == 0 {
			e.From = entry.Seq
		}
		e.To, e.Messages, e.Tokens = entry.Seq, e.Messages+1, e.Tokens+entry.Tokens
	}
	if e.Messages == 0 {
		return nil
	}
	rounds, recent := 0, 0 // recent: the characters of the last rounds
	for _, entry := range slices.Backward(all) {
		n := Characters(&entry.Message)
		e.Before += n
		if rounds < p.most {
			recent += n
		}
		if IsUser(entry) {
			rounds++
		}
	}
	if recent <= p.max {
		e.Before, e.Limit, e.Unit = p.most+1, p.most, store.InRounds
	}
	return &e
}

func roundWindowReason(e store.Event) string {
	if e.Unit == store.InRounds {
		return fmt.Sprintf("%s exceeded n_rounds %s", textfmt.Count(e.Before, "round"), textfmt.Thousands(e.Limit))
	}
	return fmt.Sprintf("%s characters exceeded max_context %s; whole rounds left first", textfmt.Thousands(e.Before), textfmt.Thousands(e.Limit))
}
