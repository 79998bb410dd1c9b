package steps

import (
	"context"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// maxReadText is the number of characters of a message that a model gets at a time.
const maxReadText = 16_000

// memoryReadTool reads messages of a conversation for a model.
type memoryReadTool struct {
	info   tool.Info
	memory *memory.Memory
}

// NewMemoryReadTool makes the tool that returns messages of the calling step's session, also
// of its open turn.
func NewMemoryReadTool(declared *spec.MemoryTool, m *memory.Memory) tool.Tool {
	return &memoryReadTool{tool.Describe(declared.Common(), declared.Arguments()), m}
}

// Info describes the tool.
func (t *memoryReadTool) Info() tool.Info { return t.info }

// Call returns a part of a message.
func (t *memoryReadTool) Call(ctx context.Context, args map[string]any) (any, error) {
	session, given, err := sessionArguments(ctx, t.info, args)
	if err != nil {
		return nil, err
	}
	position, _ := given[spec.MemoryReadMessage].(int64)
	offset, _ := given[spec.MemoryReadOffset].(int64)
	m, err := t.message(ctx, session, position)
	if err != nil {
		return nil, &tool.FailedError{Tool: t.info.ID, Message: err.Error(), Err: err}
	}
	if m.Role == chat.System {
		return nil, &tool.ArgumentError{Tool: t.info.ID, Argument: spec.MemoryReadMessage, Problem: "is a system message, which cannot be read"}
	}
	text := []rune(m.Text())
	if offset < 0 || offset > int64(len(text)) {
		return nil, &tool.ArgumentError{Tool: t.info.ID, Argument: spec.MemoryReadOffset, Problem: "is not a position in the message"}
	}
	rest := text[offset:]
	part := rest[:min(len(rest), maxReadText)]
	result := map[string]any{"content": string(part), "characters": len(text)}
	if len(part) < len(rest) {
		result["next_offset"] = int(offset) + len(part)
	}
	return result, nil
}

// message returns a message of the active turn or of the session.
func (t *memoryReadTool) message(ctx context.Context, session string, position int64) (chat.Message, error) {
	if turn := activeTurn(ctx, t.memory, session); turn != nil {
		return turn.Message(position)
	}
	return t.memory.Message(ctx, session, position)
}
