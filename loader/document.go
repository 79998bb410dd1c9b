package loader

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/diag"
	"github.com/qtype-dev/qtype/spec"
)

// document decodes a root value, or one of an application's references: a
// mapping is an application, a list one of five kinds (reference language.md 2).
func (d *decoder) document(n *node, to *spec.Document) {
	to.SetPlace(n.place())
	switch n.kind {
	case broken:
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
	case mapping:
		to.Application = new(spec.Application)
		if n.unread { // a merge that brought nothing
			d.gaps.add(d, reflect.TypeFor[spec.Application]())
		}
		d.structure(n, reflect.ValueOf(to.Application).Elem(), "application")
	case sequence:
		d.listDocument(n, to)
	case null:
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
		d.faults.add(ruleEmpty.At(n.span, "the document is empty").WithHint(`it needs at least "id:"`))
	default:
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
		d.faults.add(ruleEmpty.At(n.head(), "the document is %s alone", n.kind.noun()).WithHint("a mapping (an application) or a list is expected"))
	}
}

// listKind is a kind of list that may stand alone.
type listKind string

const (
	authList     listKind = "auths"
	modelList    listKind = "models"
	toolList     listKind = "tools"
	typeList     listKind = "types"
	variableList listKind = "variables"
	noList       listKind = "" // something that has no list of its own
)

// listDocument decodes a list; its first element decides what it is a list of.
func (d *decoder) listDocument(n *node, to *spec.Document) {
	if len(n.items) == 0 {
		to.Auths = []spec.Auth{} // as QType has it
		return
	}
	first := d.listKind(n.items[0])
	if first == noList {
		d.gaps.add(d, reflect.TypeFor[spec.Document]())
		hideNamed(n)
		d.faults.add(ruleListKind.At(n.items[0].head(), "this list is of no kind that can stand alone").
			WithHint("a list document holds auths, models, tools, types or variables; the rest stands in an application"))
		return
	}
	same := *n
	same.items = slices.Clone(n.items)
	for i, item := range n.items {
		if kind := d.listKind(item); kind != first && item.kind != broken {
			hideNamed(item)
			d.gaps.add(d, reflect.TypeFor[spec.Document]())
			d.faults.add(d.mixed(item, kind, n.items[0], first))
			same.items[i] = &node{kind: broken, span: item.span}
		}
	}
	at := slot{owner: "the document", name: string(first)}
	switch first {
	case authList:
		d.list(&same, reflect.ValueOf(&to.Auths).Elem(), at)
	case modelList:
		d.list(&same, reflect.ValueOf(&to.Models).Elem(), at)
	case toolList:
		d.list(&same, reflect.ValueOf(&to.Tools).Elem(), at)
	case typeList:
		d.list(&same, reflect.ValueOf(&to.Types).Elem(), at)
	case variableList:
		d.list(&same, reflect.ValueOf(&to.Variables).Elem(), at)
	}
}

func (d *decoder) mixed(item *node, is listKind, first *node, want listKind) diag.Diagnostic {
	what := "something else"
	if is != noList {
		what = "one of " + string(is)
	}
	return ruleListKind.At(item.head(), "this list of %s holds %s", want, what).
		WithHint("a list document holds one kind of entity").WithRelated(first.head(), "the first element decides the kind")
}

// listKind tells by its keys what an element of a list document is. Variables
// are what is left, so that a misspelt one is told of as a variable.
func (d *decoder) listKind(n *node) listKind {
	if n.kind != mapping {
		return noList
	}
	if n.has("properties") {
		return typeList
	}
	if tag := n.get("type"); tag != nil && tag.kind == text {
		for i := range d.unions {
			kind := listOf(d.unions[i].Type)
			// file is a type of variables, too, and only those can stand alone.
			if slices.Contains(tags(&d.unions[i]), tag.text) && (kind != noList || !slices.Contains(spec.Primitives(), tag.text)) {
				return kind
			}
		}
		if tag.text == "Flow" || n.has("steps") {
			return noList
		}
		return variableList
	}
	return d.untypedKind(n)
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

// untypedKind decides about an element without a type: the kind that knows most
// of its keys.
func (d *decoder) untypedKind(n *node) listKind {
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
	best, most := variableList, 0
	for _, c := range candidates {
		for _, t := range c.of {
			known := 0
			p := d.planOf(t)
			for _, pair := range n.pairs {
				if _, ok := p.byName[pair.key.text]; ok {
					known++
				}
			}
			if known > most {
				best, most = c.kind, known
			}
		}
	}
	return best
}

func (d *decoder) caseTypes(union reflect.Type) []reflect.Type {
	var types []reflect.Type
	if u := d.unionOf(union); u != nil {
		for _, c := range u.Cases {
			types = append(types, reflect.TypeOf(c.New()).Elem())
		}
	}
	return types
}
