// Package builtin implements the functions of qtype.application.commons.tools, which
// documents declare as PythonFunctionTools. They run in this process, without Python.
package builtin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode"

	"github.com/ncruces/go-strftime"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// function computes a result from arguments that match its parameters.
type function struct {
	params []param
	run    func(arguments) (any, error)
}

// param is a parameter of a function.
type param struct {
	name, typ string
	optional  bool
}

// arguments are the converted arguments of a call, by their names.
type arguments map[string]any

// functions lists the functions of the module.
func functions() map[string]function {
	stamp := param{name: "timestamp", typ: "datetime"}
	shift := []param{stamp}
	for _, u := range units() {
		shift = append(shift, param{u.name, "int", true})
	}
	return map[string]function{
		"base64_encode":             {[]param{{"data", "file", false}}, encode},
		"base64_decode":             {[]param{{"data", "text", false}}, decode},
		"get_current_timestamp":     {nil, now},
		"timedelta":                 {shift, addDuration},
		"calculate_time_difference": {[]param{{"start_time", "datetime", false}, {"end_time", "datetime", false}}, difference},
		"parse_duration_string":     {[]param{{"duration", "text", false}}, duration},
		"format_datetime":           {[]param{stamp, {"format_string", "text", false}}, format},
	}
}

// Has reports whether a PythonFunctionTool is one of these functions.
func Has(t *spec.PythonFunctionTool) bool {
	_, ok := functions()[t.FunctionName]
	return ok && t.ModulePath == spec.StandardModule
}

// builtinTool is one of the functions as a tool.
type builtinTool struct {
	info tool.Info
	function
}

// New makes the tool of a function for which Has is true.
func New(t *spec.PythonFunctionTool) (tool.Tool, error) {
	f, ok := functions()[t.FunctionName]
	if !ok || t.ModulePath != spec.StandardModule {
		return nil, fmt.Errorf("tool %s: module %s has no function %s", t.ID, spec.StandardModule, t.FunctionName)
	}
	return &builtinTool{tool.Describe(t.Common(), t.Inputs), f}, nil
}

// Info describes the tool.
func (c *builtinTool) Info() tool.Info { return c.info }

// Call runs the function.
func (c *builtinTool) Call(ctx context.Context, args map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	given, err := c.info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	read := arguments{}
	for _, p := range c.params {
		raw, ok := given[p.name]
		switch {
		case p.optional && raw == nil:
			continue
		case !ok:
			return nil, &tool.ArgumentError{Tool: c.info.ID, Argument: p.name, Problem: "is missing"}
		}
		v, err := value.Coerce(spec.Type{Name: p.typ}, raw)
		if err != nil {
			return nil, &tool.ArgumentError{Tool: c.info.ID, Argument: p.name, Problem: err.Error()}
		}
		read[p.name] = v
	}
	result, err := c.run(read)
	if err != nil {
		return nil, &tool.FailedError{Tool: c.info.ID, Message: err.Error(), Err: &redact.PublicError{Err: err}}
	}
	return result, nil
}

func (a arguments) text(name string) string { s, _ := a[name].(string); return s }

func (a arguments) moment(name string) value.DateTime { d, _ := a[name].(value.DateTime); return d }

func encode(a arguments) (any, error) {
	data, _ := a["data"].([]byte)
	return base64.StdEncoding.EncodeToString(data), nil
}

func decode(a arguments) (any, error) {
	data, err := base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(a.text("data")), ""))
	if err != nil {
		return nil, errors.New("data is not base64")
	}
	return data, nil
}

func now(arguments) (any, error) {
	return value.DateTime{Time: time.Now().UTC().Truncate(time.Microsecond), Zoned: true}, nil
}

// units lists the units of a shift and their lengths in microseconds.
func units() []struct {
	name   string
	micros int64
} {
	const second = 1_000_000
	return []struct {
		name   string
		micros int64
	}{{"days", 86400 * second}, {"seconds", second}, {"microseconds", 1}, {"milliseconds", 1000},
		{"minutes", 60 * second}, {"hours", 3600 * second}, {"weeks", 7 * 86400 * second}}
}

// addDuration adds a positive or negative duration to a timestamp.
func addDuration(a arguments) (any, error) {
	sum := new(big.Int)
	for _, u := range units() {
		if n, ok := a[u.name].(int64); ok {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(u.micros)))
		}
	}
	at := a.moment("timestamp")
	const century = 3_155_760_000_000_000 // microseconds
	if new(big.Int).Abs(sum).Cmp(big.NewInt(100*century)) > 0 {
		return nil, errors.New("the result is outside of the years 1 to 9999")
	}
	micros := sum.Int64()
	// a time.Duration holds 292 years only, so days are added separately
	at.Time = at.Time.Add(time.Duration(micros%(86400*1_000_000))*time.Microsecond).AddDate(0, 0, int(micros/(86400*1_000_000)))
	if at.Time.Year() < 1 || at.Time.Year() > 9999 {
		return nil, errors.New("the result is outside of the years 1 to 9999")
	}
	return at, nil
}

// difference returns the time between two timestamps. Days are rounded down, so that
// seconds and microseconds are never negative, as in Python.
func difference(a arguments) (any, error) {
	start, end := a.moment("start_time"), a.moment("end_time")
	if start.Zoned != end.Zoned {
		return nil, errors.New("one of start_time and end_time has a time zone and the other has none")
	}
	micros := (end.Time.Unix()-start.Time.Unix())*1_000_000 + int64(end.Time.Nanosecond()/1000) - int64(start.Time.Nanosecond()/1000)
	const day = 86400 * 1_000_000
	days, rest := micros/day, micros%day
	if rest < 0 {
		days, rest = days-1, rest+day
	}
	total := float64(micros) / 1e6
	return value.NewRecord("",
		value.Field{Name: "total_seconds", Value: total},
		value.Field{Name: "total_minutes", Value: total / 60},
		value.Field{Name: "total_hours", Value: total / 3600},
		value.Field{Name: "total_days", Value: total / 86400},
		value.Field{Name: "days", Value: days},
		value.Field{Name: "seconds", Value: rest / 1_000_000},
		value.Field{Name: "microseconds", Value: rest % 1_000_000}), nil
}

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

// Directives of strftime that Python has. The library knows further ones, which
// Python rejects.
const (
	numericDirectives = "CdefgGHIjklmMSuUVwWyY"
	textDirectives    = "aAbBcDFhnpPrRstTxXZz%"
)

// format writes a time by the directives of Python's strftime, in English.
// go-strftime formats single directives. What it lacks is added here: the flags of
// glibc (- _ 0 ^), the zones of times without one, %n and %t, and an error for an
// unknown directive.
func format(a arguments) (any, error) {
	at, layout := a.moment("timestamp"), a.text("format_string")
	var out strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' {
			out.WriteByte(layout[i])
			continue
		}
		start := i
		i++
		flag := byte(0)
		if i < len(layout) && strings.IndexByte("-_0^", layout[i]) >= 0 {
			flag = layout[i]
			i++
		}
		separator := ""
		if flag == 0 && strings.HasPrefix(layout[i:], ":z") {
			separator = ":"
			i++
		}
		if i == len(layout) {
			return nil, fmt.Errorf("format_string ends with %q; write %%%% for a percent sign", layout[start:])
		}
		switch letter := layout[i]; {
		case letter == 'z':
			out.WriteString(offset(at, separator))
		case strings.IndexByte(numericDirectives, letter) >= 0:
			out.WriteString(pad(strftime.Format("%"+string(letter), at.Time), flag))
		case strings.IndexByte(textDirectives, letter) >= 0:
			text := textDirective(at, letter)
			if flag == '^' {
				text = strings.ToUpper(text)
			}
			out.WriteString(text)
		default:
			return nil, fmt.Errorf("format_string has %q, which is not a directive of strftime", layout[start:i+1])
		}
	}
	return out.String(), nil
}

// pad applies a flag to a number that is filled to its width: - removes the fill,
// _ fills with spaces, 0 with zeros.
func pad(number string, flag byte) string {
	bare := strings.TrimLeft(number[:len(number)-1], "0 ") + number[len(number)-1:]
	fill := len(number) - len(bare)
	switch flag {
	case '-':
		return bare
	case '_':
		return strings.Repeat(" ", fill) + bare
	case '0':
		return strings.Repeat("0", fill) + bare
	}
	return number
}

func textDirective(at value.DateTime, letter byte) string {
	switch letter {
	case 'Z':
		return zone(at)
	case 'n':
		return "\n"
	case 't':
		return "\t"
	}
	return strftime.Format("%"+string(letter), at.Time)
}

// offset returns the zone's offset as +0200, with a separator between hours and
// minutes; empty where the zone is not known.
func offset(d value.DateTime, separator string) string {
	if !d.Zoned {
		return ""
	}
	return d.Time.Format("-07" + separator + "00")
}

// zone returns Python's name of a zone with a known offset only.
func zone(d value.DateTime) string {
	switch _, seconds := d.Time.Zone(); {
	case !d.Zoned:
		return ""
	case seconds == 0:
		return "UTC"
	}
	return "UTC" + d.Time.Format("-07:00")
}
