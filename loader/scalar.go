package loader

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// resolve11 returns the kind of an unquoted scalar in YAML 1.1, with two exceptions:
// times such as 1:30 are texts, and so are dates, except where a text is required
// (isDate).
func resolve11(s string) kind {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return null
	case "yes", "Yes", "YES", "no", "No", "NO", "true", "True", "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF":
		return boolean
	}
	body := strings.TrimLeft(s[:1], "+-") + s[1:]
	switch {
	case isInteger(body):
		return integer
	case isFloat(body, body != s):
		return float
	}
	return text
}

// isDate reports whether YAML 1.1 reads an unquoted text as a date or a time stamp.
func isDate(s string) bool {
	if len(s) < len("2006-1-2") || s[4] != '-' || s[0] < '0' || s[0] > '9' {
		return false
	}
	return timestamp().MatchString(s)
}

// timestamp is compiled when the first text looks like a date.
var timestamp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d{4}-\d\d-\d\d$|^\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?$`)
})

// isInteger reports whether a text is an integer of YAML 1.1: 12, 1_000, 017, 0x1F, 0b101.
func isInteger(s string) bool {
	switch {
	case s == "":
		return false
	case strings.HasPrefix(s, "0b"):
		return len(s) > 2 && consistsOf(s[2:], "01_")
	case strings.HasPrefix(s, "0x"):
		return len(s) > 2 && consistsOf(s[2:], "0123456789abcdefABCDEF_")
	case s[0] == '0':
		return consistsOf(s, "01234567_")
	}
	return s[0] >= '1' && s[0] <= '9' && consistsOf(s, "0123456789_")
}

// isFloat reports whether a text is a float of YAML 1.1: 1.5, 1., .5, 1.0e+3, .inf or .nan; an exponent needs a dot and a sign.
func isFloat(s string, signed bool) bool {
	switch s {
	case ".inf", ".Inf", ".INF":
		return true
	case ".nan", ".NaN", ".NAN":
		return !signed
	}
	whole, rest, dotted := strings.Cut(s, ".")
	if !dotted || whole != "" && (whole[0] == '_' || !consistsOf(whole, "0123456789_")) {
		return false
	}
	fraction := rest
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		exponent := rest[i+1:]
		fraction = rest[:i]
		if len(exponent) < 2 || exponent[0] != '+' && exponent[0] != '-' || !consistsOf(exponent[1:], "0123456789") {
			return false
		}
	}
	if whole == "" && (signed || fraction == "" || fraction[0] == '_') {
		return false
	}
	return consistsOf(fraction, "0123456789_")
}

func consistsOf(s, set string) bool { return strings.Trim(s, set) == "" }

// parseInteger reads an integer that isInteger accepts.
func parseInteger(s string) (int64, bool) {
	s = strings.ReplaceAll(s, "_", "")
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		base, s = 16, s[2:]
	case strings.HasPrefix(s, "0b"):
		base, s = 2, s[2:]
	case len(s) > 1 && s[0] == '0':
		base = 8
	}
	n, err := strconv.ParseInt(sign+s, base, 64)
	return n, err == nil
}

// parseFloat reads a number that isFloat or isInteger accepts.
func parseFloat(s string) (float64, bool) {
	s = strings.ReplaceAll(s, "_", "")
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".inf":
		if strings.HasPrefix(s, "-") {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case ".nan":
		return math.NaN(), true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// The conversions of scalars: a text may contain a number or a boolean.

// toBool converts a scalar to a boolean.
func (n *node) toBool() (value, ok bool) {
	switch n.kind {
	case boolean, text:
		switch strings.ToLower(n.text) {
		case "true", "yes", "on", "y", "t", "1":
			return true, true
		case "false", "no", "off", "n", "f", "0":
			return false, true
		}
	case integer, float:
		f, fine := n.toFloat()
		return f == 1, fine && (f == 0 || f == 1)
	}
	return false, false
}

// toInt converts a scalar to an integer.
func (n *node) toInt() (int64, bool) {
	switch n.kind {
	case integer:
		return parseInteger(n.text)
	case boolean:
		yes, _ := n.toBool()
		if yes {
			return 1, true
		}
		return 0, true
	case float:
		f, ok := parseFloat(n.text)
		return toWhole(f, ok)
	case text:
		return textToInt(strings.TrimSpace(n.text))
	}
	return 0, false
}

// textToInt reads "5", "+5", "1_000" and "5.0", but no exponents and no other base.
func textToInt(s string) (int64, bool) {
	if strings.Trim(s, "0123456789_+-.") != "" || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	whole, fraction, dotted := strings.Cut(s, ".")
	if dotted && (fraction == "" || strings.Trim(fraction, "0") != "") {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(whole, "_", ""), 10, 64)
	return n, err == nil
}

// toWhole converts f to an integer; beyond 2^53 floats are not exact.
func toWhole(f float64, ok bool) (int64, bool) {
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// toFloat converts a scalar to a number.
func (n *node) toFloat() (float64, bool) {
	switch n.kind {
	case integer:
		if i, ok := parseInteger(n.text); ok {
			return float64(i), true
		}
		return parseFloat(n.text)
	case float:
		return parseFloat(n.text)
	case boolean:
		i, ok := n.toInt()
		return float64(i), ok
	case text:
		s := strings.TrimSpace(n.text)
		if strings.ContainsAny(s, "xXpP") {
			return 0, false
		}
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil
	}
	return 0, false
}

// toAny converts a value to the types of JSON: nil, bool, int64, float64, string,
// []any and map[string]any.
func (n *node) toAny() any {
	switch n.kind {
	case boolean:
		b, _ := n.toBool()
		return b
	case integer:
		if i, ok := n.toInt(); ok {
			return i
		}
		f, _ := n.toFloat()
		return f
	case float:
		f, _ := n.toFloat()
		return f
	case text:
		return n.text
	case sequence:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.toAny()
		}
		return list
	case mapping:
		m := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			m[p.key.text] = p.value.toAny()
		}
		return m
	}
	return nil
}
