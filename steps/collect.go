package steps

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// collect makes one list of a variable over a group of rows (steps.md 3).
type collect struct {
	in, out slot
	by      []slot // rows in which these differ are of different groups
	size    int
	id      string
}

func buildCollect(s *spec.Collect, env *Env) (Runner, error) {
	in, out, err := env.inOut(&s.StepBase)
	if err != nil {
		return nil, err
	}
	by, err := env.slots(s.By)
	return &collect{in: in, out: out, by: by, size: batchSize(s.Batched), id: s.ID}, err
}

// SameGroup tells whether two neighbouring rows agree in the variables of `group_by`.
// A list or a record is the same as itself alone, not as another with the same
// content: so the list that Explode took tells apart the rows that it took.
func (c *collect) SameGroup(before, row *Row) bool {
	for _, v := range c.by {
		if !sameValue(before.Values[v.at], row.Values[v.at]) {
			return false
		}
	}
	return true
}

// OtherGroup tells whether a failed row is known to be of another group: one that
// failed before the variables of `group_by` were set may stand in the midst of this.
func (c *collect) OtherGroup(before, failed *Row) bool {
	for _, v := range c.by {
		if failed.Values[v.at] == value.Unset {
			return false
		}
	}
	return !c.SameGroup(before, failed)
}

// sameValue compares lists and records by identity, everything else by value.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	case *value.Record:
		return any(a) == b
	}
	return value.Equal(a, b)
}

// batchSize is the document's, 0 (all rows) where it says nothing.
func batchSize(b spec.Batched) int {
	if b.BatchConfig == nil {
		return 0
	}
	return b.BatchConfig.BatchSize
}

// Size is the most rows in a list; 0 means all.
func (c *collect) Size() int { return c.size }

// Batch emits one row with the list and what all rows agree in. The list
// stands in the output even where the rows agree in that too. A row whose
// input is unset fails alone, and keeps its place: the list has that of its last row.
func (c *collect) Batch(_ context.Context, rows []*Row, emit Emit) error {
	rows, behind := c.partition(rows)
	items := make([]any, 0, len(rows))
	kept, whole := rows, true
	for i, row := range rows {
		v, err := c.in.read(row)
		if err == nil {
			items = append(items, v)
			if !whole {
				kept = append(kept, row)
			}
			continue
		}
		if whole {
			kept, whole = slices.Clone(rows[:i]), false
		}
		if err := emitFailed(row, c.id, err, emit); err != nil {
			return err
		}
	}
	if len(kept) > 0 {
		out := commonValues(kept)
		c.out.write(out, items)
		if err := emit(out); err != nil {
			return err
		}
		release(kept)
	}
	for _, row := range behind {
		_, err := c.in.read(row)
		if err := emitFailed(row, c.id, err, emit); err != nil {
			return err
		}
	}
	return nil
}

// partition parts the rows behind the last whose input is set from the others.
func (c *collect) partition(rows []*Row) (list, behind []*Row) {
	n := len(rows)
	for n > 0 && rows[n-1].Values[c.in.at] == value.Unset {
		n--
	}
	return rows[:n], rows[n:]
}

// emitFailed passes a row of a group on as failed, alone.
func emitFailed(row *Row, step string, err error, emit Emit) error {
	row.Err = &Error{Step: step, Err: err}
	return emit(row)
}

// commonValues is a row of the variables in which all rows agree. It has the
// session of the first, and its number where all have the same.
func commonValues(rows []*Row) *Row {
	out := rows[0]
	if out.block != nil {
		out = out.Clone() // so that the rows can be spent
	}
	for _, row := range rows[1:] {
		if row.Number != out.Number {
			out.Number = 0
		}
		for i, v := range out.Values {
			if v != value.Unset && !value.Equal(v, row.Values[i]) {
				out.Values[i] = value.Unset
			}
		}
	}
	return out
}
