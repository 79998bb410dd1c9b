// Package show prints windows and histories as text: the role, content and tokens
// of each message, and how full the window is.
package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

const (
	defaultWidth = 86 // columns of a line
	roleWidth    = 14 // columns of the role or name
	barWidth     = 40 // columns of the bar of the window
)

// Printer prints messages in columns.
type Printer struct {
	Total   int // messages of the window, if not all of them are shown
	Out     io.Writer
	Width   int                    // columns of a line; 0 means 86
	Context *memory.ContextPreview // printed by Window; nil if the memory has no context blocks
	Pinned  func(seq int64) bool   // reports whether a message is pinned; nil for none
	Raw     bool                   // print the items of providers below their messages
	tools   map[string]string      // names of called tools by call id
}

// Window prints the system message, a rule with a text unless it is empty, the
// messages, and how full the window is.
func (p *Printer) Window(w memory.Window, rule string) error {
	var b strings.Builder
	system := func(at int) {
		if w.System != nil && w.SystemAt == at {
			b.WriteString(p.line(w.System.Message, w.System.Tokens))
		}
	}
	system(0)
	b.WriteString(p.parts(true))
	if rule != "" {
		b.WriteString(p.rule(rule))
	}
	for i, e := range w.Entries {
		b.WriteString(p.entry(e))
		system(i + 1)
	}
	b.WriteString(p.parts(false))
	name := "window "
	if p.Context != nil {
		name = "window  " // aligned with the line of the context
	}
	b.WriteString(name + fill(w, max(p.Total, len(w.Entries))) + "\n" + p.share())
	_, err := io.WriteString(p.Out, b.String())
	return err
}

// Message prints one message. The result of a tool has the tool's name if the call
// was printed before.
func (p *Printer) Message(e *memory.Entry) error {
	_, err := io.WriteString(p.Out, p.entry(e))
	return err
}

// FullMessage prints all lines of a message below its role.
func (p *Printer) FullMessage(m chat.Message, tokens int) error {
	var b strings.Builder
	count := textfmt.Thousands(tokens)
	b.WriteString(runewidth.FillRight(strings.TrimSpace(p.roleColumn(m)), p.width()-len(count)-1) + " " + count + "\n")
	for _, block := range m.Blocks {
		text := content(chat.Message{Blocks: []chat.Block{block}})
		switch {
		case text == "":
			continue
		case block.IsText() && block.Type == "text":
			text = terminal.Printable(strings.TrimRight(block.Text, "\n"))
		case block.IsModels() && block.Call == nil && block.Text != "":
			text = block.Type + ": " + terminal.Printable(strings.TrimRight(block.Text, "\n"))
		}
		for l := range strings.SplitSeq(text, "\n") {
			b.WriteString(strings.TrimRight("  "+l, " ") + "\n")
		}
	}
	_, err := io.WriteString(p.Out, b.String()+p.items(&m))
	return err
}

// Rule prints a horizontal line with a text.
func (p *Printer) Rule(text string) error {
	_, err := io.WriteString(p.Out, p.rule(text))
	return err
}

func (p *Printer) width() int {
	if p.Width == 0 {
		return defaultWidth
	}
	return max(p.Width, 40)
}

// entry returns the line of a message, with marks if it is pinned, and if its user stopped it.
func (p *Printer) entry(e *memory.Entry) string {
	m := e.Message
	if p.Pinned != nil && p.Pinned(e.Seq) {
		m.Blocks = slices.Insert(slices.Clone(m.Blocks), 0, chat.Block{Type: "text", Text: "[pinned]"})
	}
	if m.Stopped {
		m.Blocks = slices.Insert(slices.Clone(m.Blocks), 0, chat.Block{Type: "text", Text: "[stopped]"})
	}
	return p.line(m, e.Tokens) + p.items(&m)
}

// items returns the items of a message: the field, the origin, the size and the JSON of each; empty unless
// they are asked for.
func (p *Printer) items(m *chat.Message) string {
	if !p.Raw {
		return ""
	}
	var b strings.Builder
	for i := range m.Blocks {
		item := m.Blocks[i].Item
		if item == nil {
			continue
		}
		b.WriteString("    " + plain(item.String()))
		if o := m.Origin; o != nil {
			b.WriteString(" from " + plain(fmt.Sprintf("%s, %s, %s", o.Model, o.API, o.Server)))
		}
		b.WriteString("\n")
		if item.JSON != "" {
			b.WriteString("      " + plain(item.JSON) + "\n")
		}
	}
	return b.String()
}

// line returns `role  text  tokens`, with the text truncated to fit.
func (p *Printer) line(m chat.Message, tokens int) string {
	count := textfmt.Thousands(tokens)
	room := p.width() - roleWidth - len(count) - 1
	role := runewidth.FillRight(runewidth.Truncate(p.roleColumn(m), roleWidth-1, "…"), roleWidth)
	text := runewidth.FillRight(runewidth.Truncate(content(m), room, "…"), room)
	return role + text + " " + count + "\n"
}

func (p *Printer) roleColumn(m chat.Message) string {
	if p.tools == nil {
		p.tools = map[string]string{}
	}
	for _, c := range m.Calls() {
		p.tools[c.ID] = c.Name
	}
	switch name := p.tools[m.ToolCallID]; {
	case m.ToolCallID != "" && name != "":
		return "  " + plain(name)
	case m.Name != "":
		return string(m.Role) + " " + plain(m.Name)
	}
	return string(m.Role)
}

// maxThought is how many characters of reasoning or commentary a line shows.
const maxThought = 20

// content returns a message on one line: texts, [media], → tool(arguments), the beginning of reasoning and
// commentary, and the names of items without text.
func content(m chat.Message) string {
	var parts []string
	for _, b := range m.Blocks {
		switch {
		case b.Media():
			parts = append(parts, fmt.Sprintf("[%s, %s bytes]", b.Type, textfmt.Thousands(len(b.Data))))
		case slices.Contains([]string{"image", "audio", "video", "file", "bytes"}, b.Type):
			parts = append(parts, fmt.Sprintf("[%s %s]", b.Type, plain(b.Text)))
		case b.Call != nil:
			parts = append(parts, fmt.Sprintf("→ %s(%s)", plain(b.Call.Name), plain(b.Call.Arguments)))
		case b.IsModels() && b.Text != "":
			parts = append(parts, fmt.Sprintf("(%s: %s)", b.Type, textfmt.Ellipsis(plain(b.Text), maxThought)))
		case b.Item != nil && b.Text == "":
			parts = append(parts, plain(b.Item.String()))
		case b.Text != "":
			parts = append(parts, plain(b.Text))
		}
	}
	return strings.Join(parts, " ")
}

// plain returns text on one line, without control characters, which could move the
// terminal's cursor.
func plain(text string) string {
	text = textfmt.OneLine(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

func (p *Printer) rule(text string) string {
	left := strings.Repeat("─", 12)
	rest := max(p.width()-12-2-runewidth.StringWidth(text), 3)
	return left + " " + text + " " + strings.Repeat("─", rest) + "\n"
}

// fill returns how full a window is.
func fill(w memory.Window, messages int) string {
	switch {
	case w.Limit == 0:
		return fmt.Sprintf("%s, %s tokens, no limit", textfmt.Count(messages, "message"), textfmt.Thousands(w.Tokens))
	case w.Unit == store.InTokens:
		return fmt.Sprintf("%s  %s of %s tokens", bar(w.Used, w.Limit), textfmt.Thousands(w.Used), textfmt.Thousands(w.Limit))
	}
	return fmt.Sprintf("%s  %s of %s %s, %s tokens", bar(w.Used, w.Limit), textfmt.Thousands(w.Used), textfmt.Thousands(w.Limit), w.Unit, textfmt.Thousands(w.Tokens))
}

// bar draws n as a part of limit.
func bar(n, limit int) string {
	full := barWidth
	if limit > 0 && n < limit {
		full = n * barWidth / limit
	}
	return "▕" + strings.Repeat("█", full) + strings.Repeat("▏", barWidth-full)
}

// parts returns lines for the context blocks: the stable ones, after the system
// message, or the others, before the newest user message.
func (p *Printer) parts(stable bool) string {
	if p.Context == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range p.Context.Parts {
		if part.Stable != stable || part.Text == "" && !part.Pending {
			continue
		}
		text := part.Text
		if _, rest, more := strings.Cut(text, "\n"); more && part.Block != promptcontext.Pinned {
			text = rest // without the heading, which is meant for the model
		}
		text = plain(text)
		if part.Pending {
			text = "(retrieved for the next message)"
		}
		count := textfmt.Thousands(part.Tokens)
		room := p.width() - roleWidth - len(count) - 1
		b.WriteString(runewidth.FillRight(string(part.Block), roleWidth) +
			runewidth.FillRight(runewidth.Truncate(text, room, "…"), room) + " " + count + "\n")
		if part.Cut > 0 {
			b.WriteString(strings.Repeat(" ", roleWidth) + fmt.Sprintf("(%d more did not fit)", part.Cut) + "\n")
		}
	}
	return b.String()
}

// share returns how full the room of the context is.
func (p *Printer) share() string {
	switch {
	case p.Context == nil:
		return ""
	case p.Context.Refused != nil:
		return "context: the next call would be refused: " + plain(p.Context.Refused.Error()) + "\n"
	}
	return fmt.Sprintf("context %s  %s of %s tokens left by the messages\n", bar(p.Context.Tokens, p.Context.Room), textfmt.Thousands(p.Context.Tokens), textfmt.Thousands(p.Context.Room))
}
