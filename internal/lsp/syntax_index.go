package lsp

import (
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
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
	start, end int           // byte offsets; quotes included
	text       string        // the word
	node       *outline.Node // the value; nil for a key
	pair       *outline.Pair // the key with its value; nil where there is none
	field      *field        // the key that the word is or stands under; nil where it is not known
	of         reflect.Type  // what is expected there; nil where anything is
	in         *mappingNode  // the mapping around it; nil at the top
}

// mappingNode is a mapping and the struct of package spec that it stands for.
type mappingNode struct {
	node  *outline.Node
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
	idNode *outline.Node
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
	read     func(path string) *outline.Node // nil where a file cannot be read
	marks    map[string][]word               // by file
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
func indexSyntax(lang *language, path string, read func(string) *outline.Node) *syntaxIndex {
	s := &syntaxIndex{lang: lang, read: read, marks: map[string][]word{}, path: path}
	if o := read(path); o != nil {
		s.trail = []string{path}
		s.document(o, nil)
	}
	return s
}

// mark keeps a word of the file that is being read.
func (s *syntaxIndex) mark(m word) { s.marks[s.path] = append(s.marks[s.path], m) }

// document reads a whole document: an application, or a list of one kind.
func (s *syntaxIndex) document(n *outline.Node, up *mappingNode) {
	if s.includedDocument(n, documentType, nil, up) {
		return
	}
	if n.Kind != outline.Sequence {
		s.value(n, reflect.TypeFor[spec.Application](), nil, up)
		return
	}
	s.value(n, reflect.SliceOf(s.listOf(n)), nil, up)
}

// listOf tells by its first element what a list document is a list of.
func (s *syntaxIndex) listOf(n *outline.Node) reflect.Type {
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

// includedDocument reads the file of an include in the place of the value, and tells
// whether the value is one.
func (s *syntaxIndex) includedDocument(n *outline.Node, t reflect.Type, f *field, in *mappingNode) bool {
	if n.Tag != "!include" && n.Tag != "!include_raw" {
		return false
	}
	if n.Kind != outline.Scalar {
		return true
	}
	s.mark(word{role: asInclude, start: n.Start, end: n.End, text: n.Text, node: n, field: f, of: t, in: in})
	to := included(s.path, n.Text)
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
		s.document(o, in)
	} else {
		s.value(o, t, f, in)
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
func (s *syntaxIndex) value(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
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
		if n.Kind != outline.Sequence {
			s.single(n, t, f, in)
			return
		}
		for _, item := range n.Items {
			s.value(item, t.Elem(), f, in)
		}
	case reflect.Map:
		s.freeMap(n, t, f, in)
	default:
		s.single(n, t, f, in)
	}
}

// single marks a scalar; what a collection holds that stands in its place is of no known type.
func (s *syntaxIndex) single(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Scalar {
		s.freeValue(n, f, in)
		return
	}
	s.word(asValue, n, t, f, in)
}

// word marks a value.
func (s *syntaxIndex) word(r role, n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	s.mark(word{role: r, start: n.Start, end: n.End, text: n.Text, node: n, field: f, of: t, in: in})
}

// freeValue reads a value without a known type: only its words are marked.
func (s *syntaxIndex) freeValue(n *outline.Node, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.word(asValue, n, nil, f, in)
	case outline.Sequence:
		for _, item := range n.Items {
			s.value(item, nil, f, in)
		}
	case outline.Mapping:
		for _, p := range n.Pairs {
			s.key(asFreeKey, p, nil, in)
			s.value(p.Value, nil, f, in)
		}
	}
}

// key marks a key.
func (s *syntaxIndex) key(r role, p *outline.Pair, f *field, in *mappingNode) {
	s.mark(word{role: r, start: p.Start, end: p.End, text: p.Key, pair: p, field: f, in: in})
}

// freeMap reads a mapping whose keys are the user's own.
func (s *syntaxIndex) freeMap(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Mapping {
		s.single(n, t, f, in)
		return
	}
	elem := t.Elem()
	if elem.Kind() == reflect.Interface && s.lang.union(elem) == nil {
		elem = nil
	}
	for _, p := range n.Pairs {
		s.key(asFreeKey, p, nil, in)
		s.value(p.Value, elem, f, in)
	}
}

// alternative reads a mapping of a union.
func (s *syntaxIndex) alternative(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	u := s.lang.union(t)
	if u == nil || n.Kind != outline.Mapping {
		s.single(n, t, f, in)
		return
	}
	s.structure(n, s.lang.choose(u, n), u, t, f, in)
}

// structure reads a mapping that stands for a struct.
func (s *syntaxIndex) structure(n *outline.Node, c *class, u *spec.Union, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Mapping {
		s.single(n, t, f, in)
		return
	}
	o := &mappingNode{node: n, class: c, union: u, field: f, up: in, path: s.path}
	if id := n.Get("id"); id != nil && id.Kind == outline.Scalar && c.isEntity() {
		s.entities = append(s.entities, &entity{o, id.Text, id})
	}
	for _, p := range n.Pairs {
		var f *field
		if c != nil {
			f = c.byName[p.Key]
		}
		s.key(asKey, p, f, o)
		switch {
		case p.Key == "<<":
			s.value(p.Value, t, nil, in)
		case p.Key == "type" && f == nil && u != nil && p.Value.Kind == outline.Scalar:
			s.word(asTag, p.Value, t, nil, o)
		case p.Key == "id" && p.Value.Kind == outline.Scalar && p.Value.Tag == "" && (c.isEntity() || c == nil && u != nil):
			s.word(asID, p.Value, nil, f, o)
		case f != nil:
			s.value(p.Value, f.of, f, o)
		default:
			s.value(p.Value, nil, nil, o)
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
		if w := strings.TrimSpace(item.Text); item.Kind == outline.Scalar && w != "" {
			all = append(all, w)
		} else if w := item.GetText("$ref"); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// list are the items under a key.
func (o *mappingNode) list(key string) []*outline.Node {
	if o == nil {
		return nil
	}
	if v := o.node.Get(key); v != nil {
		return v.Items
	}
	return nil
}
