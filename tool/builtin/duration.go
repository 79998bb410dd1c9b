package builtin

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// seconds is how long a unit of a duration is; 0 for a word that is none.
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

// duration sums up every number with a unit of a text such as "1h 30 minutes"; a
// fraction of a second is dropped in the end.
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

// prefix is the start of a text whose characters all are of a kind.
func prefix(text string, is func(rune) bool) string {
	if end := strings.IndexFunc(text, func(r rune) bool { return !is(r) }); end >= 0 {
		return text[:end]
	}
	return text
}
