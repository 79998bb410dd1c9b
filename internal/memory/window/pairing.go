package window

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// BalanceError reports messages that Append or Set does not store, because providers reject
// a conversation with them: the results of tool calls must directly follow their call.
// The newest message may be a call that waits for its results.
type BalanceError struct {
	Memory  string          // the memory's id
	Session string          // the session
	Message int             // the index of the message among the added ones
	Role    chat.Role       // its role
	Call    string          // the id of the call whose result the message is; empty if it is not a result
	Missing []chat.ToolCall // the calls without a result that precede the message
}

// Error names the message and what is missing.
func (e *BalanceError) Error() string {
	text := fmt.Sprintf("memory %s, session %q: message %d (%s) ", e.Memory, e.Session, e.Message+1, e.Role)
	if len(e.Missing) > 0 && e.Call == "" {
		return text + fmt.Sprintf("follows the tool call %q (%s), which has no result: add its result first", e.Missing[0].ID, e.Missing[0].Name)
	}
	return text + fmt.Sprintf("is the result of tool call %q, which does not precede it", e.Call)
}

// Pairing follows the tool calls of a sequence of messages.
type Pairing struct {
	Open []chat.ToolCall // calls of the newest message that have no result yet
}

// Add continues the sequence. It reports false, and changes nothing, for a message that
// cannot be the next one.
func (p *Pairing) Add(m *chat.Message) bool {
	switch m.Role {
	case chat.System:
		return true
	case chat.Tool, chat.Function:
		at := slices.IndexFunc(p.Open, func(c chat.ToolCall) bool { return answers(m, c) })
		if at < 0 {
			return false
		}
		p.Open = slices.Delete(slices.Clone(p.Open), at, at+1)
		return true
	}
	if len(p.Open) > 0 {
		return false
	}
	p.Open = m.Calls()
	return true
}

// answers reports whether a message is the result of a call.
func answers(m *chat.Message, c chat.ToolCall) bool {
	return c.ID == m.ToolCallID || m.ToolCallID == "" && c.Name == m.Name
}

// Violation returns the error for a message that add rejected.
func (p *Pairing) Violation(key store.Key, index int, m *chat.Message) *BalanceError {
	e := &BalanceError{Memory: key.Memory, Session: key.Session, Message: index, Role: m.Role, Missing: p.Open}
	if m.Role == chat.Tool || m.Role == chat.Function {
		e.Call = m.ToolCallID
		if e.Call == "" {
			e.Call = m.Name
		}
	}
	return e
}

// CheckPairs returns a *BalanceError if messages are not balanced, apart from calls of
// the last one.
func CheckPairs(key store.Key, msgs []chat.Message) error {
	var p Pairing
	for i := range msgs {
		if !p.Add(&msgs[i]) {
			return p.Violation(key, i, &msgs[i])
		}
	}
	return nil
}

// OpenCalls returns the calls of the newest entry with calls that have no result. found
// is false if all entries are results, so that their call is not among them.
func OpenCalls(entries []*store.Entry) (open []chat.ToolCall, found bool) {
	n := len(entries)
	for n > 0 && (IsResult(entries[n-1]) || IsSystem(entries[n-1])) {
		n--
	}
	if n == 0 {
		return nil, false
	}
	p := Pairing{Open: entries[n-1].Message.Calls()}
	for _, e := range entries[n:] {
		p.Add(&e.Message) // old data may have results without calls
	}
	return p.Open, true
}
