package lsp

import (
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// role is what a word of a document is.
type role uint8

const (
	asValue    role = iota // a value of the field's type
	asKey                  // a key of a class
	asTag                  // the `type` that chooses an alternative
	asID                   // the id of an entity, where it is declared
	asRef                  // the id of an entity, where it is named
	asType                 // a type expression
	asBinding              // the name inside of what a step invokes
	asProperty             // the name of a custom type's property
	asInclude              // the path of an included file
	asFreeKey              // a key of the user's own
)

// word is a word of a document and what it is.
type word struct {
	role       role
	start, end int          // byte offsets; quotes included
	text       string       // the word
	node       *node        // the value; nil for a key
	pair       *pair        // the key with its value; nil where there is none
	field      *field       // the key that the word is or stands under; nil where it is not known
	of         reflect.Type // what is expected there; nil where anything is
	in         *mappingNode // the mapping around it; nil at the top
}

// mappingNode is a mapping and the struct of package spec that it stands for.
type mappingNode struct {
	node  *node
	class *class      // nil where that is not decided yet
	union *spec.Union // of which the class is one; nil for none
	field *field      // the key that holds it
	up    *mappingNode
	path  string // the file
}

// entity is an object with an id.
type entity struct {
	*mappingNode
	id     string
	idNode *node
}

// near finds the nearest object around and including o that stands for a struct.
func (o *mappingNode) near(t reflect.Type) *mappingNode {
	for ; o != nil; o = o.up {
		if o.class != nil && o.class.of == t {
			return o
		}
	}
	return nil
}

// flow is the flow that an object belongs to; nil for none.
func (o *mappingNode) flow() *mappingNode { return o.near(reflect.TypeFor[spec.Flow]()) }

// tool is the tool that an object belongs to; nil for none.
func (o *mappingNode) tool() *mappingNode {
	for ; o != nil; o = o.up {
		if o.class.fits(reflect.TypeFor[spec.Tool]()) {
			return o
		}
	}
	return nil
}

// syntaxIndex reads outlines by the language's types, includes followed: what each
// word is, and which entities there are. It says nothing about faults.
type syntaxIndex struct {
	lang     *language
	read     func(path string) *outline // nil where a file cannot be read
	marks    map[string][]word          // by file
	entities []*entity
	includes []include
	path     string   // the file that is being read
	trail    []string // the files that led there
}

// include is a file that another one includes.
type include struct{ from, to string }

// maxFiles bounds how many includes a survey follows.
const maxFiles = 1000

// indexSyntax surveys the document at a path.
func indexSyntax(lang *language, path string, read func(string) *outline) *syntaxIndex {
	s := &syntaxIndex{lang: lang, read: read, marks: map[string][]word{}, path: path}
	if o := read(path); o != nil {
		s.trail = []string{path}
		s.document(o.root, nil)
	}
	return s
}

// mark keeps a word of the file that is being read.
func (s *syntaxIndex) mark(m word) { s.marks[s.path] = append(s.marks[s.path], m) }

// document reads a whole document: an application, or a list of one kind.
func (s *syntaxIndex) document(n *node, up *mappingNode) {
	if s.includedDocument(n, documentType, nil, up) {
		return
	}
	if n.kind != sequence {
		s.value(n, reflect.TypeFor[spec.Application](), nil, up)
		return
	}
	s.value(n, reflect.SliceOf(s.listOf(n)), nil, up)
}

// listOf tells by its first element what a list document is a list of.
func (s *syntaxIndex) listOf(n *node) reflect.Type {
	for _, item := range n.items {
		if item.get("properties") != nil {
			return reflect.TypeFor[*spec.CustomType]()
		}
		tag := item.word("type")
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

// includedDocument reads the file of an include in the place of the value, and tells
// whether the value is one.
func (s *syntaxIndex) includedDocument(n *node, t reflect.Type, f *field, in *mappingNode) bool {
	if n.tag != "!include" && n.tag != "!include_raw" {
		return false
	}
	if n.kind != scalar {
		return true
	}
	s.mark(word{role: asInclude, start: n.start, end: n.end, text: n.text, node: n, field: f, of: t, in: in})
	to := included(s.path, n.text)
	s.includes = append(s.includes, include{s.path, to})
	if n.tag == "!include_raw" || len(s.includes) > maxFiles || holdsPath(s.trail, to) {
		return true
	}
	o := s.read(to)
	if o == nil {
		return true
	}
	back := s.path
	s.path, s.trail = to, append(s.trail, to)
	if t == documentType {
		s.document(o.root, in)
	} else {
		s.value(o.root, t, f, in)
	}
	s.path, s.trail = back, s.trail[:len(s.trail)-1]
	return true
}

// holdsPath tells whether a path is among some.
func holdsPath(paths []string, path string) bool {
	for _, p := range paths {
		if p == path {
			return true
		}
	}
	return false
}

// value reads a value of which a type is expected; nil where anything is.
func (s *syntaxIndex) value(n *node, t reflect.Type, f *field, in *mappingNode) {
	switch {
	case s.includedDocument(n, t, f, in):
		return
	case t == nil:
		s.freeValue(n, f, in)
		return
	case s.special(n, t, f, in):
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		s.value(n, t.Elem(), f, in)
	case reflect.Interface:
		s.alternative(n, t, f, in)
	case reflect.Struct:
		s.structure(n, s.lang.classes[t], nil, t, f, in)
	case reflect.Slice:
		if n.kind != sequence {
			s.single(n, t, f, in)
			return
		}
		for _, item := range n.items {
			s.value(item, t.Elem(), f, in)
		}
	case reflect.Map:
		s.freeMap(n, t, f, in)
	default:
		s.single(n, t, f, in)
	}
}

// single marks a scalar; what a collection holds that stands in its place is of no known type.
func (s *syntaxIndex) single(n *node, t reflect.Type, f *field, in *mappingNode) {
	if n.kind != scalar {
		s.freeValue(n, f, in)
		return
	}
	s.word(asValue, n, t, f, in)
}

// word marks a value.
func (s *syntaxIndex) word(r role, n *node, t reflect.Type, f *field, in *mappingNode) {
	s.mark(word{role: r, start: n.start, end: n.end, text: n.text, node: n, field: f, of: t, in: in})
}

// freeValue reads a value without a known type: only its words are marked.
func (s *syntaxIndex) freeValue(n *node, f *field, in *mappingNode) {
	switch n.kind {
	case scalar:
		s.word(asValue, n, nil, f, in)
	case sequence:
		for _, item := range n.items {
			s.value(item, nil, f, in)
		}
	case mapping:
		for _, p := range n.pairs {
			s.key(asFreeKey, p, nil, in)
			s.value(p.value, nil, f, in)
		}
	}
}

// key marks a key.
func (s *syntaxIndex) key(r role, p *pair, f *field, in *mappingNode) {
	s.mark(word{role: r, start: p.start, end: p.end, text: p.key, pair: p, field: f, in: in})
}

// freeMap reads a mapping whose keys are the user's own.
func (s *syntaxIndex) freeMap(n *node, t reflect.Type, f *field, in *mappingNode) {
	if n.kind != mapping {
		s.single(n, t, f, in)
		return
	}
	elem := t.Elem()
	if elem.Kind() == reflect.Interface && s.lang.union(elem) == nil {
		elem = nil
	}
	for _, p := range n.pairs {
		s.key(asFreeKey, p, nil, in)
		s.value(p.value, elem, f, in)
	}
}

// alternative reads a mapping of a union.
func (s *syntaxIndex) alternative(n *node, t reflect.Type, f *field, in *mappingNode) {
	u := s.lang.union(t)
	if u == nil || n.kind != mapping {
		s.single(n, t, f, in)
		return
	}
	s.structure(n, s.lang.choose(u, n), u, t, f, in)
}

// structure reads a mapping that stands for a struct.
func (s *syntaxIndex) structure(n *node, c *class, u *spec.Union, t reflect.Type, f *field, in *mappingNode) {
	if n.kind != mapping {
		s.single(n, t, f, in)
		return
	}
	o := &mappingNode{node: n, class: c, union: u, field: f, up: in, path: s.path}
	if id := n.get("id"); id != nil && id.kind == scalar && c.isEntity() {
		s.entities = append(s.entities, &entity{o, id.text, id})
	}
	for _, p := range n.pairs {
		var f *field
		if c != nil {
			f = c.byName[p.key]
		}
		s.key(asKey, p, f, o)
		switch {
		case p.key == "<<":
			s.value(p.value, t, nil, in)
		case p.key == "type" && f == nil && u != nil && p.value.kind == scalar:
			s.word(asTag, p.value, t, nil, o)
		case p.key == "id" && p.value.kind == scalar && p.value.tag == "" && (c.isEntity() || c == nil && u != nil):
			s.word(asID, p.value, nil, f, o)
		case f != nil:
			s.value(p.value, f.of, f, o)
		default:
			s.value(p.value, nil, nil, o)
		}
	}
}

// at finds the innermost mark that holds an offset or ends there; nil for none.
func (s *syntaxIndex) at(path string, offset int) *word {
	var best *word
	for i := range s.marks[path] {
		m := &s.marks[path][i]
		if m.start <= offset && offset <= m.end && (best == nil || m.end-m.start <= best.end-best.start) {
			best = m
		}
	}
	return best
}

// find is the entity that an id names in the scope of an object: for a variable
// its own flow's, then the document's, then another flow's.
func (s *syntaxIndex) find(id string, wants reflect.Type, in *mappingNode) *entity {
	var other *entity
	for _, e := range s.entities {
		if e.id != id || !e.class.fits(wants) {
			continue
		}
		if wants != reflect.TypeFor[*spec.Variable]() {
			return e
		}
		switch flow := e.up.flow(); {
		case e.up.tool() != nil:
		case flow == in.flow():
			return e
		case other == nil || flow == nil:
			other = e
		}
	}
	return other
}

// ids are the words of a list of references under a key.
func (o *mappingNode) ids(key string) []string {
	var all []string
	for _, item := range o.list(key) {
		if w := strings.TrimSpace(item.text); item.kind == scalar && w != "" {
			all = append(all, w)
		} else if w := item.word("$ref"); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// list are the items under a key.
func (o *mappingNode) list(key string) []*node {
	if o == nil {
		return nil
	}
	if v := o.node.get(key); v != nil {
		return v.items
	}
	return nil
}
