package records

import (
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// parquetNode is a node in the tree of a column's type: a leaf, a list or a group of
// fields. Every node is optional in the file.
type parquetNode struct {
	name   string
	typ    spec.Type
	kind   Kind           // of a leaf
	leaf   int            // the number of its first leaf column
	elem   *parquetNode   // of a list
	fields []*parquetNode // of a group
	times  *timeLeaf      // of a leaf with dates and times, or times
	vector *vectorSize    // of a list with an embedding
}

// vectorSize is the number of elements of the lists of a column, if all have the same.
type vectorSize struct {
	size   int  // of the first list
	varied bool // another list had another size, or an element was null
}

// treeBuilder builds the nodes of the columns.
type treeBuilder struct {
	leaves int
	path   []string // the record types around the node
	times  []*timeLeaf
}

// node returns the tree of a type. A record type that contains itself, and one without
// fields, is a leaf with JSON.
func (b *treeBuilder) node(name string, t spec.Type, kind Kind) *parquetNode {
	n := &parquetNode{name: name, typ: t, kind: kind, leaf: b.leaves}
	fields := value.Members(t)
	switch {
	case t.Elem != nil:
		n.elem = b.node("element", *t.Elem, KindOf(*t.Elem))
	case len(fields) > 0 && !slices.Contains(b.path, t.Name):
		b.path = append(b.path, t.Name)
		for _, f := range fields {
			child := b.node(f.Name, f.Type, KindOf(f.Type))
			if t.Custom == nil && f.Type.IsListOf("float") {
				child.vector = &vectorSize{}
			}
			n.fields = append(n.fields, child)
		}
		b.path = b.path[:len(b.path)-1]
	default:
		if t.Is("datetime") || t.Is("time") {
			n.times = &timeLeaf{name: name, day: t.Is("time")}
			b.times = append(b.times, n.times)
		}
		b.leaves++
	}
	return n
}

// schema returns the node for the library.
func (n *parquetNode) schema() parquet.Node {
	switch {
	case n.elem != nil:
		return parquet.Optional(parquet.List(n.elem.schema()))
	case n.fields != nil:
		return parquet.Optional(groupOf(n.name, n.fields))
	case n.times != nil:
		return parquet.Optional(n.times.schema())
	case n.typ.Is("date"):
		return parquet.Optional(parquet.Date())
	}
	return parquet.Optional(leafOf(n.kind))
}

func leafOf(k Kind) parquet.Node {
	switch k {
	case Int:
		return parquet.Int(64)
	case Float:
		return parquet.Leaf(parquet.DoubleType)
	case Bool:
		return parquet.Leaf(parquet.BooleanType)
	case Bytes:
		return parquet.Leaf(parquet.ByteArrayType)
	case JSONText:
		return parquet.JSON()
	}
	return parquet.String()
}

// badName reports whether the library cannot write a column of the name.
func badName(name string) bool { return name == "" || strings.ContainsRune(name, ',') }

// orderedGroup is a group whose fields keep their order; parquet.Group sorts them by name.
type orderedGroup struct {
	parquet.Group
	name   string
	fields []field
}

func groupOf(name string, nodes []*parquetNode) *orderedGroup {
	g := &orderedGroup{name: name}
	for _, n := range nodes {
		g.fields = append(g.fields, field{n.schema(), n.name})
	}
	return g
}

// Fields lists the fields in their order.
func (o *orderedGroup) Fields() []parquet.Field {
	all := make([]parquet.Field, len(o.fields))
	for i := range o.fields {
		all[i] = &o.fields[i]
	}
	return all
}

// String names the group in the library's messages.
func (o *orderedGroup) String() string { return o.name }

// GoType is the type that the library would decode rows to; they are not decoded to structs.
func (o *orderedGroup) GoType() reflect.Type { return reflect.TypeFor[map[string]any]() }

// field is a column of an ordered group.
type field struct {
	parquet.Node
	name string
}

// Name is the column's name.
func (f *field) Name() string { return f.name }

// Value finds the field in a Go value, for the library's reflection.
func (f *field) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}
