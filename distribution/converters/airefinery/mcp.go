package airefinery

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
)

// mcpAgent writes the flow of an MCPClientAgent: an Agent with the tools of its servers.
func (p *project) mcpAgent(a *agent) {
	p.common(a, "magic_prompt", "system_prompt", "mcpServers", "mcp_sse_url", "enable_interpreter", "wait_time", "max_tool_calls", "tool_call_interval", "show_tool_progress")
	p.ignoreKeys(a, "enable_interpreter", "the model reads the results")
	p.ignoreKeys(a, "tool_call_interval", "calls are made at once")
	p.ignoreKeys(a, "show_tool_progress", "events and traces have the calls")
	wait := p.PositiveInt(a.config, "wait_time")
	a.calls = p.PositiveInt(a.config, "max_tool_calls")
	if servers := p.Map(a.config, "mcpServers"); servers != nil {
		for _, pair := range servers.Entries() {
			if p.AsMap(pair.Value, "server "+pair.Key) != nil {
				p.server(a, pair.Key, pair.Value, wait)
			}
		}
	}
	if address := p.Text(a.config, "mcp_sse_url"); address != "" {
		p.Add(input.Unsupported.At(a.config.KeySpan("mcp_sse_url"), "agent %s: the transport SSE has no counterpart; set the address of the server's streamable HTTP", a.name))
		p.remote(a, a.config.Get("mcp_sse_url"), p.mcpTool(a, "server"), wait, nil)
	}
	if len(a.tools) == 0 {
		p.Malformed(a.n, "agent %s has no MCP server", a.name)
	}
	system, prompt := p.Text(a.config, "system_prompt"), p.Text(a.config, "magic_prompt")
	if system == "" && prompt == "" {
		system = a.flow.Description
	}
	p.writeSteps(a, system, prompt)
}

// ignoreKeys reports a key of the config that has no effect.
func (p *project) ignoreKeys(a *agent, key, why string) {
	if a.config.Get(key) != nil {
		p.Ignored(a.config.KeySpan(key), "agent %s: %s is ignored: %s", a.name, key, why)
	}
}

// mcpTool returns an MCPTool that is not declared yet.
func (p *project) mcpTool(a *agent, name string) *document.Block {
	return new(document.Block).Set("type", "MCPTool").Set("id", p.ids.New(a.flow.ID+"_"+name, "server"))
}

// server declares the tools of a server: a program, or an address.
func (p *project) server(a *agent, name string, n *input.Node, wait int) {
	p.CheckKeys(n, "server "+name, "url", "type", "headers", "command", "args", "env")
	switch kind := p.Text(n, "type"); kind {
	case "sse":
		p.Unsupported(n.Get("type"), "server %s: the transport SSE has no counterpart; set the address of the server's streamable HTTP", name)
	case "", "stdio", "http", "http-stream", "streamable-http", "streamable_http":
	default:
		p.Malformed(n.Get("type"), "server %s: unknown type %q; using that of its other settings", name, kind)
	}
	b := p.mcpTool(a, name)
	command := p.Text(n, "command")
	switch {
	case n.Get("url") != nil:
		p.remote(a, n.Get("url"), b, wait, p.Map(n, "headers"))
		return
	case command == "":
		p.Malformed(n, `server %s has neither "url" nor "command"`, name)
		return
	}
	b.Set("command", command)
	var args document.NameList
	for _, arg := range p.List(n, "args") {
		args = append(args, arg.Text)
	}
	if len(args) > 0 {
		b.Set("args", args)
	}
	if env := p.Map(n, "env"); env != nil && len(env.Pairs) > 0 {
		values := new(document.Block)
		for _, pair := range env.Entries() {
			if !document.IsIdentifier(pair.Key) {
				p.Malformed(pair.Value, "server %s: %q is not the name of an environment variable", name, pair.Key)
				continue
			}
			values.Set(pair.Key, document.EnvText("${"+pair.Key+":-}"))
		}
		b.Set("env", values)
		p.Add(input.Assumed.At(n.KeySpan("env"), "server %s: the values of env are not copied; set environment variables of these names", name))
	}
	p.addServer(a, b, wait)
}

// remote declares the tools of a server at an address.
func (p *project) remote(a *agent, n *input.Node, b *document.Block, wait int, headers *input.Node) {
	u, err := url.Parse(n.Text)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "" {
		p.Malformed(n, "%s is not the address of a server", n.Describe())
		return
	}
	if u.User != nil {
		p.Unsupported(n, "the credentials of the address are not copied; set auth of the tool %s", b.Entries[1].Value)
		u.User = nil
	}
	b.Set("url", u.String())
	p.headers(b, headers)
	if slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) {
		b.Set("allow_private", document.Expression("true"))
	}
	p.addServer(a, b, wait)
}

// headers declares the credentials that the first header has. A value such as ENV:TOKEN names an
// environment variable; other values are not copied.
func (p *project) headers(b *document.Block, headers *input.Node) {
	if headers == nil {
		return
	}
	tool := b.Entries[1].Value.(string)
	sent := false
	for _, pair := range headers.Entries() {
		switch {
		case !spec.IsHeaderName(pair.Key) || spec.IsTransportHeader(pair.Key):
			p.Malformed(pair.Value, "%q is no name of a header that a client sets", pair.Key)
			continue
		case sent:
			p.Unsupported(pair.Value, "header %s is left out: the tool %s sends one header", pair.Key, tool)
			continue
		}
		sent = true
		variable, named := strings.CutPrefix(pair.Value.Text, "ENV:")
		if !named || !document.IsIdentifier(variable) {
			variable = strings.ToUpper(toolName(strings.ReplaceAll(tool, "-", "_"))) + "_HEADER"
			p.Assumed(pair.Value, "header %s: its value is not copied; set the environment variable %s", pair.Key, variable)
		}
		id := p.ids.New(tool+"_auth", "auth")
		p.app.Auths = append(p.app.Auths, new(document.Block).Set("type", "api_key").Set("id", id).Set("header", pair.Key).
			Set("api_key", document.EnvText("${"+variable+":-}")))
		b.Set("auth", id)
	}
}

// addServer adds the tools of a server to an agent.
func (p *project) addServer(a *agent, b *document.Block, wait int) {
	if wait > 0 {
		b.Set("timeout", fmt.Sprintf("%ds", wait))
	}
	p.app.Tools = append(p.app.Tools, b)
	a.tools = append(a.tools, b.Entries[1].Value.(string))
}
