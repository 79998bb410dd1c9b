package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

func toolRules() []rule {
	return append(hostedRules(), duplicateToolNames(), unknownPlaceholder(), requestConflict(), pythonName())
}

func duplicateToolNames() rule {
	return rule{code: "QT407", check: on(func(p *ruleContext, s *spec.Agent) {
		first := map[string]spec.Tool{}
		for i := range s.Tools {
			tool := s.Tools[i].To
			name := modelFacingName(tool)
			if name == "" {
				continue
			}
			if earlier := first[name]; earlier != nil && earlier != tool {
				p.list.Add(p.reportAt(s.Tools[i].Span, "the tools %q and %q of agent %q have the same name %q", earlier.EntityID(), tool.EntityID(), s.ID, name).
					WithRelated(placeOf(earlier, "name", "id"), "the first one's name").
					WithRelated(placeOf(tool, "name", "id"), "the second one's name"))
			} else if earlier != nil {
				p.list.Add(p.reportAt(s.Tools[i].Span, "agent %q lists the tool %q twice", s.ID, tool.EntityID()))
			}
			first[name] = tool
		}
	})}
}

// requestConflict reports keys of an APITool that contradict each other.
func requestConflict() rule {
	return rule{code: "QT463", check: on(func(p *ruleContext, t *spec.APITool) {
		if _, written := t.Position().Lookup("endpoint"); !written || !t.Position().Complete("inputs", "parameters", "endpoint", "method", "headers") || !isDecided(t.Method+t.Endpoint) || !areDecided(t.Headers) {
			return
		}
		all := t.Conflicts()
		for _, c := range all {
			if _, unknown := t.UnknownPlaceholder(); c.Key != "endpoint" || !unknown { // QT415 has the place of an unknown placeholder
				p.reportConflict(t, c)
			}
		}
		if len(all) == 0 && t.Position().Complete("header_parameters", "names", "auth") {
			p.reportDuplicate(t)
		}
	})}
}

// reportConflict reports a value with which no request can be made.
func (p *ruleContext) reportConflict(t *spec.APITool, c spec.Conflict) {
	at := placeOf(t, c.Key, "id")
	if entry, written := t.Position().Field(c.Key).Lookup(c.Entry); written && c.Entry != "" {
		if at = entry.Span(); c.Key == "names" {
			at = entry.Key // what is wrong is the name, not what is sent
		}
	}
	found := p.reportAt(at, "the tool %q: %s", t.ID, c.Problem)
	switch {
	case c.Key == "method":
		found = found.WithNearest(t.Method, spec.Methods())
	case c.Key == "endpoint" && !strings.Contains(t.Endpoint, "://") && spec.IsHTTPAddress("https://"+t.Endpoint):
		found = found.WithHint("such as https://%s", t.Endpoint)
	}
	p.list.Add(found)
}

// reportDuplicate reports a header or a query parameter that is set twice.
func (p *ruleContext) reportDuplicate(t *spec.APITool) {
	at, problem := t.Duplicate()
	if problem == "" {
		return
	}
	p.list.Add(p.ifUsed(t, p.reportAt(at.Span(), "the tool %q: %s", t.ID, problem)))
}

// ifUsed returns a diagnostic about an entity, a warning if nothing uses it: it is never
// made, so that a run does not fail.
func (p *ruleContext) ifUsed(e spec.Entity, d diag.Diagnostic) diag.Diagnostic {
	if !p.used[e] {
		return d.WithSeverity(diag.Warning)
	}
	return d
}

func pythonName() rule {
	return rule{code: "QT467", check: on(func(p *ruleContext, t *spec.PythonFunctionTool) {
		if !t.Position().Complete("module_path", "function_name") || !isDecided(t.ModulePath+t.FunctionName) {
			return
		}
		for _, c := range t.Conflicts() {
			field, written := t.Position().Lookup(c.Key)
			if !written {
				continue
			}
			d := p.reportAt(field.Span(), "the tool %q: %s", t.ID, c.Problem)
			if meant := pythonNameOf(t.ModulePath); c.Key == "module_path" && spec.IsPythonPath(meant) {
				d = d.WithSuggestion(meant)
			} else {
				d = d.WithHint("use letters, digits and _, such as shop.orders")
			}
			p.list.Add(p.ifUsed(t, d))
		}
	})}
}

// pythonNameOf returns the module that the path of a file names.
func pythonNameOf(path string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(path, ".py"), "./"), "/", ".")
}

// modelFacingName returns the name by which models call a tool. It is empty for tools
// without a fixed name, such as an MCPTool.
func modelFacingName(t spec.Tool) string {
	if t == nil {
		return ""
	}
	if f, ok := t.(*spec.FlowTool); ok && f.Name == "" {
		return f.Flow.ID
	}
	return t.Common().Name
}

func unknownPlaceholder() rule {
	return rule{code: "QT415", check: on(func(p *ruleContext, t *spec.APITool) {
		args := t.Arguments()
		for at := 0; ; {
			n := strings.Index(t.Endpoint[at:], "{")
			if n < 0 {
				return
			}
			at += n
			name, _, closed := strings.Cut(t.Endpoint[at+1:], "}")
			at++
			// The loader reports a ${NAME} that is not set.
			if !closed || spec.VariableByID(args, name) != nil || strings.HasSuffix(t.Endpoint[:at-1], "$") {
				continue
			}
			p.reportPlaceholder(t, name, excerptAt(t.Endpoint, at-1, len(name)+2))
		}
	})}
}

// reportPlaceholder reports a {name} that is not an argument.
func (p *ruleContext) reportPlaceholder(t *spec.APITool, name string, e excerpt) {
	var ids []string
	for _, v := range t.Arguments() {
		if v != nil {
			ids = append(ids, v.ID)
		}
	}
	diagnostic := p.reportAt(within(placeOf(t, "endpoint"), e), "the endpoint of tool %q uses %q, which is not an input", t.ID, name)
	if near := diag.Nearest(name, ids); near != "" {
		diagnostic = diagnostic.WithSuggestion("{" + near + "}")
		if diag.IsUnambiguous(name, near, ids) {
			diagnostic = diagnostic.WithInside("{" + name + "}")
		}
	} else if len(ids) > 0 {
		diagnostic = diagnostic.WithHint("the arguments are %s", joinNames(ids))
	}
	p.list.Add(diagnostic)
}
