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
