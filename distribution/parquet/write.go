package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

const (
	rowGroupBytes = 32 << 20 // the approximate size of a row group: the memory of a writer, for any number of rows
	heldRows      = 1000     // the number of rows whose times decide on the types of columns
	heldBytes     = 8 << 20  // the approximate size of these rows
)

// encoder writes typed columns in row groups that are compressed with snappy.
type encoder struct {
	to      io.Writer
	out     *parquet.GenericWriter[any] // nil while rows are held
	columns []*parquetNode
	times   []*timeLeaf
	cells   [][]cell // of the row, by leaf column
	held    [][]cell // the cells of the first rows
	row     parquet.Row
	bytes   int // in the row group so far
}

// cell is a value of a leaf column with its repetition and definition levels.
type cell struct {
	value parquet.Value
	time  any       // a value of package value that is not converted yet; nil for none
	leaf  *timeLeaf // of time
	at    level
	col   int
}

func newEncoder(out io.Writer, columns []records.Column) (enc *encoder, err error) {
	defer recovered(&err)
	e := &encoder{to: out}
	var tree treeBuilder
	for _, c := range columns {
		if badName(c.Name) {
			return nil, fmt.Errorf("a Parquet file cannot have a column named %q", c.Name)
		}
		e.columns = append(e.columns, tree.node(c.Name, c.Type, c.Kind))
	}
	if len(columns) == 0 {
		return nil, errors.New("a Parquet file needs at least one column")
	}
	e.times = tree.times
	e.cells = make([][]cell, tree.leaves)
	if len(e.times) == 0 {
		e.start()
	}
	return e, nil
}

// start creates the writer of the library, whose types are final.
func (e *encoder) start() {
	for _, t := range e.times {
		t.settle()
	}
	schema := parquet.NewSchema("row", groupOf("row", e.columns))
	e.out = parquet.NewGenericWriter[any](e.to, schema, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("qtype", "", ""))
}

func (e *encoder) Write(values []any) (err error) {
	defer recovered(&err)
	for i := range e.cells {
		e.cells[i] = e.cells[i][:0]
	}
	for i, n := range e.columns {
		if err := e.shred(n, values[i], level{}, 0); err != nil {
			return &records.ValueError{Column: n.name, Reason: err.Error()}
		}
	}
	if e.out == nil {
		return e.hold()
	}
	return e.emit(e.cells...)
}

// hold keeps the row until enough rows have decided on the types.
func (e *encoder) hold() error {
	var row []cell
	for _, column := range e.cells {
		for _, c := range column {
			if c.leaf != nil {
				c.leaf.add(c.time)
			}
			row = append(row, c)
		}
	}
	e.held = append(e.held, row)
	if len(e.held) < heldRows && e.bytes < heldBytes {
		return nil
	}
	return e.release()
}

// release writes the rows that are held.
func (e *encoder) release() error {
	e.start()
	for _, row := range e.held {
		if err := e.emit(row); err != nil {
			return err
		}
	}
	e.held = nil
	return nil
}

// emit writes the cells of a row, ordered by their columns.
func (e *encoder) emit(cells ...[]cell) error {
	e.row = e.row[:0]
	for _, column := range cells {
		for _, c := range column {
			v := c.value
			if c.leaf != nil {
				var err error
				if v, err = c.leaf.parquetValue(c.time); err != nil {
					return &records.ValueError{Column: c.leaf.name, Reason: err.Error()}
				}
			}
			e.row = append(e.row, v.Level(c.at.rep, c.at.def, c.col))
		}
	}
	if _, err := e.out.WriteRows([]parquet.Row{e.row}); err != nil {
		return err
	}
	if e.bytes > rowGroupBytes {
		e.bytes = 0
		return e.out.Flush()
	}
	return nil
}

func (e *encoder) Close() (err error) {
	defer recovered(&err)
	if e.out == nil {
		if err := e.release(); err != nil {
			return err
		}
	}
	if schema := arrowSchema(e.columns); schema != "" {
		e.out.SetKeyValueMetadata("ARROW:schema", schema)
	}
	return e.out.Close()
}

// shred appends the leaves of a value to the cells (the Dremel encoding). depth is the
// number of lists around the node.
func (e *encoder) shred(n *parquetNode, v any, at level, depth int) error {
	if v == nil || v == value.Unset {
		if n.vector != nil && depth > 0 {
			n.vector.varied = true
		}
		e.null(n, at)
		return nil
	}
	at.def++
	switch {
	case n.elem != nil:
		return e.shredList(n, v, at, depth)
	case n.fields != nil:
		return e.shredGroup(n, v, at, depth)
	}
	c, err := leafCell(n, v)
	if err != nil {
		return err
	}
	c.at, c.col = at, n.leaf
	e.cells[n.leaf] = append(e.cells[n.leaf], c)
	e.bytes += 8
	if c.value.Kind() == parquet.ByteArray {
		e.bytes += len(c.value.ByteArray())
	}
	return nil
}

// null appends a null to each leaf of a node.
func (e *encoder) null(n *parquetNode, at level) {
	switch {
	case n.elem != nil:
		e.null(n.elem, at)
	case n.fields != nil:
		for _, f := range n.fields {
			e.null(f, at)
		}
	default:
		e.cells[n.leaf] = append(e.cells[n.leaf], cell{value: parquet.NullValue(), at: at, col: n.leaf})
		e.bytes++
	}
}

func (e *encoder) shredList(n *parquetNode, v any, at level, depth int) error {
	items, err := value.Coerce(spec.Type{Elem: &spec.Type{Name: spec.Any}}, v)
	if err != nil {
		return err
	}
	list, _ := items.([]any)
	if n.vector != nil {
		n.vector.add(list)
	}
	if len(list) == 0 {
		e.null(n.elem, at)
		return nil
	}
	at.def++
	for i, item := range list {
		if i > 0 {
			at.rep = depth + 1
		}
		if err := e.shred(n.elem, item, at, depth+1); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// add notes the size of a list.
func (s *vectorSize) add(list []any) {
	if s.size == 0 {
		s.size = len(list)
	}
	s.varied = s.varied || len(list) != s.size
	for _, x := range list {
		s.varied = s.varied || x == nil
	}
}

func (e *encoder) shredGroup(n *parquetNode, v any, at level, depth int) error {
	r, ok := value.FromGo(v).(*value.Record)
	if !ok {
		return fmt.Errorf("expected %s, got %s", n.typ, value.Describe(v))
	}
	for _, f := range n.fields {
		x, _ := r.Get(f.name)
		if err := e.shred(f, x, at, depth); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// leafCell converts the value of a leaf.
func leafCell(n *parquetNode, v any) (cell, error) {
	if n.times != nil {
		x, err := value.Coerce(n.typ, v)
		return cell{time: x, leaf: n.times}, err
	}
	if n.typ.Is("date") {
		x, err := value.Coerce(n.typ, v)
		if err != nil {
			return cell{}, err
		}
		return cell{value: dayNumber(x.(value.Date))}, nil
	}
	v, err := records.CheckValue(n.kind, v)
	if err != nil {
		return cell{}, err
	}
	switch x := v.(type) {
	case int64:
		if n.kind == records.Int {
			return cell{value: parquet.Int64Value(x)}, nil
		}
	case float64:
		if n.kind == records.Float {
			return cell{value: parquet.DoubleValue(x)}, nil
		}
	case bool:
		if n.kind == records.Bool {
			return cell{value: parquet.BooleanValue(x)}, nil
		}
	case []byte:
		if n.kind == records.Bytes {
			return cell{value: parquet.ByteArrayValue(x)}, nil
		}
	}
	return cell{value: parquet.ByteArrayValue(bytes.ToValidUTF8(records.AppendCell(nil, n.kind, v), []byte("\uFFFD")))}, nil
}

// dayNumber returns the number of days since 1970.
func dayNumber(d value.Date) parquet.Value {
	at := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	return parquet.Int32Value(int32(at.Unix() / 86400)) // the years 1 to 9999 fit
}

// recovered turns a panic of the Parquet library into an error: damaged files can
// cause one.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = errors.New("the Parquet data is damaged or of an unknown type")
	}
}

// parquetNode is a node in the tree of a column's type: a leaf, a list or a group of
// fields. Every node is optional in the file.
type parquetNode struct {
	name   string
	typ    spec.Type
	kind   records.Kind   // of a leaf
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
func (b *treeBuilder) node(name string, t spec.Type, kind records.Kind) *parquetNode {
	n := &parquetNode{name: name, typ: t, kind: kind, leaf: b.leaves}
	fields := value.Members(t)
	switch {
	case t.Elem != nil:
		n.elem = b.node("element", *t.Elem, records.KindOf(*t.Elem))
	case len(fields) > 0 && !slices.Contains(b.path, t.Name):
		b.path = append(b.path, t.Name)
		for _, f := range fields {
			child := b.node(f.Name, f.Type, records.KindOf(f.Type))
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

func leafOf(k records.Kind) parquet.Node {
	switch k {
	case records.Int:
		return parquet.Int(64)
	case records.Float:
		return parquet.Leaf(parquet.DoubleType)
	case records.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case records.Bytes:
		return parquet.Leaf(parquet.ByteArrayType)
	case records.JSONText:
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
