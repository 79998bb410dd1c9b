package lsp

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// role is the meaning of a word in a document.
type role uint8

const (
	roleValue     role = iota // a value of the field's type
	roleKey                   // a key of a struct
	roleTag                   // the `type` that selects an alternative
	roleID                    // the id in a declaration
	roleReference             // the id in a reference
	roleType                  // a type expression
	roleBinding               // the left side of a binding
	roleProperty              // the name of a field of a custom type
	roleInclude               // the path of an include
	roleFreeKey               // a key chosen by the user
)

// syntaxWord is a key or scalar of a document with its meaning.
type syntaxWord struct {
	role       role
	start, end int // byte offsets, quotes included
	text       string
	node       *outline.Node // nil for a key
	pair       *outline.Pair // the entry with the key or value; nil for none
	field      *field        // the key, or the key of the value; nil if unknown
	goType     reflect.Type  // the expected type; nil for any
	mapping    *mappingNode  // the mapping that contains the word; nil at the top
}

// mappingNode is a mapping with the struct that it represents.
type mappingNode struct {
	node   *outline.Node
	class  *structType // nil if not known yet
	union  *spec.Union // the union that class is an alternative of; nil for none
	parent *mappingNode
	path   string // the file
}

// entity is a mapping with an id.
type entity struct {
	*mappingNode
	id     string
	idNode *outline.Node
}

// enclosing returns the nearest mapping that represents a struct, starting with o;
// nil for none.
func (o *mappingNode) enclosing(t reflect.Type) *mappingNode {
	for ; o != nil; o = o.parent {
		if o.class != nil && o.class.goType == t {
			return o
		}
	}
	return nil
}

func (o *mappingNode) flow() *mappingNode { return o.enclosing(reflect.TypeFor[spec.Flow]()) }

func (o *mappingNode) tool() *mappingNode {
	for ; o != nil; o = o.parent {
		if o.class.isAssignableTo(reflect.TypeFor[spec.Tool]()) {
			return o
		}
	}
	return nil
}

// syntaxIndex describes the words and entities of a document and its includes, by
// walking outlines along the types of the language. It reports no errors.
type syntaxIndex struct {
	lang     *language
	read     func(path string) *outline.Node // nil if a file cannot be read
	words    map[string][]syntaxWord         // by file
	entities []*entity
	includes []include
	path     string   // the current file
	trail    []string // the includes that lead to the current file
}

// include is an include of a file.
type include struct{ from, to string }

// maxFiles limits how many includes are followed.
const maxFiles = 1000

// indexSyntax indexes the document at a path.
func indexSyntax(lang *language, path string, read func(string) *outline.Node) *syntaxIndex {
	s := &syntaxIndex{lang: lang, read: read, words: map[string][]syntaxWord{}, path: path}
	if o := read(path); o != nil {
		s.trail = []string{path}
		if k := lang.kindOf(path); k != nil {
			s.readKind(k, o)
		} else {
			s.readDocument(o, nil)
		}
	}
	return s
}

// addWord adds a word of the current file.
func (s *syntaxIndex) addWord(m syntaxWord) { s.words[s.path] = append(s.words[s.path], m) }

// readDocument reads a document: an application, or a list of one kind.
func (s *syntaxIndex) readDocument(n *outline.Node, up *mappingNode) {
	if s.readInclude(n, documentType, nil, up) {
		return
	}
	if n.Kind != outline.Sequence {
		s.readValue(n, reflect.TypeFor[spec.Application](), nil, up)
		return
	}
	s.readValue(n, reflect.SliceOf(s.listElementType(n)), nil, up)
}

// listElementType returns the element type of a list document, by its first
// elements.
func (s *syntaxIndex) listElementType(n *outline.Node) reflect.Type {
	for _, item := range n.Items {
		if item.Get("properties") != nil {
			return reflect.TypeFor[*spec.CustomType]()
		}
		tag := item.GetText("type")
		for _, u := range s.lang.unions {
			for _, c := range u.Cases {
				if c.Tag == tag && tag != "" {
					return u.Type
				}
			}
		}
	}
	return reflect.TypeFor[*spec.Variable]()
}

// readInclude reads the file of an include instead of the value. It reports whether
// the value is an include.
func (s *syntaxIndex) readInclude(n *outline.Node, t reflect.Type, f *field, in *mappingNode) bool {
	if n.Tag != "!include" && n.Tag != "!include_raw" {
		return false
	}
	if n.Kind != outline.Scalar {
		return true
	}
	s.addWord(syntaxWord{role: roleInclude, start: n.Start, end: n.End, text: n.Text, node: n, field: f, goType: t, mapping: in})
	to := includePath(s.path, n.Text)
	s.includes = append(s.includes, include{s.path, to})
	if n.Tag == "!include_raw" || len(s.includes) > maxFiles || holdsPath(s.trail, to) {
		return true
	}
	o := s.read(to)
	if o == nil {
		return true
	}
	back := s.path
	s.path, s.trail = to, append(s.trail, to)
	if t == documentType {
		s.readDocument(o, in)
	} else {
		s.readValue(o, t, f, in)
	}
	s.path, s.trail = back, s.trail[:len(s.trail)-1]
	return true
}

func holdsPath(paths []string, path string) bool {
	for _, p := range paths {
		if p == path {
			return true
		}
	}
	return false
}

// readValue reads a value of an expected type; nil for any.
func (s *syntaxIndex) readValue(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	switch {
	case s.readInclude(n, t, f, in):
		return
	case t == nil:
		s.readFree(n, f, in)
		return
	case s.readSpecial(n, t, f, in):
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		s.readValue(n, t.Elem(), f, in)
	case reflect.Interface:
		s.readAlternative(n, t, f, in)
	case reflect.Struct:
		s.readStruct(n, s.lang.structs[t], nil, t, f, in)
	case reflect.Slice:
		if n.Kind != outline.Sequence {
			s.readScalar(n, t, f, in)
			return
		}
		for _, item := range n.Items {
			s.readValue(item, t.Elem(), f, in)
		}
	case reflect.Map:
		s.readMap(n, t, f, in)
	default:
		s.readScalar(n, t, f, in)
	}
}

// readScalar adds a scalar. The content of a collection that is written instead has
// no known type.
func (s *syntaxIndex) readScalar(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Scalar {
		s.readFree(n, f, in)
		return
	}
	s.addValue(roleValue, n, t, f, in)
}

// addValue adds a value.
func (s *syntaxIndex) addValue(r role, n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	s.addWord(syntaxWord{role: r, start: n.Start, end: n.End, text: n.Text, node: n, field: f, goType: t, mapping: in})
}

// readFree reads a value without a known type.
func (s *syntaxIndex) readFree(n *outline.Node, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.addValue(roleValue, n, nil, f, in)
	case outline.Sequence:
		for _, item := range n.Items {
			s.readValue(item, nil, f, in)
		}
	case outline.Mapping:
		s.readObject(n, "", nil, f, in)
	}
}

// addKey adds a key.
func (s *syntaxIndex) addKey(r role, p *outline.Pair, f *field, in *mappingNode) {
	s.addWord(syntaxWord{role: r, start: p.Start, end: p.End, text: p.Key, pair: p, field: f, mapping: in})
}

// readMap reads a mapping with keys chosen by the user.
func (s *syntaxIndex) readMap(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Mapping {
		s.readScalar(n, t, f, in)
		return
	}
	elem := t.Elem()
	if elem.Kind() == reflect.Interface && spec.FindUnion(s.lang.unions, elem) == nil {
		elem = nil
	}
	for _, p := range n.Pairs {
		if f != nil && len(f.names) > 0 {
			s.addKey(roleFreeKey, p, f, in)
		} else {
			s.addKey(roleFreeKey, p, nil, in)
		}
		s.readValue(p.Value, elem, f, in)
	}
}

// readAlternative reads a mapping of a union.
func (s *syntaxIndex) readAlternative(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	u := spec.FindUnion(s.lang.unions, t)
	if u == nil || n.Kind != outline.Mapping {
		s.readScalar(n, t, f, in)
		return
	}
	s.readStruct(n, s.lang.chooseAlternative(u, n), u, t, f, in)
}

// readStruct reads a mapping that represents a struct.
func (s *syntaxIndex) readStruct(n *outline.Node, c *structType, u *spec.Union, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Mapping {
		s.readScalar(n, t, f, in)
		return
	}
	o := &mappingNode{node: n, class: c, union: u, parent: in, path: s.path}
	if id := n.Get("id"); id != nil && id.Kind == outline.Scalar && c.isEntity() {
		s.entities = append(s.entities, &entity{o, id.Text, id})
	}
	for _, p := range n.Pairs {
		var f *field
		if c != nil {
			f = c.byName[p.Key]
		}
		s.addKey(roleKey, p, f, o)
		switch {
		case p.Key == "<<":
			s.readValue(p.Value, t, nil, in)
		case p.Key == "type" && f == nil && u != nil && p.Value.Kind == outline.Scalar:
			s.addValue(roleTag, p.Value, t, nil, o)
		case p.Key == "id" && p.Value.Kind == outline.Scalar && p.Value.Tag == "" && (c.isEntity() || c == nil && u != nil):
			s.addValue(roleID, p.Value, nil, f, o)
		case f != nil:
			s.readValue(p.Value, cmp.Or(c.argumentType(n, p.Key), f.goType), f, o)
		default:
			s.readValue(p.Value, nil, nil, o)
		}
	}
}

// at returns the innermost word at an offset, or that ends there; nil for none.
func (s *syntaxIndex) at(path string, offset int) *syntaxWord {
	var best *syntaxWord
	for i := range s.words[path] {
		m := &s.words[path][i]
		if m.start <= offset && offset <= m.end && (best == nil || m.end-m.start <= best.end-best.start) {
			best = m
		}
	}
	return best
}

// findEntity returns the entity that an id refers to within a mapping. Variables are
// searched in the flow of the mapping, then in the document, then in other flows.
func (s *syntaxIndex) findEntity(id string, wants reflect.Type, in *mappingNode) *entity {
	var other *entity
	for _, e := range s.entities {
		if e.id != id || !e.class.isAssignableTo(wants) {
			continue
		}
		if wants != reflect.TypeFor[*spec.Variable]() {
			return e
		}
		switch flow := e.parent.flow(); {
		case e.parent.tool() != nil:
		case flow == in.flow():
			return e
		case other == nil || flow == nil:
			other = e
		}
	}
	return other
}

// ids returns the ids of a list of references.
func (o *mappingNode) ids(key string) []string {
	var all []string
	for _, item := range o.list(key) {
		if w := strings.TrimSpace(item.Text); item.Kind == outline.Scalar && w != "" {
			all = append(all, w)
		} else if w := item.GetText("$ref"); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// list returns the items of a key.
func (o *mappingNode) list(key string) []*outline.Node {
	if o == nil {
		return nil
	}
	if v := o.node.Get(key); v != nil {
		return v.Items
	}
	return nil
}
