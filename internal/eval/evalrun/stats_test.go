package evalrun

import "testing"

// TestComparison_FewRows checks that a few rows which all differ are not significant.
func TestComparison_FewRows(t *testing.T) {
	for rows, want := range map[int]bool{1: false, 5: false, 6: true, 20: true} {
		from, to := make([]float64, rows), make([]float64, rows)
		for i := range to {
			to[i] = 1
		}
		if c := compare(from, to, false); c.Significant() != want || c.Better != rows {
			t.Errorf("%d rows: %+v", rows, c)
		}
	}
}
