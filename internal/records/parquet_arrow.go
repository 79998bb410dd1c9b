package records

import (
	"encoding/base64"
	"encoding/binary"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Parquet has no lists of a fixed size. Readers that use Arrow (pyarrow, pandas, polars,
// DuckDB) take them from the key ARROW:schema of the file's metadata: the schema of the
// columns as a message of Arrow's IPC format, in base64. The numbers below are those of
// Schema.fbs and Message.fbs of Arrow's format.

const (
	arrowInt       = 2
	arrowFloat     = 3
	arrowBinary    = 4
	arrowUTF8      = 5
	arrowBool      = 6
	arrowDate      = 8
	arrowTime      = 9
	arrowTimestamp = 10
	arrowList      = 12
	arrowStruct    = 13
	arrowFixedList = 16

	arrowVersion5     = 4
	arrowSchemaHeader = 1
	arrowFloat64      = 2
	arrowMicrosecond  = 2
	arrowNanosecond   = 3
)

// arrowSchema returns the value of ARROW:schema; empty if no column needs it.
func arrowSchema(columns []*parquetNode) string {
	if !hasFixedList(columns) {
		return ""
	}
	b := arrowBuilder{flatbuffers.NewBuilder(1024)}
	fields := b.fields(columns)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, fields, 0)
	schema := b.EndObject()
	b.StartObject(5)
	b.PrependInt64Slot(3, 0, 0) // the message has no body
	b.PrependUOffsetTSlot(2, schema, 0)
	b.PrependInt16Slot(0, arrowVersion5, 0)
	b.PrependByteSlot(1, arrowSchemaHeader, 0)
	b.Finish(b.EndObject())
	message := b.FinishedBytes()
	for len(message)%8 != 0 {
		message = append(message, 0)
	}
	head := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(len(message)))
	return base64.StdEncoding.EncodeToString(append(head, message...))
}

// hasFixedList reports whether a column has lists of one size.
func hasFixedList(nodes []*parquetNode) bool {
	for _, n := range nodes {
		if n.vector.fixed() || hasFixedList(n.fields) || n.elem != nil && hasFixedList([]*parquetNode{n.elem}) {
			return true
		}
	}
	return false
}

// fixed reports whether all lists have the same size.
func (s *vectorSize) fixed() bool { return s != nil && s.size > 0 && !s.varied }

// arrowBuilder builds tables of the schema; those inside a table come before it.
type arrowBuilder struct{ *flatbuffers.Builder }

func (b arrowBuilder) fields(nodes []*parquetNode) flatbuffers.UOffsetT {
	tables := make([]flatbuffers.UOffsetT, len(nodes))
	for i, n := range nodes {
		tables[i] = b.field(n)
	}
	return b.CreateVectorOfTables(tables)
}

func (b arrowBuilder) field(n *parquetNode) flatbuffers.UOffsetT {
	children := n.fields
	if n.elem != nil {
		children = []*parquetNode{n.elem}
	}
	inner := b.fields(children)
	name := b.CreateString(n.name)
	kind, typ := b.typeOf(n)
	b.StartObject(7)
	b.PrependUOffsetTSlot(5, inner, 0)
	b.PrependUOffsetTSlot(3, typ, 0)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependBoolSlot(1, true, false) // nullable
	b.PrependByteSlot(2, kind, 0)
	return b.EndObject()
}

// typeOf returns the number of a node's type and its table.
func (b arrowBuilder) typeOf(n *parquetNode) (kind byte, table flatbuffers.UOffsetT) {
	switch {
	case n.vector.fixed():
		b.StartObject(1)
		b.PrependInt32Slot(0, int32(n.vector.size), 0)
		return arrowFixedList, b.EndObject()
	case n.elem != nil:
		return arrowList, b.empty()
	case n.fields != nil:
		return arrowStruct, b.empty()
	case n.times != nil && !n.times.isText:
		return b.timeType(n.times)
	case n.typ.Is("date"):
		b.StartObject(1)
		b.PrependInt16Slot(0, 0, 1) // days; the default is milliseconds
		return arrowDate, b.EndObject()
	}
	return b.leafType(n.kind)
}

func (b arrowBuilder) empty() flatbuffers.UOffsetT {
	b.StartObject(0)
	return b.EndObject()
}

func (b arrowBuilder) timeType(l *timeLeaf) (kind byte, table flatbuffers.UOffsetT) {
	unit := int16(arrowMicrosecond)
	if l.nanos {
		unit = arrowNanosecond
	}
	if l.day {
		b.StartObject(2)
		b.PrependInt32Slot(1, 64, 32) // bits
		b.PrependInt16Slot(0, unit, 1)
		return arrowTime, b.EndObject()
	}
	zone := flatbuffers.UOffsetT(0)
	if !l.local {
		zone = b.CreateString("UTC")
	}
	b.StartObject(2)
	b.PrependUOffsetTSlot(1, zone, 0)
	b.PrependInt16Slot(0, unit, 0)
	return arrowTimestamp, b.EndObject()
}

func (b arrowBuilder) leafType(k Kind) (kind byte, table flatbuffers.UOffsetT) {
	switch k {
	case Int:
		b.StartObject(2)
		b.PrependInt32Slot(0, 64, 0)
		b.PrependBoolSlot(1, true, false) // signed
		return arrowInt, b.EndObject()
	case Float:
		b.StartObject(1)
		b.PrependInt16Slot(0, arrowFloat64, 0)
		return arrowFloat, b.EndObject()
	case Bool:
		return arrowBool, b.empty()
	case Bytes:
		return arrowBinary, b.empty()
	}
	return arrowUTF8, b.empty()
}
