package window

import (
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// messageWindow keeps the newest messages, as LangChain4j's MessageWindowChatMemory does.
type messageWindow struct {
	countedSystem
	max int // max_messages
}

func newMessageWindow(l Limits) Policy { return &messageWindow{max: l.int("max_messages")} }

func (p *messageWindow) Evict(v *View, _, _ int) Eviction {
	n := orphanedResults(v)
	for n < len(v.Entries) && len(v.Entries)-n+v.reserved+v.SystemCount() > p.max {
		n += v.unit(n)
	}
	return evictPrefix(n)
}

// SelectForCall applies the limit again: a lower limit is valid for every read,
// and a higher one shows again what no append has evicted since.
func (p *messageWindow) SelectForCall(v *View) Selection { return Selection{Left: p.Evict(v, 0, -1)} }

func (p *messageWindow) Usage(messages, _ int) (int, int, store.Unit) {
	return messages, p.max, store.InMessages
}

func messageWindowReason(e store.Event) string {
	return windowReason(e, "max_messages", textfmt.Count(e.Before, "message")+" in the window",
		textfmt.Count(max(e.Before-e.Limit, 0), "message"), textfmt.Count(e.Messages, "message"))
}
