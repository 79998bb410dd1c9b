package textfmt

import (
	"math"
	"strconv"
)

// Amount returns a sum of money or another small quantity with four significant digits and
// without an exponent: 12.35, 0.0000282.
func Amount(x float64) string {
	const digits = 4
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return Number(x)
	}
	decimals := max(digits-1-int(math.Floor(math.Log10(math.Abs(x)))), 0)
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64) // without zeros at the end
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
