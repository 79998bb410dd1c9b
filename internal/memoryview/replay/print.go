package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// printer writes outcomes in a format.
func printer(f Format, out *bufio.Writer) func(*outcome) error {
	if f == JSON {
		return func(o *outcome) error { return o.json(out) }
	}
	lines := &show.Printer{Out: out}
	return func(o *outcome) error { return o.text(out, lines) }
}

// line is an outcome as JSON; window_tokens counts what the policy counts: the
// chat messages alone (reference memory.md 2.6), with message_window and
// token_window the system message too (3.2).
type line struct {
	Line         int               `json:"line"`
	Tokens       int               `json:"tokens"`
	Window       []json.RawMessage `json:"window"`
	WindowTokens int               `json:"window_tokens"`
	Evicted      []json.RawMessage `json:"evicted"`
	History      int64             `json:"history"`
	Context      *contextOutcome   `json:"context,omitempty"` // where the memory has context blocks
	Read         json.RawMessage   `json:"read,omitempty"`    // what the operation read gave
}

// contextOutcome is what the next call would be sent beside the messages. No model is
// asked here, so there is no summary, and nothing is found again.
type contextOutcome struct {
	Tokens int                         `json:"tokens"` // what the blocks take
	Room   int                         `json:"room"`   // what the messages leave of token_limit
	Blocks []memory.ContextBlockReport `json:"blocks"`
}

func (o *outcome) json(out *bufio.Writer) error {
	l := line{Line: o.line, Tokens: o.tokens, WindowTokens: o.fill.Tokens, History: o.history,
		Window: []json.RawMessage{}, Evicted: []json.RawMessage{}, Read: o.read}
	if o.beside != nil {
		l.Context = &contextOutcome{Tokens: o.beside.Tokens, Room: o.beside.Room, Blocks: o.beside.Parts}
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

// json is the message as it is sent, in the form in which it was given.
func (s outputMessage) json() json.RawMessage {
	if sameText(s.entry.Message.Blocks, s.message.Blocks) {
		return s.inputMessage.json()
	}
	cut := &inputMessage{raw: withContent(s.raw, s.entry.Message), tokens: s.entry.Tokens}
	return cut.json()
}

func sameText(a, b []chat.Block) bool {
	return slices.EqualFunc(a, b, func(a, b chat.Block) bool { return a.Type == b.Type && a.Text == b.Text })
}

// withContent is a message's JSON text with the content of another message: a
// text where it was one or none, else a list of parts.
func withContent(raw []byte, m chat.Message) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw // never: it was read before
	}
	old := bytes.TrimSpace(fields["content"])
	content := encode(m.Text())
	if len(old) > 0 && old[0] == '[' {
		content = encode(withTexts(old, m.Blocks))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := dec.Token()
		if err != nil {
			return fmt.Appendf(raw[:len(raw)-1:len(raw)-1], `,"content":%s}`, content)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		case "content":
			if from := int(dec.InputOffset()); depth == 1 && raw[from] == ':' { // a key, for the text is compact
				return slices.Concat(raw[:from+1], content, raw[from+1+len(old):])
			}
		}
	}
}

// textPart is a part of a content that is a text.
type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// withTexts is a list of parts with the texts of blocks; a block more than there
// are parts is a notice before them.
func withTexts(raw []byte, blocks []chat.Block) []any {
	var parts []json.RawMessage
	_ = json.Unmarshal(raw, &parts) // it was read before
	var out []any
	for i, b := range blocks {
		at := i - (len(blocks) - len(parts))
		if at < 0 || b.Type == "text" {
			out = append(out, textPart{"text", b.Text})
			continue
		}
		out = append(out, parts[at])
	}
	return out
}

// encode is v as JSON, its letters as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // texts and raw JSON always have a written form
	return bytes.TrimSpace(b.Bytes())
}

// json is the message as it was given, with its tokens behind.
func (u *inputMessage) json() json.RawMessage {
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
	lines.Context = o.beside
	if err := lines.Window(o.fill, rule); err != nil {
		return err
	}
	if o.read == nil {
		_, err := fmt.Fprintln(out)
		return err
	}
	text := string(o.read)
	if said := ""; json.Unmarshal(o.read, &said) == nil {
		text = said
	}
	_, err := fmt.Fprintf(out, "read:\n%s\n\n", text)
	return err
}
