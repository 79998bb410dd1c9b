package replay

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/memory/show"
)

// printer writes outcomes in a format.
func printer(f Format, out *bufio.Writer) func(*outcome) error {
	if f == JSON {
		return func(o *outcome) error { return o.json(out) }
	}
	lines := &show.Printer{Out: out}
	return func(o *outcome) error { return o.text(out, lines) }
}

// line is an outcome as JSON; window_tokens counts the chat messages alone, as
// the policy does (reference memory.md 2.6).
type line struct {
	Line         int               `json:"line"`
	Tokens       int               `json:"tokens"`
	Window       []json.RawMessage `json:"window"`
	WindowTokens int               `json:"window_tokens"`
	Evicted      []json.RawMessage `json:"evicted"`
	History      int64             `json:"history"`
}

func (o *outcome) json(out *bufio.Writer) error {
	l := line{Line: o.line, Tokens: o.tokens, WindowTokens: o.fill.Tokens, History: o.history,
		Window: []json.RawMessage{}, Evicted: []json.RawMessage{}}
	if o.system != nil {
		l.Window = append(l.Window, o.system.json())
	}
	for _, u := range o.window {
		l.Window = append(l.Window, u.json())
	}
	for _, u := range o.evicted {
		l.Evicted = append(l.Evicted, u.json())
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}

// json is the message as it was given, with its tokens behind.
func (u *utterance) json() json.RawMessage {
	head := u.raw[:len(u.raw)-1] // never empty: a message has a role
	return fmt.Appendf(head[:len(head):len(head)], `,"tokens":%d}`, u.tokens)
}

func (o *outcome) text(out *bufio.Writer, lines *show.Printer) error {
	if _, err := fmt.Fprintf(out, "line %d, %s said so far\n", o.line, show.Messages(int(o.history))); err != nil {
		return err
	}
	rule := ""
	if n := len(o.evicted); n > 0 {
		tokens := 0
		for _, u := range o.evicted {
			tokens += u.tokens
		}
		rule = fmt.Sprintf("%s flushed: %s tokens left", show.Messages(n), show.Thousands(tokens))
	}
	if err := lines.Window(o.fill, rule); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}
