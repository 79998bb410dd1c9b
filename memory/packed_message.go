package memory

import (
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Most windows without history hold texts and nothing else, and were fitted by the
// policy that fits them now. What is said there is added, and what leaves is told,
// by the numbers of the window alone: no message of it is looked at. The property
// tests hold this against Memory.said, which does the same for all windows.

// packedFitter is implemented by policies that can do so.
type packedFitter interface {
	evictionPolicy
	// fitLines is fit for a window of texts that fitted before its newest one
	// came: no system message counts, and no tool call takes results along. The
	// window has that many tokens together.
	fitLines(w *ringWindow, tokens int) int
}

func (p *messageWindow) fitLines(w *ringWindow, _ int) int { return max(w.n-p.max, 0) }

func (p *tokenWindow) fitLines(w *ringWindow, tokens int) int {
	n := 0
	for ; tokens > p.max && n < w.n; n++ {
		tokens -= w.at(n).tokens()
	}
	return n
}

func (unbounded) fitLines(*ringWindow, int) int { return 0 }

// appendLine says one text in a window that holds nothing but texts. It tells
// whether it did; otherwise nothing was said.
func (s *sessionData) appendLine(m *Memory, p evictionPolicy, on *transition, msg *chat.Message) bool {
	w, st := &s.window, &s.head.State
	fitter, ok := p.(packedFitter)
	if !ok || w.fitted != p || w.system != nil || len(w.whole) > 0 || st.Open || len(s.head.Values) > 0 ||
		msg.Role != chat.User && msg.Role != chat.Assistant {
		return false
	}
	l, ok := packText(msg, 0)
	lag := st.Turns - st.Last // the turn and the message are one more each
	if !ok || !utf8.ValidString(l.text) || int64(int32(lag)) != lag {
		return false
	}
	on.text[0].Text, on.said.Role = l.text, msg.Role
	tokens := tokensOf(m.counter, &on.said)
	if tokens < 0 || tokens > maxTokens {
		return false
	}
	now := m.moment()
	st.Last++
	st.Turns++
	l.seq, l.lag, l.micros, l.size = st.Last, int32(lag), now.UnixMicro(), l.size|uint32(tokens)
	st.LastSaid = now
	s.head.Version = nextVersion(s.head.Version)
	w.add(l)
	s.fitLines(fitter, tokens)
	return true
}

// fitLines drops what left the window after a line of so many tokens came.
func (s *sessionData) fitLines(p packedFitter, more int) {
	w, st := &s.window, &s.head.State
	st.Tokens += more
	n := p.fitLines(w, st.Tokens)
	for range n {
		st.Tokens -= w.at(0).tokens()
		st.First = w.at(0).seq + 1
		w.drop()
	}
	if n > 0 {
		st.Flushes++
		if w.n > 0 {
			st.First = w.at(0).seq
		}
	}
	st.InWindow = w.n
}
