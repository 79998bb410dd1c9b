package steps

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// collect makes one list of a variable's values over a group of rows.
type collect struct {
	in, out slot
	by      []slot // a change of one of these variables begins a new group
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

// SameGroup reports whether two adjacent rows have equal values of the group_by
// variables. Lists and records are compared by identity, not by content, so the
// list that an Explode expanded identifies the rows that came from it.
func (c *collect) SameGroup(before, row *Row) bool {
	for _, v := range c.by {
		if !sameValue(before.Values[v.at], row.Values[v.at]) {
			return false
		}
	}
	return true
}

// OtherGroup reports whether a failed row is known to be of another group. One that
// failed before its group_by variables were set may belong to this one.
func (c *collect) OtherGroup(before, failed *Row) bool {
	for _, v := range c.by {
		if failed.Values[v.at] == value.Unset {
			return false
		}
	}
	return !c.SameGroup(before, failed)
}

// sameValue compares lists and records by identity and other values by content.
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

// batchSize returns the declared batch size, 0 (all rows) where there is none.
func batchSize(b spec.Batched) int {
	if b.BatchConfig == nil {
		return 0
	}
	return b.BatchConfig.BatchSize
}

// Size returns the maximum number of rows in a list; 0 means all.
func (c *collect) Size() int { return c.size }

// Batch emits one row with the list and the values that all rows share. The output holds
// the list even if the rows share a value of it. A row whose input is unset fails alone
// and keeps its position; the list has the position of its last row.
func (c *collect) Batch(_ context.Context, rows []*Row, emit Emit) error {
	rows, trailing := c.partition(rows)
	items := make([]any, 0, len(rows))
	collected, complete := rows, true
	for i, row := range rows {
		v, err := c.in.read(row)
		if err == nil {
			items = append(items, v)
			if !complete {
				collected = append(collected, row)
			}
			continue
		}
		if complete {
			collected, complete = slices.Clone(rows[:i]), false
		}
		if err := emitFailed(row, c.id, err, emit); err != nil {
			return err
		}
	}
	if len(collected) > 0 {
		out := commonValues(collected)
		c.out.write(out, items)
		if err := emit(out); err != nil {
			return err
		}
		release(collected)
	}
	for _, row := range trailing {
		_, err := c.in.read(row)
		if err := emitFailed(row, c.id, err, emit); err != nil {
			return err
		}
	}
	return nil
}

// partition splits off the rows after the last one whose input is set.
func (c *collect) partition(rows []*Row) (rest, trailing []*Row) {
	n := len(rows)
	for n > 0 && rows[n-1].Values[c.in.at] == value.Unset {
		n--
	}
	return rows[:n], rows[n:]
}

// emitFailed emits one row of a group as failed.
func emitFailed(row *Row, step string, err error, emit Emit) error {
	row.Err = &Error{Step: step, Err: err}
	return emit(row)
}

// commonValues returns a row of the values in which all rows agree. It has the
// session of the first row, and its number if all rows have the same.
func commonValues(rows []*Row) *Row {
	out := rows[0]
	if out.block != nil {
		out = out.Clone() // the rows can then be released
	}
	for _, row := range rows[1:] {
		if row.Number != out.Number {
			out.Number = 0
		}
	}
	for i, v := range out.Values {
		if v != value.Unset && !haveValue(rows[1:], i, v) {
			out.Values[i] = value.Unset
		}
	}
	return out
}

// haveValue reports whether all rows have the value in the slot. Most values are texts.
func haveValue(rows []*Row, slot int, v any) bool {
	text, isText := v.(string)
	for _, row := range rows {
		if isText {
			if other, ok := row.Values[slot].(string); !ok || other != text {
				return false
			}
		} else if !value.Equal(v, row.Values[slot]) {
			return false
		}
	}
	return true
}
