package validate

import "github.com/qtype-dev/qtype/spec"

// documentLint are doubts about declarations (semantics.md 6).
func documentLint() []rule { return []rule{constructFields(), unused(), unfitID()} }

func unused() rule {
	return rule{code: "QT915", warning: true, title: "something is declared and never used",
		doc: "Nothing refers to it. What stands in included and referenced files is not counted: libraries offer more than one document needs.",
		sample: sample{in: "name: text", vars: "⟦nmae: text│⟧", out: "name: text",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *pass, app *spec.Application) {
			if !p.here.root || len(app.Flows) == 0 {
				return
			}
			for _, v := range p.nodes {
				e, ok := v.node.(spec.Entity)
				if !ok || p.used[e] || !v.at.root || v.at.tool != nil && v.at.tool != e || !mustBeUsed(e) {
					continue
				}
				if place := idPlace(e); e.EntityID() != "" && place.File == idPlace(app).File {
					p.report(place, "the %s %q is never used", nounOf(e), e.EntityID())
				}
			}
		})}
}

// mustBeUsed tells whether an entity has a purpose only where something refers to it.
func mustBeUsed(e spec.Entity) bool {
	switch e.(type) {
	case *spec.Variable, *spec.Memory, spec.ModelEntity, spec.Tool, spec.Index:
		return true
	}
	return false
}

func unfitID() rule {
	return rule{code: "QT918", warning: true, title: "an id that does not fit everywhere",
		doc: "Ids become parts of URLs, file names and JSON fields. A letter first, then letters, digits, _, . and - fit everywhere.",
		sample: sample{in: "⟦_name│name⟧: text", out: "⟦_name│name⟧: text",
			steps: "- {type: Echo, id: pass, inputs: [⟦_name│name⟧], outputs: [⟦_name│name⟧]}"},
		check: on(func(p *pass, e spec.Entity) {
			if id := e.EntityID(); id != "" && !fitID(id) {
				p.list.Add(p.at(idPlace(e), "the id %q does not fit in URLs, file names and JSON fields", id).
					WithHint("use a letter first, then letters, digits, _, . and -"))
			}
		})}
}

func fitID(id string) bool {
	for i, r := range id {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !isLetter && (i == 0 || !(r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-')) {
			return false
		}
	}
	return true
}
