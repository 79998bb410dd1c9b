package window

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Window is what the next call of a model receives. Its entries are shared
// with the memory and must not be modified.
type Window struct {
	System   *store.Entry   // the system message, nil for none; Seq is 0 if a step supplied it
	SystemAt int            // number of Entries that precede the system message
	Entries  []*store.Entry // the chat messages, oldest first
	Tokens   int            // tokens that the policy counts; they include the system message with message_window and token_window only
	Used     int            // how much of Limit is used
	Limit    int            // the most that Used may be, 0 for no limit
	Unit     store.Unit     // unit of Used and Limit
	Cut      bool           // max_context removed something; Entries may begin with shortened texts
}

// Messages returns the messages in order, the system message in its place.
func (w Window) Messages() []chat.Message {
	out := make([]chat.Message, 0, len(w.Entries)+1)
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

// Text returns the window as plain text: a line `role: content` for each
// message, and a blank line between rounds and after the system message.
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

// JSON returns the window as a JSON array of messages in OpenAI's form.
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
