package validate

import (
	"reflect"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// partRules returns the rules of the steps and tools that the program adds: the demands of their tags, and their own.
func partRules(l *spec.Language) (all []rule) {
	for _, c := range l.Cases() {
		n := c.New()
		if s, ok := n.(spec.Step); ok {
			signatures, err := spec.Signatures(s)
			if err != nil {
				panic(err) // unreachable: AddCase refuses it
			}
			for _, signature := range signatures {
				for i := range signature.Demands {
					signature.Demands[i].Code = c.Tag + "/" + demandWord(signature.Demands[i])
				}
				for _, d := range signature.Demands {
					all = append(all, demandRule(s, signature, d))
				}
			}
		}
		if r, ok := n.(spec.Ruled); ok {
			for i, declared := range r.Rules() {
				all = append(all, partRule(c.Tag, reflect.TypeOf(n), i, declared))
			}
		}
	}
	return all
}

// demandWord returns the last part of the code of a demand.
func demandWord(d spec.Demand) string {
	if d.IsCount() {
		return d.Side() + "s"
	}
	return d.Side() + "-types"
}

// partRule returns the rule number i of a type of another module.
func partRule(tag string, t reflect.Type, i int, declared spec.PartRule) rule {
	describe := func() diag.Rule { return diag.Rule{Title: declared.Title, Doc: declared.Doc} }
	return rule{code: tag + "/" + declared.Code, describe: describe, check: check{nodeType: t, run: func(p *ruleContext, n spec.Node) {
		broken := ""
		err := parts.Guard("the rule", func() error {
			broken = n.(spec.Ruled).Rules()[i].Broken()
			return nil
		})
		if err != nil {
			broken = err.Error()
		}
		if broken != "" {
			p.report(placeOf(n, declared.Key, "id"), "%s", broken)
		}
	}}}
}
