package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The types of search results and of citations of them.
const (
	searchResultType   = "search_result"
	searchLocationType = "search_result_location"
)

// cites reports whether a request can have search results, which the model cites by itself. Only Claude
// has them, and no citations beside a schema of the answer.
func (p *protocol) cites(req model.Request) bool {
	config, _ := parseObject(p.Encoded["output_config"]) // none without the parameter
	return p.isClaude() && req.Schema == nil && config.get("format") == nil
}

// TakesPassages reports whether the passages of a request are sent as search results. A blank one is refused.
func (p *protocol) TakesPassages(req model.Request) bool {
	return p.cites(req) && wire.IsCitable(req.Passages)
}

// passageTools returns the names of the tools whose results are sent as search results.
func (p *protocol) passageTools(req model.Request) []string {
	if !p.cites(req) {
		return nil
	}
	var names []string
	for _, t := range req.Tools {
		if t.Passages {
			names = append(names, t.Name)
		}
	}
	return names
}

// searchResults returns the passages that a tool has found; nil for other results.
func searchResults(m chat.Message, tools []string) []part {
	var sources []citation.Source
	if !slices.Contains(tools, m.Name) || json.Unmarshal([]byte(m.Text()), &sources) != nil {
		return nil
	}
	var results []part
	for _, s := range sources {
		if strings.TrimSpace(s.Text) == "" { // is refused
			return nil
		}
		results = append(results, searchResult(s))
	}
	return results
}

// searchResult encodes a passage.
func searchResult(s citation.Source) part {
	source, title := wire.SearchResult(s)
	r := object{{"type", quote(searchResultType)}, {"source", quote(source)}, {"title", quote(title)}}
	r.set("content", array([]json.RawMessage{object{{"type", quote(textType)}, {textType, quote(s.Text)}}.json()}))
	r.set("citations", json.RawMessage(`{"enabled":true}`))
	return part{Type: searchResultType, raw: r.json(), source: source}
}

// withoutMovedCitations removes the citations of search results that are not in the request any more,
// or at another place: a citation has the index of its result among all of the request.
func withoutMovedCitations(turns []turn) []turn {
	var sources []string
	for i := range turns {
		for j := range turns[i].Content {
			p := &turns[i].Content[j]
			results, _ := p.Content.([]part)
			for _, r := range append([]part{*p}, results...) {
				if r.Type == searchResultType {
					sources = append(sources, r.source)
				}
			}
			if p.Type == textType && p.raw != nil {
				p.raw = withCitationsOf(p.raw, sources)
			}
		}
	}
	return turns
}

// withCitationsOf returns a text with its citations of these search results, and without those of others.
func withCitationsOf(raw json.RawMessage, sources []string) json.RawMessage {
	members, err := parseObject(raw)
	var list, kept []json.RawMessage
	if err != nil || json.Unmarshal(members.get("citations"), &list) != nil {
		return raw
	}
	for _, one := range list {
		var at struct {
			Type   string `json:"type"`
			Index  int    `json:"search_result_index"`
			Source string `json:"source"`
		}
		moved := json.Unmarshal(one, &at) == nil && at.Type == searchLocationType &&
			(at.Index < 0 || at.Index >= len(sources) || sources[at.Index] != at.Source)
		if !moved {
			kept = append(kept, one)
		}
	}
	switch {
	case len(kept) == len(list):
		return raw
	case len(kept) == 0:
		return members.without("citations").json()
	}
	members.set("citations", array(kept))
	return members.json()
}
