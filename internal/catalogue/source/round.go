package source

import "math"

// round removes rounding errors of a price.
func round(price float64) float64 { return math.Round(price*1e6) / 1e6 }
