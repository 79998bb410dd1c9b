package validate

import (
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// availableRules returns the rule about parts of the language that this program does not run.
func availableRules() []rule { return []rule{notAvailable()} }

// notAvailable has no sample: the distribution runs the whole language, and examples are checked for it.
func notAvailable() rule {
	return rule{code: "QT482", title: "not available in this program",
		doc:    "The language has this type, provider, store or address, but this program is built without it. The message names the part that is missing and the command that gets a program with it; `qtype version --parts` lists those of this program. A run refuses the document, so that an application never does something other than it declares.",
		sample: sample{},
		check: on(func(p *ruleContext, n spec.Node) {
			missing := spec.CheckAvailable(n)
			m, isModel := n.(spec.ModelEntity)
			switch {
			case isModel && !isProvider(m.Base()): // the loader reports an unknown provider
			case missing != nil:
				p.report(placeOf(n, missing.Key), "%s", missing)
			case p.have != nil:
				p.checkParts(n)
			}
		})}
}

func isProvider(m *spec.Model) bool {
	_, known := m.ProviderRow()
	return known
}

// checkParts reports a part that a node needs and the program does not have.
func (p *ruleContext) checkParts(n spec.Node) {
	switch n := n.(type) {
	case spec.ModelEntity:
		p.need(n, parts.Provider, n.Base().Provider, "provider")
	case *spec.Store:
		if _, known := p.doc.Language.StoreType(n.Type); known { // the loader reports an unknown type
			p.need(n, parts.Store, n.Type, "type")
		}
	case spec.Index:
		if row, err := spec.StoreOf(n); err == nil {
			p.need(n, parts.Index, row.Name, "module", "store")
		}
	case spec.DatabaseStep:
		if u, err := sqlquery.ParseURL(n.Database()); err == nil {
			p.need(n, parts.Database, string(u.Dialect), "connection")
		}
	case spec.FileStep:
		path, base, _ := n.FilePath()
		p.needAddress(n, path.URI, "path")
		if trust.IsAddress(base) {
			p.needAddress(n, base, "base")
		}
	case spec.ReaderStep:
		p.need(n, parts.Files, n.Reader().Bucket, "reader_module")
	}
}

// needAddress reports an address of a service that the program does not have.
func (p *ruleContext) needAddress(n spec.Node, address, key string) {
	p.need(n, parts.Files, remotefs.Service(address), key)
}

// need reports a part at the first of keys that the node has; an empty name is none.
func (p *ruleContext) need(n spec.Node, kind parts.Kind, name string, keys ...string) {
	if name == "" {
		return
	}
	if missing := p.have.Check(kind, name); missing != nil {
		p.report(placeOf(n, keys...), "%s", missing)
	}
}
