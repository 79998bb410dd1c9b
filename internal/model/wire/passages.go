package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// PassageType is the type of blocks with a passage: the JSON of a citation.Source.
const PassageType = "passage"

// passageTaker is a Protocol whose requests have passages as blocks that answers cite.
type passageTaker interface {
	// TakesPassages reports whether a request can have its passages as blocks.
	TakesPassages(req model.Request) bool
}

// withPassages moves the passages of a request to blocks before the question, if the protocol has such
// blocks. The system messages are then the same for all questions.
func withPassages(req model.Request, p Protocol) model.Request {
	taker, ok := p.(passageTaker)
	if !ok || req.Passages == nil || !taker.TakesPassages(req) {
		return req
	}
	at := slices.IndexFunc(req.Messages, func(m chat.Message) bool { return isUsers(m) && m.ID == req.Passages.Question })
	from := slices.IndexFunc(req.Messages, func(m chat.Message) bool {
		return NormalizeRole(m.Role) == chat.System && m.Text() == req.Passages.Text
	})
	if at < 0 || from < 0 {
		return req
	}
	var blocks []chat.Block
	for _, s := range req.Passages.Sources {
		raw, err := json.Marshal(s)
		if err != nil {
			return req
		}
		blocks = append(blocks, chat.Block{Type: PassageType, Text: string(raw)})
	}
	req.Messages = slices.Clone(req.Messages)
	req.Messages[at].Blocks = slices.Concat(blocks, req.Messages[at].Blocks)
	req.Messages[from].Blocks = []chat.Block{{Type: "text", Text: citation.BlockInstruction}}
	return req
}

// IsCitable reports whether the passages of a request can be blocks: providers refuse a blank one.
func IsCitable(p *model.Passages) bool {
	return !slices.ContainsFunc(p.Sources, func(s citation.Source) bool { return strings.TrimSpace(s.Text) == "" })
}

// SearchResult returns what a search result with a passage has: what citations name, and a title that
// begins with the number that an answer may cite.
func SearchResult(s citation.Source) (source, title string) {
	title = fmt.Sprintf("[%d] %s", s.Number, s.Title)
	if s.Heading != "" {
		title += " (" + s.Heading + ")"
	}
	return cmp.Or(s.ID, s.URL, s.Title), title
}

// ReadPassage reads the text of a block of PassageType.
func ReadPassage(text string) (s citation.Source, err error) {
	if err = json.Unmarshal([]byte(text), &s); err != nil {
		err = fmt.Errorf("a passage is not readable: %w", err)
	}
	return s, err
}
