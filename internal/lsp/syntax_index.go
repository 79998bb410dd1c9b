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
	roleValue     role = iota // a value of the field's type
	roleKey                   // a key of a class
	roleTag                   // the `type` that chooses an alternative
	roleID                    // the id of an entity, where it is declared
	roleReference             // the id of an entity, where it is named
	roleType                  // a type expression
	roleBinding               // the name inside of what a step invokes
	roleProperty              // the name of a custom type's property
	roleInclude               // the path of an included file
	roleFreeKey               // a key of the user's own
)

// word is a word of a document and what it is.
type syntaxWord struct {
	role       role
	start, end int           // byte offsets; quotes included
	text       string        // the word
	node       *outline.Node // the value; nil for a key
	pair       *outline.Pair // the key with its value; nil where there is none
	field      *field        // the key that the word is or stands under; nil where it is not known
	goType     reflect.Type  // what is expected there; nil where anything is
	mapping    *mappingNode  // the mapping around it; nil at the top
}

// mappingNode is a mapping and the struct of package spec that it stands for.
type mappingNode struct {
	node   *outline.Node
	class  *structType // nil where that is not decided yet
	union  *spec.Union // of which the class is one; nil for none
	field  *field      // the key that holds it
	parent *mappingNode
	path   string // the file
}

// entity is an object with an id.
type entity struct {
	*mappingNode
	id     string
	idNode *outline.Node
}

// near finds the nearest object around and including o that stands for a struct.
func (o *mappingNode) enclosing(t reflect.Type) *mappingNode {
	for ; o != nil; o = o.parent {
		if o.class != nil && o.class.goType == t {
			return o
		}
	}
	return nil
}

// flow is the flow that an object belongs to; nil for none.
func (o *mappingNode) flow() *mappingNode { return o.enclosing(reflect.TypeFor[spec.Flow]()) }

// tool is the tool that an object belongs to; nil for none.
func (o *mappingNode) tool() *mappingNode {
	for ; o != nil; o = o.parent {
		if o.class.isAssignableTo(reflect.TypeFor[spec.Tool]()) {
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
	words    map[string][]syntaxWord         // by file
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
	s := &syntaxIndex{lang: lang, read: read, words: map[string][]syntaxWord{}, path: path}
	if o := read(path); o != nil {
		s.trail = []string{path}
		s.readDocument(o, nil)
	}
	return s
}

// mark keeps a word of the file that is being read.
func (s *syntaxIndex) addWord(m syntaxWord) { s.words[s.path] = append(s.words[s.path], m) }

// document reads a whole document: an application, or a list of one kind.
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

// listOf tells by its first element what a list document is a list of.
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

// includedDocument reads the file of an include in the place of the value, and tells
// whether the value is one.
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

// single marks a scalar; what a collection holds that stands in its place is of no known type.
func (s *syntaxIndex) readScalar(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Scalar {
		s.readFree(n, f, in)
		return
	}
	s.addValue(roleValue, n, t, f, in)
}

// word marks a value.
func (s *syntaxIndex) addValue(r role, n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	s.addWord(syntaxWord{role: r, start: n.Start, end: n.End, text: n.Text, node: n, field: f, goType: t, mapping: in})
}

// freeValue reads a value without a known type: only its words are marked.
func (s *syntaxIndex) readFree(n *outline.Node, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.addValue(roleValue, n, nil, f, in)
	case outline.Sequence:
		for _, item := range n.Items {
			s.readValue(item, nil, f, in)
		}
	case outline.Mapping:
		for _, p := range n.Pairs {
			s.addKey(roleFreeKey, p, nil, in)
			s.readValue(p.Value, nil, f, in)
		}
	}
}

// key marks a key.
func (s *syntaxIndex) addKey(r role, p *outline.Pair, f *field, in *mappingNode) {
	s.addWord(syntaxWord{role: r, start: p.Start, end: p.End, text: p.Key, pair: p, field: f, mapping: in})
}

// freeMap reads a mapping whose keys are the user's own.
func (s *syntaxIndex) readMap(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Mapping {
		s.readScalar(n, t, f, in)
		return
	}
	elem := t.Elem()
	if elem.Kind() == reflect.Interface && s.lang.union(elem) == nil {
		elem = nil
	}
	for _, p := range n.Pairs {
		s.addKey(roleFreeKey, p, nil, in)
		s.readValue(p.Value, elem, f, in)
	}
}

// alternative reads a mapping of a union.
func (s *syntaxIndex) readAlternative(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	u := s.lang.union(t)
	if u == nil || n.Kind != outline.Mapping {
		s.readScalar(n, t, f, in)
		return
	}
	s.readStruct(n, s.lang.chooseAlternative(u, n), u, t, f, in)
}

// structure reads a mapping that stands for a struct.
func (s *syntaxIndex) readStruct(n *outline.Node, c *structType, u *spec.Union, t reflect.Type, f *field, in *mappingNode) {
	if n.Kind != outline.Mapping {
		s.readScalar(n, t, f, in)
		return
	}
	o := &mappingNode{node: n, class: c, union: u, field: f, parent: in, path: s.path}
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
			s.readValue(p.Value, f.goType, f, o)
		default:
			s.readValue(p.Value, nil, nil, o)
		}
	}
}

// at finds the innermost mark that holds an offset or ends there; nil for none.
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

// find is the entity that an id names in the scope of an object: for a variable
// its own flow's, then the document's, then another flow's.
func (s *syntaxIndex) find(id string, wants reflect.Type, in *mappingNode) *entity {
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
