package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// outsideRules are about what lives outside of the application: programs,
// servers of tools, databases.
func outsideRules() []rule {
	return []rule{noProgram(), serverOrCommand(), storeAddress(), whichToolOfServer()}
}

func noProgram() rule {
	return rule{code: "QT434", title: "a CommandTool without a program",
		doc: "program is the name or the path of what is started. Arguments stand under args; no shell stands between, so there are no pipes and no quoting.",
		sample: sample{text: `
id: example
tools:
  - {type: CommandTool, id: count, name: count, description: Counts the words of a text, program: "⟦│wc⟧", args: [-w]}
`},
		check: on(func(p *ruleContext, t *spec.CommandTool) {
			if at, written := t.Place().Lookup("program"); strings.TrimSpace(t.Program) == "" && (written || t.Place() == nil) {
				p.list.Add(p.reportAt(at.Span(), "the tool %q names no program", t.ID).WithHint("give the name or the path of one"))
			}
		})}
}

func serverOrCommand() rule {
	return rule{code: "QT435", title: "an MCPTool without exactly one server",
		doc: "The server is either started by command, with args and env, or runs already at url, with auth.",
		sample: sample{text: `
id: example
tools:
  - {type: MCPTool, id: files, command: mcp-files, ⟦url: "http://localhost:3000/mcp"│args: [/data]⟧}
`},
		check: on(func(p *ruleContext, t *spec.MCPTool) {
			_, hasURL := t.Place().Lookup("url")
			_, hasCommand := t.Place().Lookup("command")
			hasURL, hasCommand = hasURL || t.URL != "", hasCommand || t.Command != ""
			switch {
			case hasURL && hasCommand:
				p.list.Add(p.reportAt(fieldKey(t, "url"), "the tool %q has both a command and a url", t.ID).WithHint("keep one of them"))
			case !hasURL && !hasCommand:
				p.list.Add(p.reportAt(placeOf(t, "id"), "the tool %q has neither a command nor a url", t.ID).
					WithHint("add command: to start a server, or url: for one that runs already"))
			case hasURL:
				p.without(t, "url", "args", "env")
			default:
				p.without(t, "command", "auth")
			}
		})}
}

// without reports keys that have no effect beside another.
func (p *ruleContext) without(t *spec.MCPTool, beside string, keys ...string) {
	for _, key := range keys {
		if at, written := t.Place().Lookup(key); written {
			p.report(at.Key, "%q has no effect beside %q", key, beside)
		}
	}
}

func whichToolOfServer() rule {
	return rule{code: "QT441", title: "InvokeTool calls a server of tools",
		doc: "An MCPTool can stand for all tools of a server, of which a model chooses. A step calls one for certain, so the MCPTool that it names lists exactly one under tools.",
		sample: sample{head: "tools: [{type: MCPTool, id: files, command: mcp-files⟦│, tools: [read_file]⟧}]", in: "path: text", out: "content: text",
			steps: "- {type: InvokeTool, id: read, tool: files, input_bindings: {path: path}, output_bindings: {content: content}}"},
		check: on(func(p *ruleContext, s *spec.InvokeTool) {
			if t, ok := s.Tool.To.(*spec.MCPTool); ok && len(t.Tools) != 1 {
				p.list.Add(p.reportAt(s.Tool.Span, "the tool %q stands for more than one tool of its server", t.ID).
					WithHint("list the one that is called under its tools:").WithRelated(idPlace(t), "declared here"))
			}
		})}
}

// schemes are the kinds of stores that URLs may name.
func schemes() map[string]string {
	return map[string]string{"postgres": "postgres", "postgresql": "postgres", "redis": "redis", "rediss": "redis", "sqlite": "sqlite", "file": "sqlite"}
}

func storeAddress() rule {
	return rule{code: "QT436", title: "a store's address that cannot be used",
		doc: "A store of type postgres has a URL postgres://…, one of type redis a URL redis://… or rediss://…, one of type sqlite the path of a file or sqlite://…; one of type memory has none. A memory may name its store by such an address, too; there sqlite:PATH and memory: are short forms.",
		sample: sample{text: `
id: example
memories:
  - {id: long_term, store: "⟦mysql│postgres⟧://db.example/chats"}
`},
		check: check{wants: onEntity(), run: func(p *ruleContext, n spec.Node) {
			switch n := n.(type) {
			case *spec.Memory:
				if !n.Store.URL.IsZero() {
					p.address(placeOf(n, "store"), "memory "+quoted(n.ID), "", n.Store.URL)
				}
			case *spec.Store:
				p.storeURL(n)
			}
		}}}
}

// storeURL holds a declared store's URL against its type.
func (p *ruleContext) storeURL(s *spec.Store) {
	needs := s.Type == "postgres" || s.Type == "redis"
	_, written := s.Place().Lookup("url")
	switch {
	case s.Type == "memory" && written:
		p.report(fieldKey(s, "url"), "the store %q lives in the process and has no url", s.ID)
	case needs && !written:
		p.list.Add(p.reportAt(placeOf(s, "type", "id"), "the store %q needs a url", s.ID).WithHint("add url: %s://…", s.Type))
	case !s.URL.IsZero():
		p.address(placeOf(s, "url"), "store "+quoted(s.ID), s.Type, s.URL)
	}
}

// address reports a URL of a scheme that no store has, or another than the
// type's. The URL itself may hold a password and is never repeated.
func (p *ruleContext) address(span source.Span, owner, want string, url spec.Secret) {
	scheme, _, isURL := strings.Cut(url.Reveal(), "://")
	is, known := schemes()[strings.ToLower(scheme)]
	switch {
	case url.Ref != nil, strings.Contains(scheme, "${"): // not known before the run
	case !isURL && (want == "sqlite" || want == ""):
	case want != "" && is != want:
		p.list.Add(p.reportAt(span, "the url of %s is not that of a %s store", owner, want).WithHint("it starts with %s://", want))
	case !known:
		p.list.Add(p.reportAt(span, "the store of %s has a url of an unknown kind", owner).WithHint("use postgres://, redis://, sqlite:PATH or memory:, or the id of a store"))
	}
}
