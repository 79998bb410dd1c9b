package builtin

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// seconds returns the length of a unit; 0 for an unknown one.
func seconds(unit string) int64 {
	switch strings.ToLower(unit) {
	case "s", "sec", "second", "seconds":
		return 1
	case "m", "min", "minute", "minutes":
		return 60
	case "h", "hour", "hours":
		return 3600
	case "d", "day", "days":
		return 86400
	case "w", "week", "weeks":
		return 7 * 86400
	}
	return 0
}

// duration adds up all numbers with a unit in a text such as "1h 30 minutes", and drops
// the fraction of a second of the sum. time.ParseDuration knows neither days nor words.
func duration(a arguments) (any, error) {
	text := a.text("duration")
	sum := new(big.Rat)
	found := false
	for rest := text; rest != ""; {
		start := strings.IndexFunc(rest, digit)
		if start < 0 {
			break
		}
		rest = rest[start:]
		number := prefix(rest, func(r rune) bool { return digit(r) || r == '.' })
		rest = strings.TrimLeftFunc(rest[len(number):], unicode.IsSpace)
		unit := prefix(rest, unicode.IsLetter)
		rest = rest[len(unit):]
		n, ok := new(big.Rat).SetString(strings.TrimRight(number, "."))
		if size := seconds(unit); ok && size > 0 && len(number) < 40 {
			sum.Add(sum, n.Mul(n, new(big.Rat).SetInt64(size)))
			found = true
		}
	}
	whole := new(big.Int).Quo(sum.Num(), sum.Denom())
	switch {
	case !found:
		return nil, fmt.Errorf("%q is not a duration; write numbers with units, such as 1h 30m or 2 days", text)
	case !whole.IsInt64():
		return nil, fmt.Errorf("%q is too long", text)
	}
	return whole.Int64(), nil
}

func digit(r rune) bool { return r >= '0' && r <= '9' }

// prefix returns the longest prefix of characters for which is returns true.
func prefix(text string, is func(rune) bool) string {
	if end := strings.IndexFunc(text, func(r rune) bool { return !is(r) }); end >= 0 {
		return text[:end]
	}
	return text
}
