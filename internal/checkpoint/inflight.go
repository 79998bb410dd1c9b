package checkpoint

import (
	"cmp"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/steps"
)

// None is larger than the ordinal of any row.
const None = math.MaxInt64

// InflightRows records the results of rows at the end of a segment, and finishes
// each row as soon as the segment has nothing of it left. It is for one goroutine.
type InflightRows struct {
	segment *Segment
	rows    []inflightRow // not finished, in the order of their ordinals
	spare   []*Recorder
}

type inflightRow struct {
	ordinal  int64
	recorder *Recorder
}

// NewInflightRows returns the in-flight rows of a segment.
func (s *Segment) NewInflightRows() *InflightRows { return &InflightRows{segment: s} }

// Begin notes a row that enters the segment.
func (f *InflightRows) Begin(ordinal int64) {
	if len(f.spare) == 0 {
		f.spare = append(f.spare, f.segment.NewRecorder())
	}
	r := f.spare[len(f.spare)-1]
	f.spare = f.spare[:len(f.spare)-1]
	r.Begin(ordinal)
	f.rows = append(f.rows, inflightRow{ordinal, r})
}

// Record adds a result of a row. Rows that are not in flight are ignored: they
// were replayed.
func (f *InflightRows) Record(row *steps.Row) error {
	i, found := slices.BinarySearchFunc(f.rows, row.Ordinal, func(r inflightRow, ordinal int64) int {
		return cmp.Compare(r.ordinal, ordinal)
	})
	if !found {
		return nil
	}
	return f.rows[i].recorder.Add(row)
}

// FinishBefore finishes the rows before the given ordinal.
func (f *InflightRows) FinishBefore(ordinal int64) error {
	n := 0
	for ; n < len(f.rows) && f.rows[n].ordinal < ordinal; n++ {
		if err := f.rows[n].recorder.End(); err != nil {
			return err
		}
		f.spare = append(f.spare, f.rows[n].recorder)
	}
	f.rows = append(f.rows[:0], f.rows[n:]...)
	return nil
}
