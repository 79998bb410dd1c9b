package rowcounts

import "testing"

// TestCounts_Rows: things are counted for each row, and finished rows are forgotten, but no row of another segment.
func TestCounts_Rows(t *testing.T) {
	var c Counts[string]
	const other = 1 << SegmentBits
	for _, ordinal := range []int64{0, other, -1} {
		for want := range 3 {
			if n := c.Next(ordinal, "call"); n != want {
				t.Errorf("row %d has made %d equal calls, want %d", ordinal, n, want)
			}
		}
	}
	for ordinal := range int64(10 * maxInFlight) {
		c.Next(ordinal, "call")
		if unfinished := ordinal - maxInFlight; unfinished > 0 && c.Next(unfinished, "call") != 1 {
			t.Fatalf("row %d is forgotten at row %d", unfinished, ordinal)
		}
	}
	if len(c.rows) > 2*maxInFlight+2 {
		t.Errorf("%d rows are remembered", len(c.rows))
	}
	if c.Next(other, "call") != 3 || c.Next(-1, "call") != 3 {
		t.Error("a row of another segment is forgotten")
	}
}
