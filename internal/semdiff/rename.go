package semdiff

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// matchEntities pairs the entities of the two documents: entities with the same id, and
// entities that differ only in their id, if there is exactly one on each side.
func (c *comparison) matchEntities() {
	c.read.renamed = map[spec.Entity]string{}
	matched := map[*comparedEntity]*comparedEntity{} // new to old
	for _, s := range c.new.entities {
		if old := c.old.byKey[key{s.entity.Kind(), s.id()}]; old != nil {
			matched[s] = old
		}
	}
	for range 2 { // the second round matches what became equal by the renames of the first
		for _, kind := range matchOrder() {
			c.matchRenamed(kind, matched)
		}
		for _, p := range flowPairs(c.new.entities, matched) {
			c.matchVariables(p.old.entity.(*spec.Flow), p.new.entity.(*spec.Flow))
		}
	}
	for _, s := range c.new.entities {
		if old := matched[s]; old != nil {
			c.pairs = append(c.pairs, pair{old, s})
		}
	}
}

func flowPairs(subjects []*comparedEntity, matched map[*comparedEntity]*comparedEntity) []pair {
	var pairs []pair
	for _, s := range subjects {
		if old := matched[s]; old != nil && s.entity.Kind() == spec.KindFlow {
			pairs = append(pairs, pair{old, s})
		}
	}
	return pairs
}

// matchRenamed pairs entities of a kind with different ids.
func (c *comparison) matchRenamed(kind spec.Kind, matched map[*comparedEntity]*comparedEntity) {
	taken := map[*comparedEntity]bool{}
	for _, old := range matched {
		taken[old] = true
	}
	olds, news := map[string][]*comparedEntity{}, map[string][]*comparedEntity{}
	for _, s := range c.old.ofKind(kind) {
		if !taken[s] {
			d := c.digest(s)
			olds[d] = append(olds[d], s)
		}
	}
	for _, s := range c.new.ofKind(kind) {
		if matched[s] == nil {
			d := c.digest(s)
			news[d] = append(news[d], s)
		}
	}
	for d, same := range news {
		if len(same) == 1 && len(olds[d]) == 1 {
			matched[same[0]] = olds[d][0]
			c.read.renamed[olds[d][0].entity] = same[0].id()
		}
	}
}

// digest returns the content of an entity without its id.
func (c *comparison) digest(s *comparedEntity) string {
	f, ok := s.entity.(*spec.Flow)
	if !ok {
		in := ""
		if s.flow != nil {
			in = c.read.idOf(s.flow)
		}
		return in + c.read.readEntity(s.entity, "id").digest()
	}
	return c.read.readEntity(f, "id", "steps", "variables").digest() + strings.Join(c.stepIDs(f), "\x00")
}

// stepIDs returns the ids of a flow's steps in the new document, in order.
func (c *comparison) stepIDs(f *spec.Flow) []string {
	var ids []string
	for _, item := range f.Steps {
		if item != nil && item.Step != nil {
			ids = append(ids, c.read.idOf(item.Step))
		}
	}
	return ids
}

// matchVariables pairs variables of a flow that have different names, but the same
// type and the same readers and writers.
func (c *comparison) matchVariables(before, after *spec.Flow) {
	olds, news := c.unmatchedVariables(before, after, true), c.unmatchedVariables(after, before, false)
	for d, same := range news {
		if len(same) == 1 && len(olds[d]) == 1 {
			c.read.renamed[olds[d][0]] = same[0].ID
		}
	}
}

// unmatchedVariables groups the variables that only one version of a flow has, by
// type and uses. Unused variables are left out: they cannot be distinguished.
func (c *comparison) unmatchedVariables(f, other *spec.Flow, old bool) map[string][]*spec.Variable {
	found := map[string][]*spec.Variable{}
	uses := c.variableUses(f)
	for _, v := range f.Variables {
		_, renamed := c.read.renamed[v]
		has := slices.ContainsFunc(other.Variables, func(o *spec.Variable) bool { return o.ID == v.ID })
		if has || old && renamed || len(uses[v]) == 0 {
			continue
		}
		d := fmt.Sprint(c.read.typeText(v.Type), v.IsOptional(), uses[v])
		found[d] = append(found[d], v)
	}
	return found
}

// variableUses returns the uses of each variable by a flow and its steps.
func (c *comparison) variableUses(f *spec.Flow) map[*spec.Variable][]string {
	uses := map[*spec.Variable][]string{}
	note := func(where string, refs []*spec.Ref[*spec.Variable]) {
		for i, r := range refs {
			uses[r.To] = append(uses[r.To], fmt.Sprintf("%s %d", where, i))
		}
	}
	note("in", pointers(f.Inputs))
	note("out", pointers(f.Outputs))
	for _, p := range f.Plan().Steps {
		id := c.read.idOf(p.Step)
		note(id+" reads", p.Reads)
		note(id+" writes", p.Writes)
	}
	return uses
}

func pointers[T spec.Entity](refs []spec.Ref[T]) []*spec.Ref[T] {
	all := make([]*spec.Ref[T], len(refs))
	for i := range refs {
		all[i] = &refs[i]
	}
	return all
}

// Patterns of variable names in texts: {name} in a template, :name in a query, name
// in an expression.
var (
	inTemplate   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\s*([^{}\s]+)\s*\}`) })
	inQuery      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:([\pL_][\pL\pN_]*)`) })
	inExpression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([\pL_][\pL\pN_]*)`) })
)

// namesInSyntax returns the pattern of variable names in texts of a syntax, by
// the tag `syntax` of a field; nil for other texts.
func namesInSyntax(syntax string) *regexp.Regexp {
	switch syntax {
	case "template":
		return inTemplate()
	case "sql":
		return inQuery()
	}
	return nil
}

// renameInText replaces the names of renamed variables in a text of the old
// document, so that renaming a variable does not change the text.
func (r *reader) renameInText(text string, names *regexp.Regexp) string {
	if len(r.variableNames) == 0 || names == nil {
		return text
	}
	var out []byte
	rest := 0
	for _, m := range names.FindAllStringSubmatchIndex(text, -1) {
		if renamed, ok := r.variableNames[text[m[2]:m[3]]]; ok {
			out = append(append(out, text[rest:m[2]]...), renamed...)
			rest = m[3]
		}
	}
	return string(append(out, text[rest:]...))
}

// renamedVariables returns the new names of the renamed variables of a flow.
func (r *reader) renamedVariables(f *spec.Flow) map[string]string {
	words := map[string]string{}
	if f == nil {
		return words
	}
	for _, v := range f.Variables {
		if renamed, ok := r.renamed[v]; ok {
			words[v.ID] = renamed
		}
	}
	return words
}

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
