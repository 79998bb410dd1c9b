package chat

import "slices"

// MissingResult is the text of the result that Balance adds for a tool call without one.
const MissingResult = "error: the result of this call is missing in the conversation"

// Balance returns messages in which the results of tool calls directly follow their call,
// as providers require: a call without a result gets MissingResult, a result without a
// call that precedes it is left out, and a system message between them follows the
// results. repairs counts these changes; without any, out is msgs. The tokens of added
// results are about those of a short message.
func Balance(msgs []Message) (out []Message, repairs int) {
	if !slices.ContainsFunc(msgs, usesTools) {
		return msgs, 0
	}
	b := balancer{out: make([]Message, 0, len(msgs))}
	for i := range msgs {
		b.add(&msgs[i])
	}
	b.close()
	if b.repairs == 0 {
		return msgs, 0
	}
	return b.out, b.repairs
}

func usesTools(m Message) bool { return m.HasCalls() || isResult(&m) }

func isResult(m *Message) bool { return m.Role == Tool || m.Role == Function }

// balancer builds balanced messages.
type balancer struct {
	out     []Message
	open    []ToolCall // calls of the newest message that have no result yet
	held    []Message  // system messages that follow the results
	repairs int
}

func (b *balancer) add(m *Message) {
	switch {
	case isResult(m):
		answered := slices.IndexFunc(b.open, func(c ToolCall) bool {
			return c.ID == m.ToolCallID || m.ToolCallID == "" && c.Name == m.Name
		})
		if answered < 0 {
			b.repairs++
			return
		}
		b.open = slices.Delete(b.open, answered, answered+1)
		b.out = append(b.out, *m)
	case m.Role == System && len(b.open) > 0:
		b.held = append(b.held, *m)
		b.repairs++
	default:
		b.close()
		b.out = append(b.out, *m)
		b.open = m.Calls()
	}
}

// close adds the results that are missing, and what follows them.
func (b *balancer) close() {
	for _, c := range b.open {
		b.out = append(b.out, Message{ID: "missing-" + c.ID, Role: Tool, Name: c.Name, ToolCallID: c.ID, Blocks: []Block{{Type: "text", Text: MissingResult}}})
		b.repairs++
	}
	b.open = nil
	b.out = append(b.out, b.held...)
	b.held = nil
}
