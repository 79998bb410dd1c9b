package loader

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// decodeDocument decodes a root value, or one of an application's references: a
// mapping is an application, a list contains one of five kinds of entities.
func (d *decoder) decodeDocument(n *node, to *spec.Document) {
	to.SetPosition(n.place())
	switch n.kind {
	case broken:
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
	case mapping:
		to.Application = new(spec.Application)
		if n.unread { // a merge that added nothing
			d.gaps.add(d, reflect.TypeFor[spec.Application]())
		}
		d.decodeStruct(n, reflect.ValueOf(to.Application).Elem(), "application")
	case sequence:
		d.decodeListDocument(n, to)
	case null:
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
		d.diags.add(ruleEmpty.At(n.span, "the document is empty").WithHint(`it needs at least "id:"`))
	default:
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
		hideInText(n.span.File)
		d.diags.add(ruleEmpty.At(n.head(), "the document is only %s", n.kind.noun()).WithHint("%s", emptyHint(n)))
	}
}

// listKind is a kind of list that may be a document.
type listKind string

const (
	authList     listKind = "auths"
	modelList    listKind = "models"
	toolList     listKind = "tools"
	typeList     listKind = "types"
	variableList listKind = "variables"
	noList       listKind = "" // an entity that cannot be in a list document
)

// decodeListDocument decodes a list. The first element whose kind is certain
// determines the kind of the list.
func (d *decoder) decodeListDocument(n *node, to *spec.Document) {
	if len(n.items) == 0 {
		to.Auths = []spec.Auth{} // as in QType
		return
	}
	decides, first := d.decidingItem(n.items)
	if first == noList {
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
		hideNamed(n)
		d.diags.add(ruleListKind.At(decides.head(), "this list is not a document").
			WithHint("a list document contains auths, models, tools, types or variables; everything else belongs in an application"))
		return
	}
	same := *n
	same.items = slices.Clone(n.items)
	for i, item := range n.items {
		if item.unset { // its kind is not known
			same.items[i] = &node{kind: broken, span: item.span}
		} else if kind, certain := d.listKind(item); certain && kind != first && item.kind != broken {
			hideNamed(item)
			d.gaps.add(d, reflect.TypeFor[spec.Document]())
			d.diags.add(d.mixedKinds(item, kind, decides, first))
			same.items[i] = &node{kind: broken, span: item.span}
		}
	}
	at := target{owner: "the document", name: string(first)}
	switch first {
	case authList:
		d.decodeList(&same, reflect.ValueOf(&to.Auths).Elem(), at)
	case modelList:
		d.decodeList(&same, reflect.ValueOf(&to.Models).Elem(), at)
	case toolList:
		d.decodeList(&same, reflect.ValueOf(&to.Tools).Elem(), at)
	case typeList:
		d.decodeList(&same, reflect.ValueOf(&to.Types).Elem(), at)
	case variableList:
		d.decodeList(&same, reflect.ValueOf(&to.Variables).Elem(), at)
	}
}

func (d *decoder) mixedKinds(item *node, is listKind, first *node, want listKind) diag.Diagnostic {
	what := "something else"
	if is != noList {
		what = "one of " + string(is)
	}
	return ruleListKind.At(item.head(), "this list of %s contains %s", want, what).
		WithHint("a list document contains one kind of entity").WithRelated(first.head(), "this element determines the kind")
}

// decidingItem returns the element that determines the kind of a list: the first
// mapping whose kind is certain, otherwise the first element.
func (d *decoder) decidingItem(items []*node) (*node, listKind) {
	for _, item := range items {
		if kind, certain := d.listKind(item); certain && item.kind == mapping {
			return item, kind
		}
	}
	kind, _ := d.listKind(items[0])
	return items[0], kind
}

// listKind returns the kind of an element of a list document by its keys, and whether
// it is certain. An element of no other kind is a variable, so that errors in it are
// reported as errors of a variable.
func (d *decoder) listKind(n *node) (kind listKind, certain bool) {
	if n.kind != mapping {
		return noList, true
	}
	switch {
	case n.has("properties"):
		return typeList, true
	case n.has("steps"):
		return noList, true
	}
	tag := n.get("type")
	if tag == nil || tag.kind != text {
		return d.kindByKeys(n)
	}
	for i := range d.unions {
		kind := listOf(d.unions[i].Type)
		// file is also a type of variables, and only variables may be in list documents.
		if slices.Contains(tags(&d.unions[i]), tag.text) && (kind != noList || !slices.Contains(spec.Primitives(), tag.text)) {
			return kind, true
		}
	}
	switch {
	case tag.text == "Flow":
		return noList, true
	case isBuiltin(tag.text):
		return variableList, true
	}
	// A custom type or a misspelled one: the other keys decide.
	if kind, certain = d.kindByKeys(n); !certain {
		kind = variableList
	}
	return kind, false
}

// isBuiltin reports whether a type expression is a built-in type or a list.
func isBuiltin(expression string) bool {
	t, _ := parseType(expression)
	return t.IsList() || slices.Contains(spec.BuiltInTypes(), t.Name)
}

func listOf(t reflect.Type) listKind {
	switch t {
	case reflect.TypeFor[spec.Auth]():
		return authList
	case reflect.TypeFor[spec.ModelEntity]():
		return modelList
	case reflect.TypeFor[spec.Tool]():
		return toolList
	}
	return noList
}

// kindByKeys returns the kind that has most of an element's keys other than type. It
// is certain if the kind has at least two keys more than a variable.
func (d *decoder) kindByKeys(n *node) (kind listKind, certain bool) {
	candidates := []struct {
		kind listKind
		of   []reflect.Type
	}{
		{variableList, []reflect.Type{reflect.TypeFor[spec.Variable]()}},
		{authList, d.caseTypes(reflect.TypeFor[spec.Auth]())},
		{modelList, d.caseTypes(reflect.TypeFor[spec.ModelEntity]())},
		{toolList, d.caseTypes(reflect.TypeFor[spec.Tool]())},
		{noList, []reflect.Type{reflect.TypeFor[spec.Flow](), reflect.TypeFor[spec.Memory](), reflect.TypeFor[spec.Application](), reflect.TypeFor[spec.Telemetry]()}},
		{noList, d.caseTypes(reflect.TypeFor[spec.Step]())},
		{noList, d.caseTypes(reflect.TypeFor[spec.Index]())},
	}
	kind, most := variableList, 0
	ofVariable := d.knownKeys(n, candidates[0].of[0])
	for _, c := range candidates {
		for _, t := range c.of {
			if known := d.knownKeys(n, t); known > most {
				kind, most = c.kind, known
			}
		}
	}
	return kind, most >= ofVariable+2
}

// knownKeys counts the keys, other than type, that a struct has.
func (d *decoder) knownKeys(n *node, t reflect.Type) int {
	known, p := 0, d.planOf(t)
	for _, pair := range n.pairs {
		if _, ok := p.byName[pair.key.text]; ok && pair.key.text != "type" {
			known++
		}
	}
	return known
}

func (d *decoder) caseTypes(union reflect.Type) []reflect.Type {
	var types []reflect.Type
	if u := spec.FindUnion(d.unions, union); u != nil {
		for _, c := range u.Cases {
			types = append(types, reflect.TypeOf(c.New()).Elem())
		}
	}
	return types
}
