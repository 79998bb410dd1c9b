package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// documentLint are doubts about declarations (semantics.md 6).
func documentLint() []rule { return []rule{constructFields(), unused(), unfitID()} }

func unused() rule {
	return rule{code: "QT915", warning: true, title: "something is declared and never used",
		doc: "Nothing refers to it. What stands in included and referenced files is not counted: libraries offer more than one document needs.",
		sample: sample{in: "name: text", vars: "⟦nmae: text│⟧", out: "name: text",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *ruleContext, app *spec.Application) {
			if !p.here.root || len(app.Flows) == 0 {
				return
			}
			for _, v := range p.nodes {
				e, ok := v.node.(spec.Entity)
				if !ok || p.used[e] || !mustBeUsed(v) || p.mayBeNamed(e) || !e.Place().Complete("id") {
					continue
				}
				// An included file is a library: not everything in it is for this document.
				if place := idPlace(e); e.EntityID() != "" && place.File == idPlace(app).File {
					p.report(place, "the %s %q is never used", nounOf(e), e.EntityID())
				}
			}
		})}
}

// mustBeUsed tells whether a node has a purpose only where something refers to
// it. The variables of a tool are its own, and references are libraries.
func mustBeUsed(v visit) bool {
	switch v.node.(type) {
	case *spec.Variable:
		return v.at.root && v.at.tool == nil
	case *spec.Memory, spec.ModelEntity, spec.Tool, spec.Index:
		return v.at.root
	case *spec.Store: // memories that name no store live in the first
		return v.at.root && v.at.app != nil && v.node != spec.Node(v.at.app.Stores[0])
	}
	return false
}

func unfitID() rule {
	return rule{code: "QT918", warning: true, title: "an id that does not fit everywhere",
		doc: "Ids become parts of URLs, file names and JSON fields. A letter first, then letters, digits, _, . and - fit everywhere.",
		sample: sample{in: "⟦_name│name⟧: text", out: "⟦_name│name⟧: text",
			steps: "- {type: Echo, id: pass, inputs: [⟦_name│name⟧], outputs: [⟦_name│name⟧]}"},
		check: on(func(p *ruleContext, e spec.Entity) {
			if id := e.EntityID(); id != "" && !fitID(id) && e.Place().Complete("id") {
				p.list.Add(p.reportAt(idPlace(e), "the id %q does not fit in URLs, file names and JSON fields", id).
					WithHint("use a letter first, then letters, digits, _, . and -"))
			}
		})}
}

// fitID tells whether an id is a letter and then letters, digits, _, . and - (language.md 6).
func fitID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return id != "" && strings.Contains(letters, id[:1]) && strings.Trim(id, letters+"0123456789_.-") == ""
}
