package semdiff

import (
	"cmp"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// kindRules are the rules about whole entities of a kind. The rules about their
// keys are in [rules].
type kindRules struct {
	kind spec.Kind
	// matchOrder orders the search for renamed entities: a kind follows the kinds that
	// its entities refer to, so that an entity is recognised when the targets of its
	// references were renamed, too. 0 if entities of the kind are not searched.
	matchOrder int
	removed    verdict                     // of a removed entity
	renamed    verdict                     // of an entity with another id
	excluded   []string                    // keys that are not compared as plain values
	compare    func(c *comparison, p pair) // compares the excluded keys; nil if done elsewhere
}

// verdict is the impact of a change, and the reason to print.
type verdict struct {
	impact Impact
	reason string
}

// kinds returns the rules of each kind of entity, in the order of reports: what
// callers see comes first. A flow's steps and variables follow their flow.
var kinds = sync.OnceValue(func() []kindRules {
	harmless := verdict{Harmless, ""}
	return []kindRules{
		{kind: spec.KindApplication, removed: harmless, renamed: harmless},
		{kind: spec.KindFlow, matchOrder: 11, removed: verdict{Breaking, "callers can no longer call it"}, renamed: verdict{Breaking, "callers call it by its id"},
			excluded: []string{"steps", "variables", "inputs", "outputs"}},
		{kind: spec.KindMemory, matchOrder: 6, removed: verdict{Breaking, "its stored conversations will not be found"},
			renamed: verdict{Breaking, "stored conversations are keyed by the memory's id: they will not be found"}},
		{kind: spec.KindStore, matchOrder: 4, removed: harmless, renamed: harmless},
		{kind: spec.KindTool, matchOrder: 9, removed: verdict{Breaking, "models, recorded conversations and approvals know it"}, renamed: harmless,
			excluded: []string{"inputs", "outputs", "parameters"}, compare: (*comparison).compareToolPorts},
		{kind: spec.KindStep, matchOrder: 10, removed: harmless, renamed: harmless},
		{kind: spec.KindVariable, matchOrder: 12, removed: harmless, renamed: harmless},
		{kind: spec.KindType, matchOrder: 1, removed: harmless, renamed: harmless, excluded: []string{"properties"}, compare: (*comparison).compareProperties},
		{kind: spec.KindModel, matchOrder: 5, removed: harmless, renamed: harmless},
		{kind: spec.KindIndex, matchOrder: 7, removed: harmless, renamed: harmless},
		{kind: spec.KindAuth, matchOrder: 2, removed: harmless, renamed: harmless},
		{kind: spec.KindSecretManager, matchOrder: 3, removed: harmless, renamed: harmless},
		{kind: spec.KindTelemetry, matchOrder: 8, removed: harmless, renamed: harmless},
	}
})

// rulesOf returns the rules of a kind.
func rulesOf(kind spec.Kind) kindRules {
	all := kinds()
	if i := kindRank(kind); i < len(all) {
		return all[i]
	}
	return kindRules{kind: kind, removed: verdict{Harmless, ""}, renamed: verdict{Harmless, ""}}
}

// kindRank returns the position of a kind in reports.
func kindRank(kind spec.Kind) int {
	all := kinds()
	if i := slices.IndexFunc(all, func(k kindRules) bool { return k.kind == kind }); i >= 0 {
		return i
	}
	return len(all)
}

// matchOrder returns the kinds whose entities may have been renamed, each after the kinds
// that its entities refer to.
func matchOrder() []spec.Kind {
	all := slices.DeleteFunc(slices.Clone(kinds()), func(k kindRules) bool { return k.matchOrder == 0 })
	slices.SortFunc(all, func(a, b kindRules) int { return cmp.Compare(a.matchOrder, b.matchOrder) })
	order := make([]spec.Kind, len(all))
	for i, k := range all {
		order[i] = k.kind
	}
	return order
}
