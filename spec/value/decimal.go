package value

import (
	"math/big"
	"strconv"
	"strings"
)

// Decimal is the digits of an exact decimal number, as Parquet files and databases
// have them: 12.50. Coerce makes it a text with these digits, an int, or a float if
// the float has the same value in its shortest form; a Decimal is never rounded.
type Decimal string

// number returns the smallest number type that holds the decimal exactly, or the decimal.
func (d Decimal) number() any {
	if strings.ContainsAny(string(d), ".eE") {
		if _, exact := d.float(); !exact {
			return d
		}
	}
	return number(string(d))
}

// float returns the float whose shortest form is the decimal, and whether there is one.
func (d Decimal) float() (float64, bool) {
	f, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(string(d))
	if !ok {
		return f, true // NaN
	}
	short, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return f, ok && exact.Cmp(short) == 0
}

// coerceDecimal converts a decimal to a scalar type.
func coerceDecimal(name string, d Decimal) (any, bool) {
	switch name {
	case "text":
		return string(d), true
	case "int":
		return parseInt(string(d))
	case "float":
		return d.float()
	}
	if x, isDecimal := d.number().(Decimal); isDecimal {
		return x, name == anyType
	}
	return scalar(name)(d.number())
}
