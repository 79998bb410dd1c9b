package show

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

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
