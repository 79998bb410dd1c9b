package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// hosted is a tool that the provider runs.
type hosted struct {
	newest string // its type for models with adaptive thinking
	first  string // its type for all others
	name   string // the provider's name of the tool; empty for a set of tools
	beta   string // the feature that it needs; empty for none
}

const (
	mcpKind    = "mcp"
	searchKind = "tool_search"
)

// hostedTools are the provider's tools, by their kinds. A document can set another type in their settings.
var hostedTools = map[string]hosted{
	"web_search":     {newest: "web_search_20260318", first: "web_search_20250305", name: "web_search"},
	"web_fetch":      {newest: "web_fetch_20260318", first: "web_fetch_20250910", name: "web_fetch"},
	"code_execution": {newest: "code_execution_20260521", first: "code_execution_20250825", name: "code_execution"},
	"advisor":        {newest: "advisor_20260301", first: "advisor_20260301", name: "advisor", beta: "advisor-tool-2026-03-01"},
	searchKind:       {newest: "tool_search_tool_bm25_20251119", first: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25"},
	mcpKind:          {newest: "mcp_toolset", first: "mcp_toolset", beta: mcpBeta},
}

// toolset is what a request has of tools.
type toolset struct {
	tools   []object
	servers []object // servers with the Model Context Protocol that the provider calls
	betas   []string
}

// toolsOf encodes tools. Tools are deferred where the model can search them: the tool for it is
// added.
func (p *protocol) toolsOf(tools []model.Tool) (toolset, error) {
	var set toolset
	deferred, searches := false, false
	for _, t := range tools {
		if t.Hosted == "" {
			later := t.Deferred && p.isClaude()
			deferred = deferred || later
			set.tools = append(set.tools, p.function(t, later))
			continue
		}
		searches = searches || t.Hosted == searchKind
		if err := p.addHosted(&set, t); err != nil {
			return set, err
		}
	}
	if deferred && !searches {
		return set, p.addHosted(&set, model.Tool{Hosted: searchKind})
	}
	return set, nil
}

// function encodes a tool that the program runs.
func (p *protocol) function(t model.Tool, later bool) object {
	o := object{{"name", quote(t.Name)}}
	if t.Description != "" {
		o.setText("description", t.Description)
	}
	if t.Strict && p.bindsSchemas() {
		o.set("input_schema", ClosedSchema(t.Parameters))
		o.set("strict", json.RawMessage("true"))
	} else {
		o.set("input_schema", t.Parameters)
	}
	if later {
		o.set("defer_loading", json.RawMessage("true"))
	}
	return o
}

// addHosted adds a tool that the provider runs.
func (p *protocol) addHosted(set *toolset, t model.Tool) error {
	kind, ok := hostedTools[t.Hosted]
	if !ok {
		return fmt.Errorf("anthropic has no hosted tool %s, only %s", t.Hosted, strings.Join(slices.Sorted(maps.Keys(hostedTools)), ", "))
	}
	o := object{{"type", quote(kind.first)}}
	if p.thinksAdaptively() {
		o.setText("type", kind.newest)
	}
	if kind.name != "" {
		o.setText("name", kind.name)
	}
	if len(t.Settings) > 0 {
		settings, err := parseObject(t.Settings)
		if err != nil {
			return fmt.Errorf("the settings of the tool %s must be a map", t.Hosted)
		}
		for _, m := range settings {
			o.set(m.name, m.value)
		}
	}
	if t.Hosted == mcpKind {
		o = set.addServer(o, t.Name)
	}
	set.tools = append(set.tools, o)
	if kind.beta != "" && !slices.Contains(set.betas, kind.beta) {
		set.betas = append(set.betas, kind.beta)
	}
	return nil
}

// addServer adds the server of a set of tools and returns the set, which refers to it by its name.
func (s *toolset) addServer(settings object, name string) object {
	server := object{{"type", quote("url")}}
	server.setText("name", cmp.Or(settings.text("name"), name))
	for _, member := range []string{"url", "authorization_token"} {
		if v := settings.get(member); v != nil {
			server.set(member, v)
		}
	}
	s.servers = append(s.servers, server)
	set := settings.without("name", "url", "authorization_token")
	set.set("mcp_server_name", server.get("name"))
	return set
}

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
