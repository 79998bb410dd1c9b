package loader

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// decodeStruct decodes a mapping into a struct. name is used in messages if the struct
// is neither an entity nor part of a union: the key of the mapping.
func (d *decoder) decodeStruct(n *node, v reflect.Value, name string) {
	made, ok := v.Addr().Interface().(spec.Node)
	if !ok {
		return // every struct of the language is a node; decodeSpecial handles the others
	}
	made.SetPosition(n.place())
	if tool, isTool := made.(spec.Tool); isTool && tool != nil && !d.inTool {
		d.inTool = true
		defer func() { d.inTool = false }()
	}
	p, owner := d.planOf(v.Type()), d.title(n, made, name)
	d.renameAliases(n, p, owner)
	unknown := d.decodeKeys(n, v, p, owner)
	for i := range p.fields {
		f := &p.fields[i]
		if n.has(f.name) {
			continue
		}
		if unknown.mayBeMisspelled(f.name, v.FieldByIndex(f.index).Type()) {
			n.made.Parts = append(n.made.Parts, &spec.Position{Name: f.name, Unread: true})
			d.gaps.add(d, v.FieldByIndex(f.index).Type())
		}
		// The diagnostic of a misspelled key already suggests this one.
		if f.required && !n.unread && !unknown.meant[f.name] {
			d.diags.add(missingField(n, owner, f.name))
		}
		setDefault(v.FieldByIndex(f.index), f)
	}
	id := n.get("id")
	if e, isEntity := made.(spec.Entity); isEntity && (e.EntityID() == "" || id != nil && id.unset) {
		d.gaps.addDeclared(d, reflect.TypeOf(made)) // references may name it
		if id != nil && id.kind == text && !id.date && !id.unset {
			d.diags.add(ruleKind.At(id.span, "the id of %s is empty", withArticle(owner)).WithHint("references use the id"))
		}
	}
	d.checkEntity(n, made, owner)
}

// renameAliases replaces earlier names of keys by the current ones and reports them.
func (d *decoder) renameAliases(n *node, p *plan, owner string) {
	for i := range n.pairs {
		old := n.pairs[i].key
		name, isAlias := p.aliases[old.text]
		if !isAlias || old.kind != text {
			continue
		}
		if n.has(name) {
			d.diags.add(ruleAlias.At(old.span, "%q is the earlier name of %q, which %s has as well", old.shown(), name, owner).
				WithSeverity(diag.Error).WithHint("remove one of them"))
			continue
		}
		d.diags.add(ruleAlias.At(old.span, "the key %q of %s is now called %q", old.shown(), owner, name).WithFix(name))
		key := *old
		key.text = name
		n.pairs[i].key = &key
		n.place().Parts[i].Name = name
	}
}

// unknownKeys are the unknown keys of a mapping.
type unknownKeys struct {
	meant map[string]bool // the keys that they probably mean
	held  map[kind]bool   // kinds of the values of those that resemble no key
}

// mayBeMisspelled reports whether an unknown key may be a misspelling of an absent one.
func (s unknownKeys) mayBeMisspelled(name string, t reflect.Type) bool {
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

// decodeKeys decodes the known keys and returns the unknown ones.
func (d *decoder) decodeKeys(n *node, v reflect.Value, p *plan, owner string) unknownKeys {
	names := p.names
	// The key `type` of a union is not a field of the struct.
	_, isField := p.byName["type"]
	isTag := !isField && spec.TypeName(v.Addr().Interface().(spec.Node)) != ""
	if isTag {
		names = append([]string{"type"}, names...)
	}
	unknown := unknownKeys{map[string]bool{}, map[kind]bool{}}
	for _, pair := range n.pairs {
		i, known := p.byName[pair.key.text]
		switch {
		case known:
			d.decodeField(pair, &p.fields[i], v, owner)
		case p.aliases[pair.key.text] != "": // reported by renameAliases
		case pair.key.text == "type" && isTag:
		case d.diags.full(): // not shown, and suggestions are expensive
			hideUnknown(pair, v, p, "")
			d.diags.raised++
		default:
			d.reportUnknown(n, pair, v, p, unknown, unknownField(pair.key, owner, names, allowsUnknown(v.Type())))
		}
	}
	return unknown
}

// reportUnknown reports an unknown key of a mapping and records what it may mean.
func (d *decoder) reportUnknown(n *node, pair pair, v reflect.Value, p *plan, unknown unknownKeys, found diag.Diagnostic) {
	if isVariableByName(n, pair, v.Type()) {
		hideUnknown(pair, v, p, "")
		unknown.meant["id"], unknown.meant["type"] = true, true
		d.diags.add(found.WithoutSuggestion().WithHint("write {id: %s, type: %s}", pair.key.shown(), shownType(pair.value)))
		return
	}
	explained := explainKey(found, n, pair.key, v.Type(), p)
	if explained.Hint == found.Hint && explained.Suggestion == found.Suggestion {
		explained = d.explainOtherCase(explained, pair.key, v)
	}
	if found = explained; found.Hint == "" {
		found = found.WithHint("qtype explain %s lists its keys", typeName(v))
	}
	hideUnknown(pair, v, p, found.Suggestion)
	// A key cannot be renamed to one that exists.
	if len(found.Fixes) > 0 && (unknown.meant[found.Suggestion] || n.has(found.Suggestion)) {
		found = found.WithoutFix()
	}
	if i, known := p.byName[found.Suggestion]; known && len(found.Fixes) > 0 && !d.fits(pair, &p.fields[i], v.Type()) {
		found = found.WithoutFix()
	}
	if found.Suggestion == "" {
		unknown.held[pair.value.kind] = true
	}
	unknown.meant[found.Suggestion] = true
	d.diags.add(found)
}

// typeName returns the name under which the reference describes a struct.
func typeName(v reflect.Value) string {
	return cmp.Or(spec.TypeName(v.Addr().Interface().(spec.Node)), v.Type().Name())
}

// title returns an entity as messages name it: step "ask", memory "chat", cache_config.
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

// unionWith returns the union of a node, nil for none.
func (d *decoder) unionWith(made spec.Node) *spec.Union {
	for i := range d.unions {
		if made != nil && reflect.TypeOf(made).Implements(d.unions[i].Type) {
			return &d.unions[i]
		}
	}
	return nil
}

// decodeField decodes one key's value and checks its rule.
func (d *decoder) decodeField(p pair, f *field, owner reflect.Value, title string) {
	v := owner.FieldByIndex(f.index)
	if f.typed {
		p.value.typeVariables()
	}
	at := target{owner: title, name: f.name, isAddress: f.isAddress, isNamed: f.isNamed}
	if p.value.kind == null {
		d.decodeNull(p.value, v, f, at)
		return
	}
	if p.value.kind == broken || p.value.unset {
		setDefault(v, f)
		p.value.markInvalid()
	}
	if v.Kind() == reflect.String && p.value.isBare() && strings.Contains(f.rule, "oneof=") {
		// Quotes would not make it valid. The text is kept, as any invalid text is.
		v.SetString(p.value.text)
		d.diags.add(ruleDiagnostic(p.value, f))
		return
	}
	before := d.diags.raised
	d.decode(p.value, v, at)
	if d.diags.raised > before {
		// An invalid scalar gets its default; lists and structs keep their valid parts.
		if k := v.Kind(); k != reflect.Struct && k != reflect.Slice && k != reflect.Pointer && k != reflect.Interface {
			setDefault(v, f)
		}
		return
	}
	if f.rule != "" && p.value.kind != broken && !p.value.unset {
		d.checkRule(p.value, v, f)
	}
}

// decodeNull decodes a null: an empty section is the same as an absent one, but a
// scalar with a default needs a value. Only a pointer can be nil in spite of a default.
func (d *decoder) decodeNull(n *node, v reflect.Value, f *field, at target) {
	switch lost := n.hidden != "" && takesWord(v.Type()); {
	case lost:
		d.diags.add(ruleKind.At(n.span, "%s is empty: %s", at, n.hidden).WithHint("put a text that starts with %s in quotes%s", n.hidden[:1], optionalHint(f)))
	case !f.takesNull:
		d.diags.add(ruleKind.At(n.span, "%s is empty", at).WithHint("give it a value%s", optionalHint(f)))
	case v.Kind() == reflect.Pointer:
		v.SetZero()
		return
	default:
		setDefault(v, f)
		return
	}
	n.markInvalid()
	d.gaps.add(d, v.Type())
	setDefault(v, f)
}

// takesWord reports whether a type is written as one word, text, number or truth value.
func takesWord(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int64, reflect.Float64, reflect.Bool:
		return true
	}
	return hasScalarItems(t)
}

func optionalHint(f *field) string {
	if f.required {
		return ""
	}
	return " or leave the key out"
}

func unknownField(key *node, owner string, names []string, lax bool) diag.Diagnostic {
	const maxListed = 14
	found := ruleUnknownField.At(key.span, "%s has no key %q", owner, key.shown())
	if lax {
		found = found.WithSeverity(diag.Warning)
	}
	found = found.WithNearest(key.text, names)
	if found.Suggestion == "" && len(names) <= maxListed {
		return found.WithHint("it has %s", strings.Join(names, ", "))
	}
	return found
}

// missingField returns a diagnostic at the position where the key would be.
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

// setDefault sets the value of a field whose key is absent.
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
