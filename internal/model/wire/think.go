package wire

import "strings"

// The tags of reasoning in the text of an answer.
const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// ThinkSplitter separates reasoning from the text of an answer where a server leaves it in
// the text: between <think> and </think> at its beginning. Tags elsewhere are text. The
// zero value is ready to use.
type ThinkSplitter struct {
	state splitState
	held  string // the end of what came, which may be the beginning of a tag
}

// splitState is the part of an answer that comes next.
type splitState int

const (
	beforeAnswer splitState = iota // the opening tag, or text
	inReasoning
	afterReasoning // spaces after the closing tag
	inText
)

// Add takes the next part of the answer and returns what is known to be text or reasoning.
func (s *ThinkSplitter) Add(part string) (text, reasoning string) {
	rest := s.held + part
	s.held = ""
	if s.state == beforeAnswer {
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		switch {
		case strings.HasPrefix(trimmed, thinkBegin):
			s.state, rest = inReasoning, trimmed[len(thinkBegin):]
		case strings.HasPrefix(thinkBegin, trimmed):
			s.held = rest
			return "", ""
		default:
			s.state = inText
		}
	}
	if s.state == inReasoning {
		thought, after, found := strings.Cut(rest, thinkEnd)
		if !found {
			open := tagStart(rest, thinkEnd)
			s.held = rest[open:]
			return "", rest[:open]
		}
		s.state, reasoning, rest = afterReasoning, thought, after
	}
	if s.state == afterReasoning {
		if rest = strings.TrimLeft(rest, " \t\r\n"); rest != "" {
			s.state = inText
		}
	}
	return rest, reasoning
}

// End returns what was held back, at the end of the answer.
func (s *ThinkSplitter) End() (text, reasoning string) {
	held := s.held
	s.held = ""
	if s.state == inReasoning {
		return "", held
	}
	if s.state == beforeAnswer && held != "" {
		s.state = inText
	}
	return held, ""
}

// tagStart returns where a tag begins of which a text has only the beginning, the length of
// the text for none.
func tagStart(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return len(text) - n
		}
	}
	return len(text)
}
