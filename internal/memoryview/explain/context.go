package explain

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// writeContext writes what each context block took, and how much was cut.
func (r *Report) writeContext(b *strings.Builder) {
	if len(r.Call.Context) == 0 {
		return
	}
	total := 0
	for _, part := range r.Call.Context {
		total += part.Tokens
	}
	fmt.Fprintf(b, "plus a context of %s tokens; the messages left room for %s\n", textfmt.Thousands(total), textfmt.Thousands(r.Call.Room))
	for _, part := range r.Call.Context {
		b.WriteString("  " + textfmt.Wrap(contextLine(part), 98, "", "            "))
	}
}

// contextLine describes one block on one line.
func contextLine(part store.ContextBlockReport) string {
	name := string(part.Block) + ":"
	var parts []string
	if part.Units == 0 && part.Cut == 0 {
		parts = append(parts, "nothing")
	} else {
		parts = append(parts, fmt.Sprintf("%s, %s tokens", count(part.Block, part.Units), textfmt.Thousands(part.Tokens)))
	}
	if part.Through > 0 {
		parts = append(parts, fmt.Sprintf("of messages 1 to %d", part.Through))
	}
	if len(part.Found) > 0 {
		parts = append(parts, "found: "+messageList(part.Found))
	}
	if part.Cut > 0 {
		parts = append(parts, fmt.Sprintf("%s did not fit (priority %d: the highest number is cut first)", count(part.Block, part.Cut), part.Priority))
	}
	if part.Problem != "" {
		parts = append(parts, part.Problem)
	}
	return name + " " + strings.Join(parts, "; ")
}

// count returns the number of units of a block.
func count(kind store.BlockKind, n int) string {
	switch kind {
	case promptcontext.Variables:
		return textfmt.Count(n, "value")
	case promptcontext.Retrieval:
		return textfmt.Count(n, "message")
	case promptcontext.Facts:
		return textfmt.Count(n, "fact")
	}
	return textfmt.Count(n, "line")
}

// messageList returns "messages 1, 2".
func messageList(seqs []int64) string {
	texts := make([]string, len(seqs))
	for i, n := range seqs {
		texts[i] = fmt.Sprint(n)
	}
	return "messages " + strings.Join(texts, ", ")
}
