package server

import (
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// graphBody is a flow as a graph.
type graphBody struct {
	Nodes []graphNode `json:"nodes"`
	Edges []graphEdge `json:"edges"`
}

type graphNode struct {
	ID     string     `json:"id"`
	Type   string     `json:"type"`
	Label  string     `json:"label"`
	Reads  []string   `json:"reads"`
	Writes []string   `json:"writes"`
	Uses   []graphUse `json:"uses"`
	YAML   string     `json:"yaml"`
	Line   int        `json:"line"`
}

type graphUse struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

type graphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// getGraph answers GET /flows/{flow}/graph.
func (s *Server) getGraph(w http.ResponseWriter, r *http.Request) {
	flow, err := s.current.Load().Flow(access.PrincipalOf(r.Context()), r.PathValue("flow"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, graphOf(flow))
}

func graphOf(flow *schema.Flow) graphBody {
	g := graphBody{Nodes: []graphNode{}, Edges: []graphEdge{}}
	for i, p := range flow.Spec.Plan().Steps {
		id := p.Step.EntityID()
		node := graphNode{ID: id, Type: spec.TypeName(p.Step), Label: id, Reads: variableIDs(p.Reads), Writes: variableIDs(p.Writes), Uses: usesOf(p)}
		if pos := p.Step.Position(); pos != nil {
			node.YAML, node.Line = excerpt(pos.Span()), pos.Span().Start.Line
		}
		g.Nodes = append(g.Nodes, node)
		if i > 0 {
			g.Edges = append(g.Edges, graphEdge{g.Nodes[i-1].ID, id})
		}
	}
	return g
}

func variableIDs(refs []*spec.Ref[*spec.Variable]) []string {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.ID
	}
	return ids
}

// usesOf returns what a step uses besides variables.
func usesOf(p *spec.StepPlan) []graphUse {
	uses := []graphUse{}
	add := func(kind, id string) { uses = append(uses, graphUse{kind, id}) }
	for _, m := range p.Models() {
		add("model", m.EntityID())
	}
	for _, m := range p.Memories() {
		add("memory", m.ID)
	}
	for _, t := range p.Tools() {
		add("tool", t.EntityID())
	}
	for _, f := range p.Flows() {
		add("flow", f.ID)
	}
	for _, x := range p.Indexes() {
		add("index", x.EntityID())
	}
	return uses
}

// excerpt returns the lines of a declaration without their common indentation. Lines
// with secrets are hidden.
func excerpt(span source.Span) string {
	if span.File == nil {
		return ""
	}
	var lines []string
	indent := -1
	for n := span.Start.Line; n <= span.End.Line; n++ {
		line := span.File.Line(n)
		if isHidden(span.File, n) {
			line = line[:len(line)-len(strings.TrimLeft(line, " "))] + "***"
		}
		if text := strings.TrimLeft(line, " "); text != "" {
			if width := len(line) - len(text); indent < 0 || width < indent {
				indent = width
			}
		}
		lines = append(lines, line)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(indent, 0), len(line)):], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func isHidden(f *source.File, line int) bool {
	for _, s := range f.Hidden() {
		if s.Start.Line <= line && line <= s.End.Line {
			return true
		}
	}
	return false
}
