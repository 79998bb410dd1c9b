package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// documentLint returns the warnings about declarations.
func documentLint() []rule { return []rule{constructFields(), unused(), unportableID()} }

func unused() rule {
	return rule{code: "QT915", warning: true, title: "unused declaration",
		doc: "Nothing refers to the declaration. Included and referenced files are not checked: a library can declare more than one document uses.",
		sample: sample{in: "name: text", vars: "⟦nmae: text│⟧", out: "name: text",
			steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"},
		check: on(func(p *ruleContext, app *spec.Application) {
			if !p.here.root || len(app.Flows) == 0 {
				return
			}
			for _, v := range p.nodes {
				e, ok := v.node.(spec.Entity)
				if !ok || p.used[e] || !mustBeUsed(v) || p.maybeReferenced(e) || !e.Position().Complete("id") {
					continue
				}
				// Included files may declare more than this document uses.
				if place := idPlace(e); e.EntityID() != "" && place.File == idPlace(app).File {
					p.report(place, "the %s %q is never used", kindNoun(e), e.EntityID())
				}
			}
		})}
}

// mustBeUsed reports whether a node has no effect unless something refers to it. The
// variables of tools and the entities of references are exempt.
func mustBeUsed(v visit) bool {
	switch v.node.(type) {
	case *spec.Variable:
		return v.at.root && v.at.tool == nil
	case *spec.Memory, spec.ModelEntity, spec.Tool, spec.Index:
		return v.at.root
	case *spec.Store: // the first store is the default of memories
		return v.at.root && v.at.app != nil && v.node != spec.Node(v.at.app.Stores[0])
	}
	return false
}

func unportableID() rule {
	return rule{code: "QT918", warning: true, title: "id that is not portable",
		doc: "Ids are used in URLs, file names and JSON fields. A letter followed by letters, digits, _, . and - is valid in all of them.",
		sample: sample{in: "⟦_name│name⟧: text", out: "⟦_name│name⟧: text",
			steps: "- {type: Echo, id: pass, inputs: [⟦_name│name⟧], outputs: [⟦_name│name⟧]}"},
		check: on(func(p *ruleContext, e spec.Entity) {
			if id := e.EntityID(); id != "" && !isPortableID(id) && e.Position().Complete("id") {
				p.list.Add(p.reportAt(idPlace(e), "the id %q is not valid in URLs, file names and JSON fields", id).
					WithHint("use a letter, then letters, digits, _, . and -"))
			}
		})}
}

// isPortableID reports whether an id is a letter followed by letters, digits, _, . and -.
func isPortableID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return id != "" && strings.Contains(letters, id[:1]) && strings.Trim(id, letters+"0123456789_.-") == ""
}
