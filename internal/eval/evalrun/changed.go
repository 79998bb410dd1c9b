package evalrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/value"
)

// digestBytes is how many bytes of a hash the digest of a row has.
const digestBytes = 8

// digestOf returns a hash of the columns of a row and their values. The order of the columns does not count.
func digestOf(rec records.Record) string {
	cells := make([]string, 0, len(rec.Columns))
	for _, c := range rec.Columns {
		v, _ := rec.Get(c)
		cells = append(cells, fmt.Sprintf("%q: %s\n", c, value.JSON(v)))
	}
	slices.Sort(cells)
	sum := sha256.Sum256([]byte(strings.Join(cells, "")))
	return hex.EncodeToString(sum[:digestBytes])
}

// digests returns the digests of the rows.
func (d *dataset) digests() []string {
	all := make([]string, len(d.rows))
	for i := range d.rows {
		all[i] = digestOf(d.rows[i].Record)
	}
	return all
}

// digestsByRow returns the digests of the rows of a report by their numbers; none for a report of a
// version that recorded none.
func (r *Report) digestsByRow() map[int64]string {
	byRow := make(map[int64]string, len(r.Digests))
	for i, sum := range r.Digests {
		if at := i * max(r.Trials, 1); at < len(r.Results) && r.Results[at] != nil { // those of the first variant
			byRow[r.Results[at].Row] = sum
		}
	}
	return byRow
}

// addWarnings adds those about the evaluation file, and states that an earlier report is of other rows: its means are not those of the rows of this
// evaluation, or the numbers of its rows are those of other ones.
func (x *execution) addWarnings(r *Report) {
	r.Warnings = append(r.Warnings, x.warnings...)
	if base := x.config.Baseline; base != nil && len(base.Digests) > 0 {
		changed, added, removed := x.compareRows(base.digestsByRow(), r.Digests)
		if differences := describeRows(changed, added, removed); differences != "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: the rows are not those of the baseline (%s): only those that are the same are compared", r.Data, differences))
		}
	}
	failed := x.config.OnlyFailed
	if failed == nil || len(failed.Digests) == 0 {
		return
	}
	before := failed.digestsByRow()
	selected := failed.failedRows()
	for number := range before {
		if !selected[number] {
			delete(before, number)
		}
	}
	changed, added, removed := x.compareRows(before, r.Digests)
	if x.config.Limit > 0 {
		removed = 0
	}
	if differences := describeRows(changed, added, removed); differences != "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: the rows that failed have changed since the report (%s): rows are selected by their numbers", r.Data, differences))
	}
}

// compareRows compares rows with an earlier report by their numbers. It counts the different, the new
// and the missing rows.
func (x *execution) compareRows(before map[int64]string, now []string) (changed, added, removed int) {
	removed = len(before)
	for i := range x.data.rows {
		sum, known := before[x.data.rows[i].Number]
		switch {
		case !known:
			added++
			continue
		case sum != now[i]:
			changed++
		}
		removed--
	}
	return changed, added, removed
}

// describeRows returns the differences of rows for a message; empty for none.
func describeRows(changed, added, removed int) string {
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{{changed, "changed"}, {added, "added"}, {removed, "missing"}} {
		if part.count > 0 {
			parts = append(parts, textfmt.Count(int64(part.count), "row")+" "+part.what)
		}
	}
	return strings.Join(parts, ", ")
}
