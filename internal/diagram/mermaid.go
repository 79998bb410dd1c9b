package diagram

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/spec"
)

// mermaid returns a flowchart. Shapes in the form @{…} require Mermaid 11.3.
func mermaid(g *graph) string {
	m := &mermaidWriter{names: map[*node]string{}, isTaken: map[string]bool{}}
	m.line(0, "flowchart TD")
	m.line(1, `subgraph APP["📱 %s"]`, escapeLabel(g.title))
	m.line(2, "direction TB")
	for i, f := range g.flows {
		m.flow(i, f)
	}
	m.line(1, "end")
	m.group("RESOURCES", "🔧 resources", g.resources, func(n *node) bool { return n.kind != spec.KindTelemetry })
	m.group("TELEMETRY", "📊 telemetry", g.resources, func(n *node) bool { return n.kind == spec.KindTelemetry })
	for _, l := range g.links {
		m.line(1, `%s -.->|"%s"| %s`, m.names[l.from], escapeLabel(l.label), m.names[l.to])
	}
	m.traceLinks(g)
	m.styles(g)
	return m.text.String()
}

// mermaidWriter writes a flowchart line by line.
type mermaidWriter struct {
	text    strings.Builder
	names   map[*node]string // the Mermaid ids
	isTaken map[string]bool  // the Mermaid ids in use
}

func (m *mermaidWriter) line(depth int, format string, args ...any) {
	m.text.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&m.text, format, args...)
	m.text.WriteByte('\n')
}

// flow writes the subgraph of a flow. Links to the flow lead to the subgraph.
func (m *mermaidWriter) flow(i int, f *flow) {
	id := fmt.Sprintf("FLOW_%d", i)
	m.names[&f.node] = id
	m.line(2, `subgraph %s["🔄 %s"]`, id, escapeLabel(f.title))
	direction := "TB"
	if len(f.notes) > 0 { // the flow has an interface
		direction = "LR"
	}
	m.line(3, "direction %s", direction)
	if len(f.inputs) > 0 {
		m.line(3, `%s_START(("▶"))`, id)
	}
	if len(f.outputs) > 0 {
		m.line(3, `%s_END(("■"))`, id)
	}
	for j, s := range f.steps {
		name := fmt.Sprintf("%s_S%d", id, j)
		if m.names[s] == "" {
			m.names[s] = name
		}
		style := stepStyleOf(s.plan)
		m.line(3, `%s@{ shape: %s, label: "%s %s" }`, name, style.shape, style.icon, escapeLabel(stepLabel(s)))
	}
	if len(f.steps) == 0 && len(f.inputs)+len(f.outputs) == 0 {
		m.line(3, `%s_NOTHING["no steps"]`, id)
	}
	for _, e := range f.edges {
		arrow := "-->"
		if e.label != "" {
			arrow = `-->|"` + escapeLabel(e.label) + `"|`
		}
		m.line(3, "%s %s %s", endName(id, e.from), arrow, endName(id, e.to))
	}
	m.line(2, "end")
}

// endName returns the Mermaid id of an end of an edge.
func endName(flow string, at int) string {
	switch at {
	case start:
		return flow + "_START"
	case end:
		return flow + "_END"
	}
	return fmt.Sprintf("%s_S%d", flow, at)
}

// stepLabel returns the id of a step, and its format if it has one.
func stepLabel(s *node) string {
	if format := formatOf(s.plan.Step); format != "" {
		return s.title + " (" + format + ")"
	}
	return s.title
}

// group writes a subgraph with the resources that belong to it, if there are any.
func (m *mermaidWriter) group(id, title string, all []*node, belongs func(*node) bool) {
	open := false
	for _, n := range all {
		if !belongs(n) {
			continue
		}
		if !open {
			m.line(1, `subgraph %s["%s"]`, id, title)
			open = true
		}
		style := styleOf(n.kind)
		name := m.uniqueName(style.prefix + idPart(n.title))
		m.names[n] = name
		text := style.icon + " " + escapeLabel(n.title)
		for _, note := range n.notes {
			text += "<br/>" + escapeLabel(note)
		}
		m.line(2, style.form, name, text)
	}
	if open {
		m.line(1, "end")
	}
}

// traceLinks writes the links from the steps that call a chat model to the
// telemetry sinks.
func (m *mermaidWriter) traceLinks(g *graph) {
	for _, sink := range g.resources {
		if sink.kind != spec.KindTelemetry {
			continue
		}
		for _, f := range g.flows {
			for _, s := range f.steps {
				if s.plan.Model() != nil {
					m.line(1, `%s -.->|"traces"| %s`, m.names[s], m.names[sink])
				}
			}
		}
	}
}

// styles writes the colours of flows and resources.
func (m *mermaidWriter) styles(g *graph) {
	m.line(1, "classDef flowBox fill:none,stroke:#4a7bb7,stroke-width:2px")
	m.line(1, "classDef resource fill:none,stroke:#6b8e5a")
	for _, f := range g.flows {
		m.line(1, "class %s flowBox", m.names[&f.node])
	}
	for _, n := range g.resources {
		m.line(1, "class %s resource", m.names[n])
	}
}

// uniqueName returns an unused Mermaid id: a-b and a_b are different ids with the
// same name.
func (m *mermaidWriter) uniqueName(name string) string {
	free := name
	for i := 2; m.isTaken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	m.isTaken[free] = true
	return free
}

// idPart converts an id to a part of a Mermaid id.
func idPart(id string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, id)
}

// escapeLabel converts a text to a quoted Mermaid label: characters with a meaning
// in Mermaid, in the YAML of @{…} or in HTML become numeric entities.
func escapeLabel(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '·' || r == '×' || r == ' ' || r == '_' || r == '-' || r == '.' || r == ',' || r == '?' || r == '(' || r == ')':
			b.WriteRune(r)
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			b.WriteRune(r)
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case r < ' ' || !unicode.IsGraphic(r):
			b.WriteRune('\uFFFD')
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
