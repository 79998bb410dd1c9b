package steps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory"
	memorysearch "github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// memoryTool gives a model access to the named values of a memory.
type memoryTool struct {
	declared *spec.MemoryTool
	store    variableStore
}

// NewMemoryTool makes the tool that stores the values that a model passes in m and
// returns stored values. It works in the session of the calling step, and within the
// step's turn if this is a turn of m.
func NewMemoryTool(declared *spec.MemoryTool, m *memory.Memory) tool.Tool {
	return &memoryTool{declared, variableStore{m, memory.Scope(declared.Scope)}}
}

// Info describes the tool.
func (t *memoryTool) Info() tool.Info {
	base := t.declared.Common()
	return tool.Describe(base, base.Inputs)
}

// Call stores the arguments and returns the outputs, or the names of what it stored if
// the tool has no outputs.
func (t *memoryTool) Call(ctx context.Context, args map[string]any) (any, error) {
	session, err := toolSession(ctx, t.declared.ID)
	if err != nil {
		return nil, err
	}
	given, err := t.Info().ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	var set []memory.Variable
	var names []string
	for _, in := range t.declared.Inputs {
		arg, found := given[in.ID]
		if !found {
			continue
		}
		raw, err := json.Marshal(arg)
		if err != nil {
			return nil, &tool.ArgumentError{Tool: t.declared.ID, Argument: in.ID, Problem: "cannot be encoded as JSON"}
		}
		set, names = append(set, memory.Variable{Name: in.ID, Value: raw}), append(names, in.ID)
	}
	if err := t.store.set(ctx, session, set); err != nil {
		return nil, err
	}
	if len(t.declared.Outputs) == 0 {
		if len(names) == 0 {
			return "no arguments, nothing stored", nil
		}
		return "stored: " + listed(names), nil
	}
	stored, err := t.store.read(ctx, session)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	for _, out := range t.declared.Outputs {
		answer[out.ID] = nil
		if raw, found := stored[out.ID]; found {
			numbers := json.NewDecoder(bytes.NewReader(raw))
			numbers.UseNumber()
			var v any
			if err := numbers.Decode(&v); err != nil {
				return nil, fmt.Errorf("the stored value %q is not JSON", out.ID)
			}
			answer[out.ID] = v
		}
	}
	return answer, nil
}

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

const (
	maxSearchToolMessages = 50    // that a model can request
	maxSearchToolText     = 4_000 // bytes of a message that a model gets
)

// memorySearchTool searches the history of conversations for a model.
type memorySearchTool struct {
	info     tool.Info
	scope    memory.Scope
	searcher *memorysearch.Searcher
}

// NewMemorySearchTool makes the tool that searches the messages of a scope of the session
// of the step that calls it.
func NewMemorySearchTool(declared *spec.MemoryTool, s *memorysearch.Searcher) tool.Tool {
	return &memorySearchTool{tool.Describe(declared.Common(), declared.Arguments()), memory.Scope(declared.Scope), s}
}

// Info describes the tool.
func (t *memorySearchTool) Info() tool.Info { return t.info }

// Call returns the messages that fit the query best, the best first.
func (t *memorySearchTool) Call(ctx context.Context, args map[string]any) (any, error) {
	session, given, err := sessionArguments(ctx, t.info, args)
	if err != nil {
		return nil, err
	}
	q, err := t.query(given)
	if err != nil {
		return nil, err
	}
	q.Scope = t.searcher.ScopeOf(t.scope, session)
	found, err := t.searcher.Search(ctx, q)
	if err != nil {
		return nil, &tool.FailedError{Tool: t.info.ID, Message: err.Error(), Err: err}
	}
	messages := make([]any, 0, len(found.Messages))
	for _, m := range found.Messages {
		text := m.Content
		if len(text) > maxSearchToolText {
			text = strings.ToValidUTF8(text[:maxSearchToolText], "") + "…"
		}
		messages = append(messages, map[string]any{"time": m.Time.Format(time.RFC3339), "author": cmp.Or(m.Name, string(m.Role)), "content": text})
	}
	return messages, nil
}

// query returns the search of a call.
func (t *memorySearchTool) query(given map[string]any) (q memorysearch.Query, err error) {
	q.Text = value.Text(given[spec.MemorySearchQuery])
	if strings.TrimSpace(q.Text) == "" {
		return q, &tool.ArgumentError{Tool: t.info.ID, Argument: spec.MemorySearchQuery, Problem: "is empty"}
	}
	if n, ok := given[spec.MemorySearchLimit].(int64); ok {
		q.Limit = int(min(max(n, 1), maxSearchToolMessages))
	}
	if d, ok := given[spec.MemorySearchSince].(value.Date); ok {
		q.Since = dayStart(d)
	}
	if d, ok := given[spec.MemorySearchUntil].(value.Date); ok {
		q.Until = dayStart(d).AddDate(0, 0, 1)
	}
	return q, nil
}

// dayStart returns the time at which a day begins in UTC.
func dayStart(d value.Date) time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }
