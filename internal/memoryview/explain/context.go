package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/promptcontext"
)

// writeContext tells what each context block took, and what was cut of it.
func (r *Report) writeContext(b *strings.Builder) {
	if len(r.Call.Context) == 0 {
		return
	}
	total := 0
	for _, part := range r.Call.Context {
		total += part.Tokens
	}
	fmt.Fprintf(b, "beside them stood a context of %s tokens; the messages left it %s\n", show.Thousands(total), show.Thousands(r.Call.Room))
	for _, part := range r.Call.Context {
		b.WriteString("  " + wrap(contextLine(part), 98, "            "))
	}
}

// ExportVariables writes the session's named values as one line, the operation
// with which `qtype memory replay` sets them; nothing where there are none.
func ExportVariables(ctx context.Context, m *memory.Memory, session string, out io.Writer) error {
	all, err := m.Variables(ctx, session)
	if err != nil || len(all) == 0 {
		return err
	}
	set := map[string]json.RawMessage{}
	for _, v := range all {
		set[v.Name] = v.Value
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(transcriptOp{Op: "variables", Set: set})
}

// transcriptOp is a line of a transcript that says nothing.
type transcriptOp struct {
	Op  string                     `json:"op"`
	Set map[string]json.RawMessage `json:"set"`
}

// contextLine is one block on one line.
func contextLine(part memory.ContextBlockReport) string {
	name := string(part.Block) + ":"
	var says []string
	if part.Units == 0 && part.Cut == 0 {
		says = append(says, "nothing")
	} else {
		says = append(says, fmt.Sprintf("%s, %s tokens", counted(part.Block, part.Units), show.Thousands(part.Tokens)))
	}
	if part.Through > 0 {
		says = append(says, fmt.Sprintf("of messages 1 to %d", part.Through))
	}
	if len(part.Found) > 0 {
		says = append(says, "found: "+numbers(part.Found))
	}
	if part.Cut > 0 {
		says = append(says, fmt.Sprintf("%s had no room (priority %d: the highest number is cut first)", counted(part.Block, part.Cut), part.Priority))
	}
	if part.Problem != "" {
		says = append(says, part.Problem)
	}
	return name + " " + strings.Join(says, "; ")
}

// counted is "1 value", "2 messages": what a block consists of.
func counted(kind memory.BlockKind, n int) string {
	one := map[memory.BlockKind]string{promptcontext.Variables: "value", promptcontext.Retrieval: "message"}[kind]
	if one == "" {
		one = "line"
	}
	if n == 1 {
		return "1 " + one
	}
	return show.Thousands(n) + " " + one + "s"
}

func numbers(all []int64) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = fmt.Sprint(n)
	}
	return "messages " + strings.Join(texts, ", ")
}
