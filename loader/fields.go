package loader

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// structure decodes a mapping into a struct. The name is the struct's in a
// user's words where it is neither an entity nor of a union: the key it stands under.
func (d *decoder) structure(n *node, v reflect.Value, name string) {
	made, ok := v.Addr().Interface().(spec.Node)
	if !ok {
		return // every struct of the language is a node; the others are special
	}
	made.SetPlace(n.place())
	if tool, isTool := made.(spec.Tool); isTool && tool != nil && !d.inTool {
		d.inTool = true
		defer func() { d.inTool = false }()
	}
	p, owner := d.planOf(v.Type()), d.title(n, made, name)
	d.renameAliases(n, p, owner)
	unknown := d.present(n, v, p, owner)
	for i := range p.fields {
		f := &p.fields[i]
		if n.has(f.name) {
			continue
		}
		if unknown.mayBeMisspelt(f.name, v.FieldByIndex(f.index).Type()) {
			n.made.Parts = append(n.made.Parts, &spec.Position{Name: f.name, Unread: true})
			d.gaps.add(d, v.FieldByIndex(f.index).Type())
		}
		// A misspelt key says by its advice that this one is meant.
		if f.required && !n.unread && !unknown.meant[f.name] {
			d.faults.add(missingField(n, owner, f.name))
		}
		setDefault(v.FieldByIndex(f.index), f)
	}
	id := n.get("id")
	if e, isEntity := made.(spec.Entity); isEntity && (e.EntityID() == "" || id != nil && id.unset) {
		d.gaps.declare(d, reflect.TypeOf(made)) // a reference may have meant it
		if id != nil && id.kind == text && !id.date && !id.unset {
			d.faults.add(ruleKind.At(id.span, "the id of %s is empty", withArticle(owner)).WithHint("references name it by its id"))
		}
	}
	d.check(n, made, owner)
}

// renameAliases gives the keys of a mapping that are written under an earlier name
// their name of today.
func (d *decoder) renameAliases(n *node, p *plan, owner string) {
	for i := range n.pairs {
		old := n.pairs[i].key
		name, isAlias := p.aliases[old.text]
		if !isAlias || old.kind != text {
			continue
		}
		if n.has(name) {
			d.faults.add(ruleAlias.At(old.span, "%q is the earlier name of %q, which %s has as well", old.shown(), name, owner).
				WithSeverity(diag.Error).WithHint("remove one of them"))
			continue
		}
		d.faults.add(ruleAlias.At(old.span, "the key %q of %s is now called %q", old.shown(), owner, name).WithFix(name))
		key := *old
		key.text = name
		n.pairs[i].key = &key
		n.place().Parts[i].Name = name
	}
}

// unknownKeys are the unknown keys of a mapping.
type unknownKeys struct {
	meant map[string]bool // the keys that they were probably meant to be
	held  map[kind]bool   // of those that are near to none: whether one holds a list, or a mapping
}

// mayBeMisspelt tells whether the value of an absent key may stand under an unknown one.
func (s unknownKeys) mayBeMisspelt(name string, t reflect.Type) bool {
	if s.meant[name] {
		return true
	}
	switch t {
	case reflect.TypeFor[spec.Bindings](), reflect.TypeFor[spec.Properties](), reflect.TypeFor[spec.Assignments]():
		return s.held[mapping]
	}
	switch t.Kind() {
	case reflect.Slice:
		return s.held[sequence]
	case reflect.Map, reflect.Interface, reflect.Pointer:
		return s.held[mapping]
	}
	return false
}

// present decodes the keys that are there, and answers the others.
func (d *decoder) present(n *node, v reflect.Value, p *plan, owner string) unknownKeys {
	names := p.names
	// The key that chooses an alternative of a union is no field of its struct.
	_, isField := p.byName["type"]
	isTag := !isField && spec.TypeName(v.Addr().Interface().(spec.Node)) != ""
	if isTag {
		names = append([]string{"type"}, names...)
	}
	meant, held := map[string]bool{}, map[kind]bool{}
	for _, pair := range n.pairs {
		if i, known := p.byName[pair.key.text]; known {
			d.field(pair, &p.fields[i], v, owner)
		} else if p.aliases[pair.key.text] != "" {
			continue // reported by renameAliases
		} else if pair.key.text != "type" || !isTag {
			if d.faults.full() { // nobody will read it, and advice costs
				hideUnknown(pair, v, p, "")
				d.faults.raised++
				continue
			}
			fault := unknownField(pair.key, owner, names, allowsUnknown(v.Type()))
			hideUnknown(pair, v, p, fault.Suggestion)
			// No key can become one that is there already.
			if len(fault.Fixes) > 0 && (meant[fault.Suggestion] || n.has(fault.Suggestion)) {
				fault = fault.WithoutFix()
			}
			if fault.Suggestion == "" {
				held[pair.value.kind] = true
			}
			meant[fault.Suggestion] = true
			d.faults.add(fault)
		}
	}
	return unknownKeys{meant, held}
}

// title names an entity for a message: step "ask", memory "chat", cache_config.
func (d *decoder) title(n *node, made spec.Node, name string) string {
	kind := name
	if e, ok := made.(spec.Entity); ok {
		kind = string(e.Kind())
	} else if u := d.unionWith(made); u != nil {
		kind = u.Name
	}
	if id := n.get("id"); id != nil && id.kind == text && id.text != "" {
		return fmt.Sprintf("%s %q", kind, id.shown())
	}
	return kind
}

// unionWith finds the union that a node is an alternative of.
func (d *decoder) unionWith(made spec.Node) *spec.Union {
	for i := range d.unions {
		if made != nil && reflect.TypeOf(made).Implements(d.unions[i].Type) {
			return &d.unions[i]
		}
	}
	return nil
}

// field decodes one key's value and checks its rule.
func (d *decoder) field(p pair, f *field, owner reflect.Value, title string) {
	v := owner.FieldByIndex(f.index)
	at := target{owner: title, name: f.name}
	if p.value.kind == null {
		d.nothing(p.value, v, f, at)
		return
	}
	if p.value.kind == broken || p.value.unset {
		setDefault(v, f)
		p.value.markInvalid()
	}
	if v.Kind() == reflect.String && p.value.isBare() && strings.Contains(f.rule, "oneof=") {
		// No quotes make a number or a truth value one of the words. It stays, as a wrong word does.
		v.SetString(p.value.text)
		d.faults.add(ruleFault(p.value, f))
		return
	}
	before := d.faults.raised
	d.value(p.value, v, at)
	if d.faults.raised > before {
		// A scalar in error has its default; of a list and a struct what could be made is kept.
		if k := v.Kind(); k != reflect.Struct && k != reflect.Slice && k != reflect.Pointer && k != reflect.Interface {
			setDefault(v, f)
		}
		return
	}
	if f.rule != "" && p.value.kind != broken && !p.value.unset {
		d.rule(p.value, v, f)
	}
}

// nothing decodes a null: an empty section is an absent one, but an empty word
// is no word. Only what is optional by a pointer can be none despite a default.
func (d *decoder) nothing(n *node, v reflect.Value, f *field, at target) {
	if v.Kind() == reflect.Pointer && !neverNull(v.Type()) {
		v.SetZero()
		return
	}
	if f.required || neverNull(v.Type()) || f.hasDefault {
		n.markInvalid()
		d.gaps.add(d, v.Type())
		d.faults.add(ruleKind.At(n.span, "%s is empty", at).WithHint("give it a value%s", optionalHint(f)))
	}
	setDefault(v, f)
}

// neverNull tells whether null is refused where a key may be left out, as QType
// has it for these two (reference language.md 8.8).
func neverNull(t reflect.Type) bool {
	return t == reflect.TypeFor[*spec.BatchConfig]() || t == reflect.TypeFor[*spec.ConcurrencyConfig]()
}

func optionalHint(f *field) string {
	if f.required {
		return ""
	}
	return " or leave the key out"
}

func unknownField(key *node, owner string, names []string, lax bool) diag.Diagnostic {
	const listed = 14
	fault := ruleUnknownField.At(key.span, "%s has no key %q", owner, key.shown())
	if lax {
		fault = fault.WithSeverity(diag.Warning)
	}
	fault = fault.WithNearest(key.text, names)
	if fault.Suggestion == "" && len(names) <= listed {
		return fault.WithHint("it has %s", strings.Join(names, ", "))
	}
	return fault
}

// missingField places the fault where the key would stand.
func missingField(n *node, owner, name string) diag.Diagnostic {
	at := n.span.Start
	if len(n.pairs) > 0 && n.pairs[0].key.span.File == n.span.File && n.pairs[0].key.span.Start.Line >= at.Line {
		at = n.pairs[0].key.span.Start
	}
	return ruleMissingField.At(pointAt(n.span.File, at), "%s needs %s %q", owner, article(name), name).WithHint(`add "%s:" here`, name)
}

func withArticle(word string) string { return article(word) + " " + word }

func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an"
	}
	return "a"
}

// setDefault sets what a field is where its key is absent.
func setDefault(v reflect.Value, f *field) {
	v.SetZero()
	if !f.hasDefault {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	n := &node{kind: resolve11(f.fallback), text: f.fallback, source: f.fallback}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.fallback)
	case reflect.Int:
		i, _ := n.toInt()
		v.SetInt(i)
	case reflect.Float64:
		x, _ := n.toFloat()
		v.SetFloat(x)
	case reflect.Bool:
		b, _ := n.toBool()
		v.SetBool(b)
	case reflect.Int64:
		length, _ := time.ParseDuration(f.fallback)
		v.SetInt(int64(length))
	}
}
