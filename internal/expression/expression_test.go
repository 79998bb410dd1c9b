package expression_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// env returns variables of most types.
func env(t *testing.T) map[string]spec.Type {
	t.Helper()
	types := map[string]spec.Type{}
	for name, text := range map[string]string{"n": "int", "x": "float", "s": "text", "b": "boolean", "maybe": "int?", "note": "text?",
		"list": "list[int]", "words": "list[text]", "at": "datetime", "day": "date", "msg": "ChatMessage", "any": "any"} {
		parsed, err := spec.ParseType(text)
		if err != nil {
			t.Fatal(err)
		}
		types[name] = parsed
	}
	types["order"] = spec.Type{Name: "Order", Custom: &spec.CustomType{ID: "Order", Properties: []spec.Property{
		{Name: "number", Type: types["n"]}, {Name: "paid", Type: spec.Type{Name: "boolean", Optional: true}}}}}
	return types
}

func values() map[string]any {
	return map[string]any{"n": 3, "x": 1.5, "s": "abc", "b": true, "maybe": nil, "note": nil, "list": []any{1, 2, 3}, "words": []any{"a", "b"},
		"at": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "day": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		"msg": expression.NewMessage(chat.Text(chat.User, "hello")), "any": []any{}, "order": map[string]any{"number": 7, "paid": nil}}
}

func run(t *testing.T, text string) (any, expression.Result, error) {
	t.Helper()
	f, err := expression.Parse(text)
	if err != nil {
		return nil, expression.Result{}, err
	}
	p, result, err := f.Compile(env(t), expression.Writer{})
	if err != nil {
		return nil, result, err
	}
	v, err := p.Run(t.Context(), values())
	return v, result, err
}

func TestRun(t *testing.T) {
	for text, want := range map[string]any{
		`n + 1`:                         4,
		`n / 2`:                         1.5,
		`maybe ?? n`:                    3,
		`s + "d" + (note ?? "e")`:       "abcde",
		`"a" + s == "aabc"`:             true,
		`string(n) + "/" + upper(s)`:    "3/ABC",
		`at.Year() + day.Day()`:         2028,
		`len(filter(list, # > 1))`:      2,
		`sum(list)`:                     6,
		`order.number + 1`:              8,
		`order.paid ?? false`:           false,
		`msg.text contains "ell"`:       true,
		`day <= at and at < now()`:      true,
		`join(words, "-")`:              "a-b",
		`words | join("+")`:             "a+b",
		`replace(s, "", "x")`:           "xaxbxcx",
		`flatten([list, list]) | len()`: 6,
		`repeat(s, 2)`:                  "abcabc",
		`toJSON(words) contains "a"`:    true,
		`let m = maybe; m == nil`:       true,
		`b ? "yes" : "no"`:              "yes",
	} {
		if got, _, err := run(t, text); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestRun_Errors(t *testing.T) {
	for text, want := range map[string]string{
		`maybe > 3`:                           `> is not defined for null and int`,
		`note + "x"`:                          `+ is not defined for null and text`,
		`s + n`:                               `+ is not defined for text and int`,
		`list[7]`:                             `index out of range: 7 (array length is 3)`,
		`order.price`:                         `there is no field "price"`,
		`any[0]`:                              `index out of range: 0 (array length is 0)`,
		`maybe.x`:                             `there is no field "x" in null`,
		`msg.colour`:                          `a ChatMessage has no field colour`,
		`date("yesterday")`:                   `invalid date yesterday`,
		`upper(note)`:                         `a value has the wrong type or is null`,
		`n % (n - n)`:                         `a number cannot be divided by 0`,
		`s matches s + "("`:                   `error parsing regexp: missing closing ): ` + "`abc(`",
		`join([1], "")`:                       `join: element 0 is not text`,
		`day == "2026-01-01"`:                 `== is not defined for a datetime and text`,
		`n +`:                                 `unexpected end of the expression`,
		`"` + strings.Repeat("x", 5000) + `"`: `an expression has at most 4000 characters`,
		`missing + 1`:                         `unknown name missing`,
	} {
		_, _, err := run(t, text)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// maxAllocated limits the allocations of all expressions together, in MiB.
const maxAllocated = 256

// TestRun_LimitsMemory runs small expressions that would create huge values.
func TestRun_LimitsMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, text := range []string{
		`reduce(1..99, #acc + #acc, "x")`,
		`repeat(repeat("x", 999999), 999999)`,
		`replace(repeat("x", 99999), "x", repeat("y", 99999))`,
		`join(split(repeat("x", 99999), ""), repeat("y", 99999))`,
		`toJSON(reduce(1..60, [#acc, #acc], "x"))`,
		`string(reduce(1..60, [#acc, #acc], "x"))`,
		`flatten(reduce(1..60, [#acc, #acc], ["x"]))`,
		`map(1..1000, map(1..1000, map(1..1000, 1)))`,
		`let a = repeat("x", 9999999); a + a`,
		`any + ` + strings.Repeat("(", 3000),
	} {
		if v, _, err := run(t, text); err == nil {
			t.Errorf("%s returns %T", text, v)
		}
	}
	v, _, err := run(t, `reduce(1..60, [#acc, #acc], "x")`)
	if err != nil || expression.Measure(v) == nil {
		t.Error("a value of 2^60 strings is accepted")
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > maxAllocated {
		t.Errorf("%d MiB allocated", grown)
	} else {
		t.Logf("%d MiB allocated", grown)
	}
}
