package bedrock

import (
	"encoding/json"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// searchResult is a passage that the model cites by itself.
type searchResult struct {
	Source    string           `json:"source"`
	Title     string           `json:"title"`
	Content   []block          `json:"content"`
	Citations citationsEnabled `json:"citations"`
}

type citationsEnabled struct {
	Enabled bool `json:"enabled"`
}

// TakesPassages reports whether the passages of a request are sent as search results. Of the models of Bedrock,
// those Claude models have them that can reason, without a form of the answer.
func (p *protocol) TakesPassages(req model.Request) bool {
	known := p.Info.Known
	if known == nil || !strings.Contains(known.ID, "anthropic.") || !known.Reasoning.Reasons() || req.Schema != nil {
		return false
	}
	for name, raw := range p.Encoded {
		var members map[string]json.RawMessage
		if wire.Camel(name) != "outputConfig" || json.Unmarshal(raw, &members) != nil {
			continue
		}
		for member := range members {
			if wire.Camel(member) == "textFormat" {
				return false
			}
		}
	}
	return wire.IsCitable(req.Passages)
}

// passageBlock encodes a passage.
func passageBlock(text string) (block, error) {
	s, err := wire.ReadPassage(text)
	if err != nil {
		return block{}, err
	}
	source, title := wire.SearchResult(s)
	return block{Found: &searchResult{source, title, []block{textBlock(s.Text)}, citationsEnabled{true}}}, nil
}
