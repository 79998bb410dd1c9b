package validate

import "github.com/qtype-dev/qtype/spec"

// availableRules returns the rule about parts of the language that this version does not run.
func availableRules() []rule { return []rule{notAvailable()} }

// notAvailable has no sample while this version runs the whole language.
func notAvailable() rule {
	return rule{code: "QT482", title: "not available in this version",
		doc:    "The language has this type or provider, but this version of qtype does not run it. A run refuses it, so that an application never does something other than its document declares.",
		sample: sample{},
		check: on(func(p *ruleContext, n spec.Node) {
			missing := spec.CheckAvailable(n)
			if m, isModel := n.(spec.ModelEntity); missing == nil || isModel && !isProvider(m.Base().Provider) {
				return // the loader reports an unknown provider
			}
			p.report(placeOf(n, missing.Key), "%s", missing)
		})}
}

func isProvider(name string) bool {
	_, known := spec.LookupProvider(name)
	return known
}
