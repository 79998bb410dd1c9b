package memory

import (
	"context"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// openCalls returns the tool calls of a session that wait for their results. The history
// is read only if its newest message is not in the window.
func (m *Memory) openCalls(ctx context.Context, key store.Key, v *view) ([]chat.ToolCall, error) {
	if n := len(v.entries); n > 0 && v.entries[n-1].Seq == v.state.Last {
		if !isToolUse(v.entries[n-1]) {
			return nil, nil
		}
		if open, found := openCallsOf(v.entries); found {
			return open, nil
		}
	}
	wasRewound := v.state.WasRewound()
	for size := int64(16); ; size *= 4 {
		from := max(v.state.Last-size+1, v.minSeq())
		if from > v.state.Last {
			return nil, nil
		}
		var newest []*store.Entry
		for e, err := range m.store.Entries(ctx, key, store.Query{From: from, To: v.state.Last, Live: true}) {
			if err != nil {
				return nil, err
			}
			if !wasRewound(e.Seq) {
				newest = append(newest, e)
			}
		}
		if open, found := openCallsOf(newest); found || from <= v.minSeq() {
			return open, nil
		}
	}
}
