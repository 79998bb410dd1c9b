package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// rowGroupBytes is the approximate size of a row group: the memory that a writer
// uses, for any number of rows.
const rowGroupBytes = 32 << 20

// parquetEncoder writes one optional leaf for each column, in snappy-compressed
// row groups.
type parquetEncoder struct {
	out     *parquet.GenericWriter[any]
	columns []Column
	row     parquet.Row
	bytes   int // in the row group so far
}

func newParquetEncoder(out io.Writer, columns []Column) (enc *parquetEncoder, err error) {
	defer recovered(&err)
	root := &orderedGroup{}
	for _, c := range columns {
		if c.Name == "" || strings.ContainsRune(c.Name, ',') {
			return nil, fmt.Errorf("a Parquet file cannot have a column named %q", c.Name)
		}
		root.fields = append(root.fields, field{parquet.Optional(nodeOf(c.Kind)), c.Name})
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("a Parquet file needs at least one column")
	}
	w := parquet.NewGenericWriter[any](out, parquet.NewSchema("row", root), parquet.Compression(&parquet.Snappy),
		parquet.CreatedBy("qtype", "", ""))
	return &parquetEncoder{out: w, columns: columns, row: make(parquet.Row, len(columns))}, nil
}

func nodeOf(k Kind) parquet.Node {
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

func (e *parquetEncoder) write(values []any) (err error) {
	defer recovered(&err)
	for i, v := range values {
		e.row[i] = e.value(e.columns[i].Kind, v).Level(0, definition(v), i)
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

func (e *parquetEncoder) close() (err error) {
	defer recovered(&err)
	return e.out.Close()
}

// definition returns the definition level of a value in an optional column.
func definition(v any) int {
	if v == nil {
		return 0
	}
	return 1
}

func (e *parquetEncoder) value(kind Kind, v any) parquet.Value {
	e.bytes += 8
	switch {
	case v == nil:
		return parquet.NullValue()
	case kind == Int:
		return parquet.Int64Value(v.(int64)) // checkValue returns nothing else, as below
	case kind == Float:
		return parquet.DoubleValue(v.(float64))
	case kind == Bool:
		return parquet.BooleanValue(v.(bool))
	}
	data, isBytes := v.([]byte)
	if kind != Bytes || !isBytes {
		data = bytes.ToValidUTF8(appendCell(nil, kind, v), []byte("\uFFFD"))
	}
	e.bytes += len(data)
	return parquet.ByteArrayValue(data)
}

// recovered turns a panic of the Parquet library into an error: damaged files can
// cause one.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = errors.New("the Parquet data is damaged or of an unknown type")
	}
}

// orderedGroup is a group whose fields keep their order; parquet.Group sorts them by name.
type orderedGroup struct {
	parquet.Group
	fields []field
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
func (o *orderedGroup) String() string { return "row" }

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
