package builtin_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tool/builtin"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call runs a function that is declared as in the commons document; inputs are "name: type".
func call(t *testing.T, function string, args map[string]any) string {
	t.Helper()
	decl := &spec.PythonFunctionTool{ModulePath: spec.StandardModule, FunctionName: function}
	decl.ID = function
	for name := range args {
		decl.Inputs = append(decl.Inputs, &spec.Variable{ID: name, Type: spec.Type{Name: spec.Any}})
	}
	if !builtin.Has(decl) {
		t.Fatalf("%s is not known", function)
	}
	made, err := builtin.New(decl)
	if err != nil {
		t.Fatal(err)
	}
	result, err := made.Call(t.Context(), args)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(value.JSON(result))
}

func TestFunctions(t *testing.T) {
	for _, c := range []struct {
		function string
		args     map[string]any
		want     string
	}{
		{"base64_encode", map[string]any{"data": []byte{0, 255}}, `"AP8="`},
		{"base64_decode", map[string]any{"data": "AP8="}, `{"base64":"AP8="}`},
		{"base64_decode", map[string]any{"data": "AP8"}, `error: tool base64_decode: data is not base64`},
		{"timedelta", map[string]any{"timestamp": "2024-02-28T23:00:00Z", "hours": 2, "days": 1}, `"2024-03-01T01:00:00Z"`},
		{"timedelta", map[string]any{"timestamp": "2024-01-01T00:00:00+02:00", "weeks": -1, "milliseconds": 1500, "microseconds": 1}, `"2023-12-25T00:00:01.500001+02:00"`},
		{"timedelta", map[string]any{"timestamp": "2024-01-01T00:00:00", "days": 365000}, `"3023-05-04T00:00:00"`},
		{"timedelta", map[string]any{"timestamp": "2024-01-01T00:00:00", "weeks": 10_000_000}, `error: tool timedelta: the result is outside of the years 1 to 9999`},
		{"timedelta", map[string]any{"timestamp": "2024-01-01T00:00:00", "days": int64(1) << 60}, `error: tool timedelta: the result is outside of the years 1 to 9999`},
		{"timedelta", map[string]any{"timestamp": "soon"}, `error: tool timedelta: argument timestamp: expected datetime, got "soon"`},
		{"calculate_time_difference", map[string]any{"start_time": "2024-01-02T00:00:00Z", "end_time": "2024-01-01T23:59:59.5Z"},
			`{"total_seconds":-0.5,"total_minutes":-0.008333333333333333,"total_hours":-0.0001388888888888889,"total_days":-0.000005787037037037037,"days":-1,"seconds":86399,"microseconds":500000}`},
		{"calculate_time_difference", map[string]any{"start_time": "0001-01-01T00:00:00Z", "end_time": "9999-12-31T00:00:00.1Z"},
			`{"total_seconds":315537811200.1,"total_minutes":5258963520.001666,"total_hours":87649392.00002778,"total_days":3652058.000001157,"days":3652058,"seconds":0,"microseconds":100000}`},
		{"calculate_time_difference", map[string]any{"start_time": "2024-01-02T00:00:00Z", "end_time": "2024-01-01T23:59:59"},
			`error: tool calculate_time_difference: one of start_time and end_time has a time zone and the other has none`},
		{"parse_duration_string", map[string]any{"duration": "1h30m"}, `5400`},
		{"parse_duration_string", map[string]any{"duration": "2 Weeks, 1 DAY and 3 hours 4min 5 sec"}, `1307045`},
		{"parse_duration_string", map[string]any{"duration": "1.5 hours"}, `5400`},
		{"parse_duration_string", map[string]any{"duration": "5 months"}, `error: tool parse_duration_string: "5 months" is not a duration; write numbers with units, such as 1h 30m or 2 days`},
		{"parse_duration_string", map[string]any{"duration": ""}, `error: tool parse_duration_string: "" is not a duration; write numbers with units, such as 1h 30m or 2 days`},
		{"format_datetime", map[string]any{"timestamp": "2026-03-07T00:05:09+02:00", "format_string": "%-d. %B %Y, %l:%M %p%n100%%"}, `"7. March 2026, 12:05 AM\n100%"`},
		{"format_datetime", map[string]any{"timestamp": "2026-03-07", "format_string": "%Y-%Q"}, `error: tool format_datetime: format_string has "%Q", which is not a directive of strftime`},
		{"format_datetime", map[string]any{"timestamp": "2026-03-07", "format_string": "100%"}, `error: tool format_datetime: format_string ends with "%"; write %% for a percent sign`},
	} {
		if got := call(t, c.function, c.args); got != c.want {
			t.Errorf("%s %v:\n got %s\nwant %s", c.function, c.args, got, c.want)
		}
	}
	now := call(t, "get_current_timestamp", nil)
	at, err := time.Parse(`"`+time.RFC3339Nano+`"`, now)
	if err != nil || time.Since(at).Abs() > time.Minute || !strings.HasSuffix(now, `Z"`) {
		t.Errorf("now is %s", now)
	}
}

// TestFormatDatetime_MatchesPython compares every directive with Python.
func TestFormatDatetime_MatchesPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	const letters = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%"
	dates := []string{"2026-01-01T00:00:00+00:00", "2024-12-30T13:45:06.000123+00:00", "2023-01-01T12:00:00+05:30", "1999-12-31T23:59:59.999999-08:00", "2027-02-28T09:05:00+00:00"}
	var layouts []string
	for _, l := range letters {
		layouts = append(layouts, "%"+string(l))
	}
	layouts = append(layouts, "%-d", "%_d", "%0e", "%^a", "%-j", "%f", "Day %d of %B, %Y")
	in, _ := json.Marshal(map[string]any{"dates": dates, "layouts": layouts})
	cmd := testkit.Command(t, python, "-c", `
import datetime, json, sys
x = json.load(sys.stdin)
json.dump([datetime.datetime.fromisoformat(d).strftime(l) if l != "%s" else str(int(datetime.datetime.fromisoformat(d).timestamp())) for d in x["dates"] for l in x["layouts"]], sys.stdout)`)
	cmd.Env = []string{"LC_ALL=C"}
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, d := range dates {
		for j, l := range layouts {
			got := call(t, "format_datetime", map[string]any{"timestamp": d, "format_string": l})
			if w := string(value.JSON(want[i*len(layouts)+j])); got != w {
				t.Errorf("%s of %s: got %s, Python has %s", l, d, got, w)
			}
		}
	}
}
