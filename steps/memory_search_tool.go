package steps

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory"
	memorysearch "github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

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
