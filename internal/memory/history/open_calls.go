package history

import (
	"context"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// OpenCalls returns the tool calls of a session that wait for their results. The history
// is read only if its newest message is not in the window.
func (r *Reader) OpenCalls(ctx context.Context, key store.Key, v *window.View) ([]chat.ToolCall, error) {
	if v.EndsWithText() {
		return nil, nil
	}
	if n := len(v.Entries); n > 0 && v.Entries[n-1].Seq == v.State.Last {
		if !window.IsToolUse(v.Entries[n-1]) {
			return nil, nil
		}
		if open, found := window.OpenCalls(v.Entries); found {
			return open, nil
		}
	}
	if v.State.Last < v.MinSeq() {
		return nil, nil
	}
	return r.readOpenCalls(ctx, key, v)
}

// readOpenCalls is OpenCalls for a session whose newest messages are not in the window.
func (r *Reader) readOpenCalls(ctx context.Context, key store.Key, v *window.View) ([]chat.ToolCall, error) {
	wasRewound := v.State.WasRewound()
	for size := int64(16); ; size *= 4 {
		from := max(v.State.Last-size+1, v.MinSeq())
		if from > v.State.Last {
			return nil, nil
		}
		var newest []*store.Entry
		for e, err := range r.Store.Entries(ctx, key, store.Query{From: from, To: v.State.Last, Live: true}) {
			if err != nil {
				return nil, err
			}
			if !wasRewound(e.Seq) {
				newest = append(newest, e)
			}
		}
		if open, found := window.OpenCalls(newest); found || from <= v.MinSeq() {
			return open, nil
		}
	}
}
