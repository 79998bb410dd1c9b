package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
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
