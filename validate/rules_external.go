package validate

import (
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// externalRules returns the rules of programs, tool servers and databases.
func externalRules() []rule {
	return []rule{noProgram(), mcpServer(), unusableStoreURL(), oneToolOfServer(), resourceAddress(), unusableContainment()}
}

func noProgram() rule {
	return rule{code: "QT434", check: on(func(p *ruleContext, t *spec.CommandTool) {
		if at, written := t.Position().Lookup("program"); strings.TrimSpace(t.Program) == "" && (written || t.Position() == nil) {
			p.list.Add(p.reportAt(at.Span(), "the tool %q has no program", t.ID).WithHint("set program to a name or a path"))
		}
	})}
}

func mcpServer() rule {
	return rule{code: "QT435", check: on(func(p *ruleContext, t *spec.MCPTool) {
		_, hasURL := t.Position().Lookup("url")
		_, hasCommand := t.Position().Lookup("command")
		hasURL, hasCommand = hasURL || t.URL != "", hasCommand || t.Command != ""
		switch {
		case hasURL && hasCommand:
			p.list.Add(p.reportAt(fieldKey(t, "url"), "the tool %q has both a command and a url", t.ID).WithHint("keep one of them"))
		case !hasURL && !hasCommand:
			p.list.Add(p.reportAt(placeOf(t, "id"), "the tool %q has neither a command nor a url", t.ID).
				WithHint("add command: to start a server, or url: for a running one"))
		case hasURL:
			p.reportIneffective(t, "url", "args", "env", "containment")
			p.reportEmptyServer(t, "url", t.URL)
		default:
			p.reportIneffective(t, "command", "auth")
			p.reportEmptyServer(t, "command", t.Command)
		}
	})}
}

// reportEmptyServer reports an empty command or url, which a run refuses.
func (p *ruleContext) reportEmptyServer(t *spec.MCPTool, key, text string) {
	if text == "" && t.Position().Complete(key) {
		p.list.Add(p.ifUsed(t, p.reportAt(placeOf(t, key), "the %s of the tool %q is empty", key, t.ID)))
	}
}

// reportIneffective reports keys that have no effect together with another key.
func (p *ruleContext) reportIneffective(t *spec.MCPTool, other string, keys ...string) {
	for _, key := range keys {
		if at, written := t.Position().Lookup(key); written {
			p.report(at.Key, "%q has no effect with %q", key, other)
		}
	}
}

func oneToolOfServer() rule {
	return rule{code: "QT441", check: on(func(p *ruleContext, s *spec.InvokeTool) {
		if t, ok := s.Tool.To.(*spec.MCPTool); ok && !t.Single() {
			p.list.Add(p.reportAt(s.Tool.Span, "the tool %q provides more than one tool of its server", t.ID).
				WithHint("list the tool to call under tools:, or one resource or prompt").WithRelated(idPlace(t), "declared here"))
		}
	})}
}

func resourceAddress() rule {
	return rule{code: "QT466", check: on(func(p *ruleContext, t *spec.MCPTool) {
		for i, address := range t.Resources {
			place := t.Position().Field("resources").Index(i).Span()
			if _, err := uritemplate.New(address); err != nil {
				p.list.Add(p.reportAt(place, "the resource %q of tool %q is not a template of an address", address, t.ID).WithHint("write arguments in braces, such as file:///{path}"))
			} else if !strings.ContainsAny(address, ":{") {
				p.list.Add(p.reportAt(place, "the resource %q of tool %q is not an address", address, t.ID).WithHint("begin it with a scheme, such as file:///"))
			}
		}
	})}
}

func unusableContainment() rule {
	return rule{code: "QT468", check: on(func(p *ruleContext, c *spec.Containment) {
		if c.Type == spec.ContainmentDocker && strings.TrimSpace(c.Image) == "" && c.Position().Complete("image") {
			p.list.Add(p.reportAt(placeOf(c, "image", "type"), "the containment of type docker has no image").WithHint("add image: with the name of an image that has the program"))
		}
		var ineffective []string
		switch c.Type {
		case spec.ContainmentNone:
			ineffective = []string{"image", "network", "read", "write"}
		case spec.ContainmentAuto, spec.ContainmentBwrap:
			ineffective = []string{"image"}
		}
		for _, key := range ineffective {
			if at, written := c.Position().Lookup(key); written {
				p.report(at.Key, "%q has no effect with containment of type %s", key, c.Type)
			}
		}
	})}
}

func unusableStoreURL() rule {
	return rule{code: "QT436", check: check{nodeType: entityType(), run: func(p *ruleContext, n spec.Node) {
		switch n := n.(type) {
		case *spec.Memory:
			if !n.Store.URL.IsZero() {
				p.checkURL(placeOf(n, "store"), "memory "+quoted(n.ID), "", n.Store.URL)
			}
		case *spec.Store:
			p.checkStoreURL(n)
		}
	}}}
}

// checkStoreURL compares a store's URL with its type.
func (p *ruleContext) checkStoreURL(s *spec.Store) {
	if _, known := p.doc.Language.StoreType(s.Type); !known {
		return // the loader reports an unknown type
	}
	needs := s.Type != "memory" && s.Type != "sqlite"
	mark := schemeMark(s.Type)
	_, written := s.Position().Lookup("url")
	switch {
	case s.Type == "memory" && written:
		p.report(fieldKey(s, "url"), "the store %q is kept in memory and has no url", s.ID)
	case needs && !written:
		p.list.Add(p.reportAt(placeOf(s, "type", "id"), "the store %q needs a url", s.ID).WithHint("add url: %s%s…", s.Type, mark))
	case !s.URL.IsZero():
		p.checkURL(placeOf(s, "url"), "store "+quoted(s.ID), s.Type, s.URL)
	}
}

// schemeMark returns what follows the scheme in addresses of a type of stores, empty for any type.
func schemeMark(name string) string {
	if _, declared := new(spec.Language).StoreType(name); name != "" && !declared {
		return ":" // of a type that the program adds
	}
	return "://"
}

// checkURL reports a URL with an unknown scheme, or one that does not match the type
// want. The message does not contain the URL, which may include a password.
func (p *ruleContext) checkURL(span source.Span, owner, want string, url spec.Secret) {
	mark := schemeMark(want)
	scheme, _, isURL := strings.Cut(url.Reveal(), mark)
	got, known := p.doc.Language.StoreAt(strings.ToLower(scheme))
	switch {
	case url.Ref != nil, strings.Contains(scheme, "${"): // known only at run time
	case !isURL && (want == "sqlite" || want == ""):
	case want != "" && got.Name != want:
		p.list.Add(p.reportAt(span, "the url of %s is not the URL of a %s store", owner, want).WithHint("it starts with %s%s", want, mark))
	case !known || got.Name == "memory":
		p.list.Add(p.reportAt(span, "the store URL of %s has an unknown scheme", owner).WithHint("use postgres://, redis://, sqlite:PATH or memory:, or the id of a store"))
	}
}
