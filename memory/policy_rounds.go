package memory

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// AI Refinery's defaults (reference memory.md 5).
const (
	defaultRounds     = 3
	defaultMaxContext = 10_000
	defaultNotice     = "Notice: Chat history truncated due to maximum context window. "
)

// rounds is AI Refinery's policy: the last rounds, within so many characters.
// Which they are follows from the history and the limits that hold at the time
// of reading, so nothing that a later read may want is ever given up: the view
// holds the last rounds, whole, or a little more than the characters that fit.
type rounds struct {
	most   int    // n_rounds
	max    int    // max_context, in characters
	notice string // put before the text that was cut
}

// newRounds is for limits that were checked.
func newRounds(l Limits) *rounds {
	p := &rounds{most: l.NRounds, max: l.MaxContext, notice: defaultNotice}
	if p.most == 0 {
		p.most = defaultRounds
	}
	if p.max == 0 {
		p.max = defaultMaxContext
	}
	return p
}

func (p *rounds) countsSystem() bool { return false }

// evictCount lets go of what no read under these limits can want: rounds beyond the
// number, and what stands before more than max characters. Beyond them is one
// message or round more than is sent, which is the sign that something was cut.
func (p *rounds) evictCount(v *view, _, _ int) int {
	n, count, chars := 0, v.rounds(), v.chars
	for count > p.most || chars > p.max {
		end, size := nextRound(v, n)
		if end == len(v.entries) {
			break // the newest round
		}
		if count <= p.most && chars-size <= p.max {
			return n
		}
		n, count, chars = end, count-1, chars-size
	}
	for chars > p.max {
		end, size := nextUnit(v, n)
		if end >= len(v.entries) || chars-size <= p.max {
			break
		}
		n, chars = end, chars-size
	}
	return n
}

// nextRound is where the round that begins at from ends, and its characters.
func nextRound(v *view, from int) (end, chars int) {
	end = from
	for end < len(v.entries) && (end == from || v.entries[end].Message.Role != chat.User) {
		chars += int(v.sizes[end])
		end++
	}
	return end, chars
}

// nextUnit is the same for a message with its results.
func nextUnit(v *view, from int) (end, chars int) {
	if from == len(v.entries) {
		return from, 0
	}
	end = from + unit(v.entries[from:])
	for _, size := range v.sizes[from:end] {
		chars += int(size)
	}
	return end, chars
}

// budget is how many characters fit beside the notice, and that notice. Where
// not one would, there is no notice (reference memory.md 5.5).
func (p *rounds) budget() (int, string) {
	if rest := p.max - utf8.RuneCountInString(p.notice); rest > 0 {
		return rest, p.notice
	}
	return p.max, ""
}

// selectForCall applies the rules of reference memory.md 5 in their order.
func (p *rounds) selectForCall(v *view) selection {
	n, chars := 0, v.chars
	for count := v.rounds(); count > p.most; count-- { // rule 1
		end, size := nextRound(v, n)
		n, chars = end, chars-size
	}
	if chars <= p.max {
		return selection{from: n, used: chars}
	}
	budget, notice := p.budget()
	for chars > budget { // rule 2
		end, size := nextRound(v, n)
		if end == len(v.entries) {
			break
		}
		n, chars = end, chars-size
	}
	end, size := nextUnit(v, n)
	for chars > budget && end < len(v.entries) { // rule 3
		n, chars = end, chars-size
		end, size = nextUnit(v, n)
	}
	return selection{from: n, cut: cutFront(v.entries[n:end], chars-budget, notice), note: true,
		used: min(chars, budget) + utf8.RuneCountInString(notice)}
}

// cutFront takes excess characters away at the front, message by message, and
// puts the notice before what is left of the first one. It copies what it changes.
func cutFront(entries []*Entry, excess int, notice string) []*Entry {
	var out []*Entry
	for i, e := range entries {
		if i > 0 && excess <= 0 {
			break
		}
		c := *e
		c.Message.Blocks, excess = cutBlocks(c.Message.Blocks, excess)
		if i == 0 {
			c.Message.Blocks = evictionNotice(c.Message.Blocks, notice)
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
		if !visibleText(b) {
			continue
		}
		n := min(utf8.RuneCountInString(b.Text), excess)
		blocks[i].Text, excess = suffix(b.Text, n), excess-n
	}
	return blocks, excess
}

// suffix is text without its first n characters.
func suffix(text string, n int) string {
	for range n {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}

// evictionNotice puts the notice before the first text.
func evictionNotice(blocks []chat.Block, notice string) []chat.Block {
	if notice == "" {
		return blocks
	}
	if i := slices.IndexFunc(blocks, visibleText); i >= 0 {
		blocks[i].Text = notice + blocks[i].Text
		return blocks
	}
	return slices.Insert(blocks, 0, chat.Block{Type: "text", Text: notice})
}

// visibleText tells whether a block's text is part of what a message says; the
// address of an image is not.
func visibleText(b chat.Block) bool {
	switch b.Type {
	case "image", "audio", "video", "file", "bytes":
		return false
	}
	return !b.Media()
}

// characters is how many Unicode code points the texts of a message have.
func characters(m *chat.Message) int {
	n := 0
	for _, b := range m.Blocks {
		if visibleText(b) {
			n += utf8.RuneCountInString(b.Text)
		}
	}
	return n
}

func (p *rounds) usage(_, _ int) (int, int, Unit) { return 0, p.max, InCharacters }

// describe is for evictions that fit makes; those of rounds are told by told.
func (p *rounds) describe(*Event, []*Entry) {}

// evictionEvent is the event for what left the window since base: the first entry that is
// sent is another one now. Nil where nothing left.
func (p *rounds) evictionEvent(s *transition, base *view) *Event {
	v := s.next
	e := Event{Kind: EventFlush, Rule: spec.PolicyRoundWindow, Turn: v.state.Turns, Time: v.state.LastSaid,
		Before: v.chars, Limit: p.max, Unit: InCharacters}
	for _, entries := range [][]*Entry{base.entries, s.change.Entries} {
		for _, entry := range entries {
			if entry.Seq >= v.state.First {
				break
			}
			if entry.Seq < base.state.First || isSystem(entry) {
				continue
			}
			if e.Messages == 0 {
				e.From = entry.Seq
			}
			e.To, e.Messages, e.Tokens = entry.Seq, e.Messages+1, e.Tokens+entry.Tokens
		}
	}
	if v.chars <= p.max {
		e.Before, e.Limit, e.Unit = p.most+1, p.most, InRounds
	}
	if e.Messages == 0 {
		return nil
	}
	return &e
}

// roundReason tells which of the two limits took the messages.
func roundReason(e Event) string {
	if e.Unit == InRounds {
		return fmt.Sprintf("%s were over n_rounds %s", counted(e.Before, "round"), thousands(e.Limit))
	}
	return fmt.Sprintf("%s characters were over max_context %s; whole rounds went first", thousands(e.Before), thousands(e.Limit))
}

// entries are what is sent of a view.
func (s selection) entries(v *view) []*Entry {
	rest := v.entries[s.from:len(v.entries):len(v.entries)]
	if len(s.cut) == 0 {
		return rest
	}
	return append(slices.Clip(slices.Clone(s.cut)), rest[len(s.cut):]...)
}

// ReadOptions says how one read of a round_window differs from what is declared.
// What is left zero is as declared (reference memory.md 5.6).
type ReadOptions struct {
	NRounds    int    // the most rounds
	MaxContext int    // the most characters
	Notice     string // what tells that something was cut
	NoNotice   bool   // nothing tells so, and its room is the messages'
	Empty      string // the text for a session in which nothing was said
}

// apply makes the policy of one read.
func (r ReadOptions) apply(p *rounds) (*rounds, error) {
	if err := (Limits{NRounds: r.NRounds, MaxContext: r.MaxContext}).check(spec.PolicyRoundWindow); err != nil {
		return nil, err
	}
	one := *p
	if r.NRounds != 0 {
		one.most = r.NRounds
	}
	if r.MaxContext != 0 {
		one.max = r.MaxContext
	}
	switch {
	case r.NoNotice:
		one.notice = ""
	case r.Notice != "":
		one.notice = r.Notice
	}
	return &one, nil
}

// Text is the window as plain text: a line `role: content` for each message, a
// blank line between rounds and after the system message.
func (w Window) Text() string {
	var b strings.Builder
	for i, e := range w.Messages() {
		if i > 0 && (e.Role == chat.User || i == 1 && w.System != nil && w.SystemAt == 0) {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s\n", e.Role, e.Text())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// JSON is the window as a JSON array of messages in OpenAI's form.
func (w Window) JSON() []byte {
	out := []byte{'['}
	for i, m := range w.Messages() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, chat.OpenAI(m)...)
	}
	return append(out, ']')
}

// Messages are what is sent, in order, the system message in its place.
func (w Window) Messages() []chat.Message {
	return w.appendTo(make([]chat.Message, 0, len(w.Entries)+1))
}

func (w Window) appendTo(out []chat.Message) []chat.Message {
	for i, e := range w.Entries {
		if w.System != nil && i == w.SystemAt {
			out = append(out, w.System.Message)
		}
		out = append(out, e.Message)
	}
	if w.System != nil && w.SystemAt >= len(w.Entries) {
		out = append(out, w.System.Message)
	}
	return out
}
