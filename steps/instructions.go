package steps

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
)

// Instructions are what the caller of a run adds to the steps of the document that call a model.
// What the document declares has precedence.
type Instructions struct {
	Text     string          `json:"text"`                // a further system message, empty for none
	Steps    []string        `json:"steps"`               // ids of the steps that get them
	Schema   json.RawMessage `json:"schema,omitempty"`    // the JSON schema of the answer; empty for free text
	MustCall bool            `json:"must_call,omitempty"` // the model must call a tool of the caller before it answers
	Stop     []string        `json:"stop,omitempty"`      // texts before which the answer ends
	Prefix   string          `json:"prefix,omitempty"`    // the beginning of the answer, which the model continues
}

type instructionsKey struct{}

// WithInstructions returns a context in which steps send the caller's instructions to
// their models. Memories do not store them.
func WithInstructions(ctx context.Context, i *Instructions) context.Context {
	return context.WithValue(ctx, instructionsKey{}, i)
}

// instructionsFor returns the instructions for a step, empty ones if there are none.
func instructionsFor(ctx context.Context, step string) Instructions {
	i, _ := ctx.Value(instructionsKey{}).(*Instructions)
	if i == nil || !slices.Contains(i.Steps, step) {
		return Instructions{}
	}
	return *i
}

// withInstructions returns the window with the texts for a step.
func withInstructions(ctx context.Context, step string, window []chat.Message) []chat.Message {
	i := instructionsFor(ctx, step)
	window = withSystem(window, i.Text)
	if i.Prefix != "" {
		window = append(window[:len(window):len(window)], chat.Text(chat.Assistant, i.Prefix))
	}
	return window
}

// withSystem returns the window with a text as a further system message; an empty text
// adds nothing.
func withSystem(window []chat.Message, text string) []chat.Message {
	if text == "" {
		return window
	}
	at := 0
	for at < len(window) && window[at].Role == chat.System {
		at++
	}
	return slices.Insert(slices.Clone(window), at, chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: text}}})
}

// mustCall reports whether the model of a step must call one of the tools that are offered.
func mustCall(ctx context.Context, step string, offered []model.Tool, window []chat.Message) bool {
	isTool := func(m chat.Message) bool { return m.Role == chat.Tool }
	return instructionsFor(ctx, step).MustCall && len(offered) > 0 && len(tool.CallerTools(ctx)) > 0 &&
		!isTool(window[len(window)-1])
}

// stopper ends a text before the first of some texts. It holds back what may begin one of them.
// It is not safe for concurrent use.
type stopper struct {
	stops   []string
	held    string
	stopped bool
}

// next returns what of the text so far can be shown.
func (s *stopper) next(delta string) string {
	if len(s.stops) == 0 || s.stopped {
		if s.stopped {
			return ""
		}
		return delta
	}
	text := s.held + delta
	if at := s.find(text); at >= 0 {
		s.stopped, s.held = true, ""
		return text[:at]
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				keep = n
			}
		}
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// rest returns what was held back, at the end of the text.
func (s *stopper) rest() string {
	text := s.held
	s.held = ""
	return text
}

// find returns where the first stop begins, -1 if there is none.
func (s *stopper) find(text string) int {
	first := -1
	for _, stop := range s.stops {
		if at := strings.Index(text, stop); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// cut ends the text blocks of a message before the first stop.
func (s *stopper) cut(m chat.Message) chat.Message {
	if len(s.stops) == 0 {
		return m
	}
	m.Blocks = slices.Clone(m.Blocks)
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if !b.IsText() || b.IsCitation() {
			continue
		}
		if at := s.find(b.Text); at >= 0 {
			b.Text = b.Text[:at]
			m.Blocks = m.Blocks[:i+1]
			break
		}
	}
	return m
}
