package batch

import (
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// Finish is when the rest of a run is done without batches. The zero value is never.
type Finish struct {
	After time.Duration // after the first batch; 0 for any time
	Rows  int           // when as many rows are left, or fewer
	Share float64       // likewise, as a share of all rows
}

// ParseFinish reads a time such as 2h, a number of rows, or a share of the rows such as 5%.
func ParseFinish(text string) (f Finish, err error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		f.Share, err = strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if f.Share /= 100; err == nil && f.Share > 0 && f.Share < 1 {
			return f, nil
		}
	} else if f.Rows, err = strconv.Atoi(text); err == nil && f.Rows > 0 {
		return f, nil
	} else if f.After, err = time.ParseDuration(text); err == nil && f.After > 0 {
		return Finish{After: f.After}, nil
	}
	return Finish{}, terminal.Usagef("--finish-after %s: expected a time such as 2h, a number of rows, or a share of the rows such as 5%%", text)
}

// isDue reports whether so few of all rows are left that they are done without batches.
func (f Finish) isDue(left, all int) bool {
	return f.Rows > 0 && left <= f.Rows || f.Share > 0 && float64(left) <= f.Share*float64(all)
}
