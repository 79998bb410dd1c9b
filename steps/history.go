package steps

import (
	"context"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// callerHistory is the conversation of a caller that keeps it. Steps with a memory use
// a copy of the memory that has these messages only, and nothing is stored.
type callerHistory struct {
	messages []chat.Message

	mu       sync.Mutex
	memories map[*memory.Memory]*memory.Memory // the copies
}

type callerHistoryKey struct{}

// WithHistory returns a context in which conversations begin with messages. Steps neither
// read nor write memories in it.
func WithHistory(ctx context.Context, messages []chat.Message) context.Context {
	return context.WithValue(ctx, callerHistoryKey{}, &callerHistory{messages: messages, memories: map[*memory.Memory]*memory.Memory{}})
}

// callerHistoryFrom returns the history of the caller, nil for none.
func callerHistoryFrom(ctx context.Context) *callerHistory {
	h, _ := ctx.Value(callerHistoryKey{}).(*callerHistory)
	return h
}

// memoryFor returns the memory that a step uses in place of m: m itself, or its copy
// with the history of the caller.
func memoryFor(ctx context.Context, m *memory.Memory) (*memory.Memory, error) {
	h := callerHistoryFrom(ctx)
	if h == nil || m == nil {
		return m, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if own := h.memories[m]; own != nil {
		return own, nil
	}
	own, err := m.Ephemeral(h.messages)
	if err != nil {
		return nil, err
	}
	h.memories[m] = own
	return own, nil
}

type startingKey struct{}

// withStartingMessages returns a context in which conversations without a memory begin
// with messages. Those with a memory have what it remembers.
func withStartingMessages(ctx context.Context, messages []chat.Message) context.Context {
	return context.WithValue(ctx, startingKey{}, &messages)
}

// startingMessages returns what a conversation without a memory begins with.
func startingMessages(ctx context.Context) []chat.Message {
	if own, _ := ctx.Value(startingKey{}).(*[]chat.Message); own != nil {
		return slices.Clone(*own)
	}
	h := callerHistoryFrom(ctx)
	if h == nil {
		return nil
	}
	return slices.Clone(h.messages)
}

// WithToolSession returns the context for the flow of a FlowTool. Where the tool's session
// is not the caller's, conversations in it do not begin with the caller's history; nothing
// is stored of a session of one call, or for a caller that keeps the history.
func WithToolSession(ctx context.Context, t *spec.FlowTool) context.Context {
	ctx = context.WithValue(withoutHandBack(ctx), startingKey{}, (*[]chat.Message)(nil))
	switch {
	case t.Session == spec.SessionOfCall, t.Session == spec.SessionOfTool && callerHistoryFrom(ctx) != nil:
		return WithHistory(ctx, nil)
	}
	return ctx
}
