package textfmt

import (
	"math"
	"strconv"
)

// Number formats a number for people and for JSON: the shortest digits that are read as x, and
// an exponent only below 1e-6 and from 1e21.
func Number(x float64) string { return string(AppendNumber(nil, x)) }

// AppendNumber appends Number(x) to b.
func AppendNumber(b []byte, x float64) []byte {
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, x, format, -1, 64)
}
