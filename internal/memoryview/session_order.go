package memoryview

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
)

// Order is the order of a list of sessions.
type Order string

// Orders of a list. Sessions that are equal in one are ordered by memory and id.
const (
	ByID   Order = "id"   // memory by memory, ascending ids
	ByLast Order = "last" // newest message first
	BySize Order = "size" // most messages first
)

// Orders returns all orders.
func Orders() []string { return []string{string(ByID), string(ByLast), string(BySize)} }

// compare returns how two rows are ordered.
func (o Order) compare(a, b sessionRow) int {
	first := 0
	switch o {
	case ByLast:
		first = b.LastSaid.Compare(a.LastSaid)
	case BySize:
		first = cmp.Compare(b.Messages, a.Messages)
	}
	return cmp.Or(first, cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Session, b.Session))
}

// sessionRows yields the rows that o selects, in its order: at least one more than its
// limit, if there is one.
func sessionRows(ctx context.Context, memories []Memory, o ListOptions) iter.Seq2[sessionRow, error] {
	if o.Sort == "" || o.Sort == ByID {
		return rowsByID(ctx, memories, o.SessionFilter)
	}
	return func(yield func(sessionRow, error) bool) {
		rows, err := sortedRows(ctx, memories, o)
		if err != nil {
			yield(sessionRow{}, err)
			return
		}
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// rowsByID yields the rows of memories, one after the other, while it reads them.
func rowsByID(ctx context.Context, memories []Memory, f memory.SessionFilter) iter.Seq2[sessionRow, error] {
	f.Limit = 0 // the caller ends the range
	return func(yield func(sessionRow, error) bool) {
		for _, m := range memories {
			for s, err := range m.EachSession(ctx, f) {
				if !yield(newRow(m, s), err) || err != nil {
					return
				}
			}
		}
	}
}

// sortedRows reads the sessions of all memories and returns the first ones of o's order, one
// more than its limit: no more than twice as many are in memory at once.
func sortedRows(ctx context.Context, memories []Memory, o ListOptions) ([]sessionRow, error) {
	after, err := rowAfter(ctx, memories, o)
	if err != nil {
		return nil, err
	}
	var rows []sessionRow
	o.After = "" // of the order of ids
	for row, err := range rowsByID(ctx, memories, o.SessionFilter) {
		if err != nil {
			return nil, err
		}
		if after != nil && o.Sort.compare(row, *after) <= 0 {
			continue
		}
		if rows = append(rows, row); o.Limit > 0 && len(rows) == 2*(o.Limit+1) {
			slices.SortFunc(rows, o.Sort.compare)
			rows = rows[:o.Limit+1]
		}
	}
	slices.SortFunc(rows, o.Sort.compare)
	return rows, nil
}

// rowAfter returns the row of the session that the page follows; nil for the first page.
func rowAfter(ctx context.Context, memories []Memory, o ListOptions) (*sessionRow, error) {
	if o.After == "" {
		return nil, nil
	}
	for _, m := range memories {
		info, err := m.Info(ctx, o.After)
		if err != nil {
			return nil, err
		}
		if info.Session != "" {
			row := newRow(m, info)
			return &row, nil
		}
	}
	return nil, fmt.Errorf("there is no session %q whose place in the order a page could follow", o.After)
}

// newRow returns the row of a session.
func newRow(m Memory, s memory.SessionInfo) sessionRow {
	return sessionRow{m.ID, s.Session, s.Messages, s.InWindow, s.Tokens, s.Used, s.Limit, string(s.Unit), s.Flushes, s.LastSaid, onlyShared(s)}
}

// Found writes the messages that a search found, one a line, the best first: of long ones the passage.
func (v *View) Found(found []search.Message) error {
	if v.JSON {
		return terminal.WriteJSON(v.Out, found...)
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(v.Out, "no messages found")
		return err
	}
	for _, m := range found {
		author := cmp.Or(m.Name, string(m.Role))
		if _, err := fmt.Fprintf(v.Out, "%s  %s, turn %d  %s: %s\n", m.Time.Local().Format("2006-01-02 15:04"),
			terminal.Clean(m.Session), m.Turn, terminal.Clean(author), terminal.Clean(cmp.Or(m.Passage, m.Content))); err != nil {
			return err
		}
	}
	return nil
}
