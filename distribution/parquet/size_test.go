package parquet

import (
	"testing"

	"github.com/parquet-go/parquet-go/format"
)

// TestTooLarge compares the sizes that files declare: a small column may repeat a value as often as it
// wants, a large one may be compressed as texts are.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		stored, expanded int64
		refused          bool
	}{{3346, 2 << 30, true}, {0, 1 << 40, true}, {100, 1 << 20, false}, {64 << 20, 2 << 30, false}, {3346, 256 << 20, false}} {
		m := &format.FileMetaData{RowGroups: []format.RowGroup{{Columns: []format.ColumnChunk{
			{MetaData: format.ColumnMetaData{PathInSchema: []string{"arr", "key"}, TotalCompressedSize: c.stored, TotalUncompressedSize: c.expanded}},
		}}}}
		if got := tooLarge(m, func(string) bool { return true }); (got != "") != c.refused {
			t.Errorf("%d bytes that expand to %d: %q", c.stored, c.expanded, got)
		}
	}
}
