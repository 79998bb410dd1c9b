package loader

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
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

// include replaces an include tag by the content of the file. The path is used as
// written: environment variables and ~ are not expanded.
func (b *builder) include(n *yaml.Node, start, end, depth int) *node {
	span := b.span(start, end)
	target := n.Value
	if target == "" {
		return b.badInclude(start)
	}
	b.includes++
	if b.includes > b.opts.Limits.Includes {
		if b.includes == b.opts.Limits.Includes+1 {
			b.diags.add(ruleLimit.At(span, "the document includes more than %d files", b.opts.Limits.Includes))
		}
		return b.broken(start, end)
	}
	if remotefs.Redacted(target) != target {
		b.file.MarkSecret(span) // it contains a password or a signature
	}
	path := resolve(b.path, target)
	if n.Tag == "!include" {
		if chain, found := b.findCycle(path); found {
			b.diags.add(ruleIncludeCycle.At(span, "files include each other in a cycle: %s", chain))
			return b.broken(start, end)
		}
	}
	target = remotefs.Redacted(target)
	if b.noIncludes {
		b.diags.add(ruleInclude.At(span, "cannot include %q: this document may not read files", target))
		return b.broken(start, end)
	}
	content, problem := b.read(path, b.baseAddress())
	if problem != nil {
		rule := ruleInclude
		if problem.rule != nil {
			rule = *problem.rule
		}
		b.diags.add(rule.At(span, "cannot include %q: the file %s", target, problem.text))
		return b.broken(start, end)
	}
	file := &source.File{Path: b.name(path), Text: content, From: span}
	b.files = append(b.files, file)
	if n.Tag == "!include_raw" {
		b.file.MarkText(file)
		return &node{kind: text, raw: true, text: string(content), source: string(content), size: 1, height: 1, span: span}
	}
	child := &builder{loadState: b.loadState, file: file, path: path, parent: b, depth: depth}
	return child.buildRoot()
}

// quotedInclude matches a text that is an include tag and one path.
var quotedInclude = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^!include(_raw)?[ \t]+[^ \t\n]+$`) })

// includeInQuotes reports such a text.
func (b *builder) includeInQuotes(n *yaml.Node, start, end int) *node {
	span := b.span(start, end)
	found := ruleInclude.At(span, "in quotes, this tag is only a text").WithHint("remove the quotes")
	if remotefs.Redacted(n.Value) == n.Value {
		found = found.WithFix(n.Value)
	} else {
		b.file.MarkSecret(span)
	}
	b.diags.add(found)
	return b.broken(start, end)
}

// baseAddress is the address of the outermost remote file that includes the builder's
// file: it may include only addresses below it. It is empty for a local file.
func (b *builder) baseAddress() string {
	base := ""
	for at := b; at != nil; at = at.parent {
		if _, remote := remotefs.Remote(at.path); !remote {
			break
		}
		base = remotefs.Base(at.path)
	}
	return base
}

// buildRoot builds the tree of the builder's file; an empty file is null.
func (b *builder) buildRoot() *node {
	b.pos = newPositions(b.file.Text)
	if b.builders != nil {
		b.builders[b.file] = b
	}
	b.anchors = map[*yaml.Node]*node{}
	nothing := pointAt(b.file, source.Pos{Line: 1, Column: 1})
	var tree *yaml.Node
	found := b.checkMarks(nothing)
	if len(found) == 0 {
		tree, found = parse(b.file, b.pos)
	}
	b.diags.add(found...)
	if len(found) > 0 {
		hideInText(b.file)
	}
	switch {
	case tree != nil && !(len(found) > 0 && isEmpty(tree)):
		made, _ := b.build(tree, b.depth+1)
		return made
	case len(found) > 0: // the error explains why it is empty
		return &node{kind: broken, size: 1, height: 1, span: nothing}
	}
	return &node{kind: null, size: 1, height: 1, span: nothing}
}

// bytesOfMark is how many bytes of the limit of a file there are for each of its marks.
const bytesOfMark = 10

// checkMarks limits the characters that begin or end values: the parser needs several hundred
// bytes of memory for each, so a few megabytes of brackets could fill the memory of a
// computer.
func (b *builder) checkMarks(at source.Span) diag.List {
	marks, most := 0, b.opts.Limits.FileBytes/bytesOfMark
	for _, mark := range []byte("\n,[]{}") {
		marks += bytes.Count(b.file.Text, []byte{mark})
	}
	if marks <= most {
		return nil
	}
	return diag.List{ruleLimit.At(at, "the file has more than %s lines, commas and brackets", textfmt.Thousands(most))}
}

// findCycle reports whether path is a file that is being read, and the includes that lead to it.
func (b *builder) findCycle(path string) (chain string, found bool) {
	id := identity(path)
	names := []string{b.name(path)}
	for at := b; at != nil; at = at.parent {
		names = append(names, at.file.Path)
		if identity(at.path) == id {
			for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
				names[i], names[j] = names[j], names[i]
			}
			return strings.Join(names, " → "), true
		}
	}
	return "", false
}

// badInclude reports an include tag that has no path.
func (b *builder) badInclude(start int) *node {
	b.diags.add(ruleSyntax.At(pointAt(b.file, b.pos.at(start)), "!include and !include_raw take the path of a file"))
	return b.broken(start, start)
}
