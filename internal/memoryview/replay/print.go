package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// printer returns a function that writes snapshots in a format.
func printer(f Format, out *bufio.Writer) func(*snapshot) error {
	if f == JSON {
		return func(o *snapshot) error { return o.json(out) }
	}
	lines := &show.Printer{Out: out}
	return func(o *snapshot) error { return o.text(out, lines) }
}

// jsonLine is the JSON form of a snapshot. WindowTokens is what the policy counts:
// the chat messages and, with message_window and token_window, the system message.
type jsonLine struct {
	Line         int               `json:"line"`
	Tokens       int               `json:"tokens"`
	Window       []json.RawMessage `json:"window"`
	WindowTokens int               `json:"window_tokens"`
	Evicted      []json.RawMessage `json:"evicted"`
	History      int64             `json:"history"`
	Context      *contextLine      `json:"context,omitempty"` // nil without context blocks
	Read         json.RawMessage   `json:"read,omitempty"`    // result of the operation read
}

// contextLine is the context of the next call. No model is called here, so it has
// no summary and no retrieved messages.
type contextLine struct {
	Tokens int                        `json:"tokens"` // size of the blocks
	Room   int                        `json:"room"`   // part of token_limit that the messages leave
	Blocks []store.ContextBlockReport `json:"blocks"`
}

func (o *snapshot) json(out *bufio.Writer) error {
	l := jsonLine{Line: o.line, Tokens: o.tokens, WindowTokens: o.fill.Tokens, History: o.history,
		Window: []json.RawMessage{}, Evicted: []json.RawMessage{}, Read: o.read}
	if o.context != nil {
		l.Context = &contextLine{Tokens: o.context.Tokens, Room: o.context.Room, Blocks: o.context.Parts}
	}
	for _, u := range o.window {
		l.Window = append(l.Window, u.json())
	}
	for _, u := range o.evicted {
		l.Evicted = append(l.Evicted, u.json())
	}
	_, err := out.Write(append(encode(l), '\n'))
	return err
}

// json returns the message as it would be sent, in the form of the input.
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

// withContent returns the JSON text of a message with the content of another one:
// a list of parts if it was a list, else a text.
func withContent(raw []byte, m chat.Message) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw // unreachable: it was parsed before
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
			if from := int(dec.InputOffset()); depth == 1 && raw[from] == ':' { // a key, as the text is compact
				return slices.Concat(raw[:from+1], content, raw[from+1+len(old):])
			}
		}
	}
}

// textPart is a text in a list of parts.
type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// withTexts returns a list of parts with the texts of blocks. An additional block
// is a notice before them.
func withTexts(raw []byte, blocks []chat.Block) []json.RawMessage {
	var parts []json.RawMessage
	_ = json.Unmarshal(raw, &parts) // it was parsed before
	var out []json.RawMessage
	for i, b := range blocks {
		at := i - (len(blocks) - len(parts))
		if at < 0 || b.Type == "text" {
			out = append(out, encode(textPart{"text", b.Text}))
			continue
		}
		out = append(out, parts[at])
	}
	return out
}

// encode returns v as JSON without HTML escapes. v always has a JSON form.
func encode[T any](v T) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// json returns the message as in the input, with its tokens.
func (u *inputMessage) json() json.RawMessage {
	head := u.raw[:len(u.raw)-1] // not empty: a message has a role
	return fmt.Appendf(head[:len(head):len(head)], `,"tokens":%d}`, u.tokens)
}

func (o *snapshot) text(out *bufio.Writer, lines *show.Printer) error {
	if _, err := fmt.Fprintf(out, "line %d, %s so far\n", o.line, textfmt.Count(o.history, "message")); err != nil {
		return err
	}
	rule := ""
	if n := len(o.evicted); n > 0 {
		tokens := 0
		for _, u := range o.evicted {
			tokens += u.tokens
		}
		rule = fmt.Sprintf("%s flushed: %s tokens", textfmt.Count(n, "message"), textfmt.Thousands(tokens))
	}
	lines.Context = o.context
	if err := lines.Window(o.fill, rule); err != nil {
		return err
	}
	if o.read == nil {
		_, err := fmt.Fprintln(out)
		return err
	}
	text := string(o.read)
	if s := ""; json.Unmarshal(o.read, &s) == nil {
		text = s
	}
	_, err := fmt.Fprintf(out, "read:\n%s\n\n", text)
	return err
}
