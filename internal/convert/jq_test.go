package convert

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// rec, of and opt make shapes that a schema would give.
func rec(name string, fields ...*field) *inferredType {
	return &inferredType{sort: isRecord, declared: true, name: name, fields: fields}
}

func of(s typeKind) *inferredType { return &inferredType{sort: s, declared: true} }

func listOf(elem *inferredType) *inferredType {
	return &inferredType{sort: isList, declared: true, elem: elem}
}

func opt(s *inferredType) *inferredType {
	c := *s
	c.optional = true
	return &c
}

// world is the data that the expressions of the tests see.
func world() []*field {
	item := rec("Item", &field{"name", of(isText)}, &field{"price", of(isNumber)}, &field{"count", opt(of(isInt))},
		&field{"tags", listOf(of(isText))}, &field{"sold", of(isBool)})
	return []*field{
		{"t", of(isText)}, {"u", opt(of(isText))}, {"w", opt(of(isText))}, {"n", of(isInt)}, {"m", opt(of(isInt))}, {"k", opt(of(isInt))},
		{"x", of(isNumber)}, {"y", opt(of(isNumber))}, {"b", of(isBool)}, {"c", opt(of(isBool))},
		{"ts", listOf(of(isText))}, {"us", listOf(opt(of(isText)))}, {"ns", listOf(of(isInt))}, {"bs", listOf(of(isBool))}, {"vs", opt(listOf(of(isText)))},
		{"items", listOf(item)}, {"item", item}, {"maybe", opt(item)},
	}
}

// drawn makes a value of a shape, as JSON is read.
func drawn(t *rapid.T, s *inferredType) any {
	if s.optional && rapid.Bool().Draw(t, "null") {
		return nil
	}
	switch s.sort {
	case isText:
		return rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "ab", "Ab,Z", "é", "x y", "12", "true", "ÄÖ z", "A\"\\\n"}), rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r >= 0x20 && r != 0x7f }))).Draw(t, "text")
	case isInt:
		return rapid.IntRange(-5, 5).Draw(t, "int")
	case isNumber:
		return rapid.SampledFrom([]float64{-2.5, -1, 0, 0.1, 1, 1.5, 2, 1e6, 123456.75}).Draw(t, "number")
	case isBool:
		return rapid.Bool().Draw(t, "bool")
	case isList:
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			items = append(items, drawn(t, s.elem))
		}
		return items
	}
	fields := map[string]any{}
	for _, f := range s.fields {
		fields[f.name] = drawn(t, f.of)
	}
	return fields
}

// typeOf is a shape as a type of the language.
func typeOf(s *inferredType) spec.Type {
	t := spec.Type{Optional: s.optional}
	switch s.sort {
	case isList:
		elem := typeOf(s.elem)
		t.Elem = &elem
	case isRecord:
		t.Name, t.Custom = s.name, &spec.CustomType{ID: s.name}
		for _, f := range s.fields {
			t.Custom.Properties = append(t.Custom.Properties, spec.Property{Name: f.name, Type: typeOf(f.of)})
		}
	default:
		t.Name = s.bareType()
	}
	return t
}

// reader translates over the data of the tests.
func reader(fields []*field) *jq {
	return &jq{vars: map[string]*translatedExpr{}, root: &translatedExpr{member: func(name string) (*translatedExpr, error) {
		for _, f := range fields {
			if f.name == name {
				return &translatedExpr{text: name, prec: precAtom, of: f.of, null: f.of.optional}, nil
			}
		}
		return nil, unsupportedJQ(name, "no data %s", name)
	}}}
}

// plainJSON puts a value into the form in which two of them are compared.
func plainJSON(t *rapid.T, v any) any {
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return "no number"
	}
	text, err := json.Marshal(value.ToGo(value.FromGo(v)))
	if err != nil {
		t.Fatal(err)
	}
	var made any
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// translations are expressions that must mean the same after translation, one
// for each construct at least.
func translations() []string {
	return strings.Split(strings.TrimSpace(`
.t
.u
.item.name
.maybe.name
.maybe.count
.items[0].name
.items[-1].price
.items[1].tags[0]
.vs[0]
.ns[1:]
.ns[:2]
.ns[-2:]
.ts[0:1]
null
"text"
42
-3.5
-.n
"User: " + .t
"User: " + .u
.u + .t
.u + .w
.n + 1
.m + .k
.m + 1
.n + .x
.n - .x
.x * 2
.n * 2 - 1
.x - (.n - 1)
2 - (.n + 1)
.x / 4
.ts + .us
.ts + ["x"]
.vs + .ts
"a\(.t)b\(.n)c\(.u)"
"\(.x) \(.b) \(.ns) \(.c)"
"\(.ts | length)"
"${HOME} costs \(.n)"
.u // "none"
.u // .w
.u // .w // "c"
.c // true
.b // false
.m // 0
(.m // 0) > 2
.maybe.name // "nobody"
.u == null
.u != null
.t == null
.t == "a"
.t != "a"
.u == "a"
.u != .w
.n == 2
.x == .n
.t == 2
.u == 2
.n != "2"
.b == true
.c == false
.c != true
.n > 2
.n >= .x
.m > 0
.m < 0
.m >= 0
.m <= 0
.m > .k
.m < .k
.m >= .k
.m <= .k
0 < .m
0 >= .m
.t < "b"
.u > "a"
.u <= .w
.b and .c
.b or .c
.b and (.n > 1 or .u != null)
(.b or .c) and .n > 1
.t and true
.u and .b
(.u or .b) | not
.b | not
.c | not
.u | not
(.n > 1) | not
.n | tostring
.u | tostring
.x | tostring
.b | tojson
.t | tojson
.ns | tojson
.ts | tojson
.n | tonumber
.t | length
.u | length
.ts | length
.vs | length
.n | length
.t | type
.u | type
.ns | type
.t | startswith("a")
.t | endswith("b")
.t | contains("b")
.t | test("^A"; "i")
.t | test("[0-9]+")
.t | split(",")
.t | split(",") | length
.ts | join("-")
.us | join(", ")
.ns | join("+")
.t | ltrimstr("a")
.u | rtrimstr("b")
.t | ascii_downcase
.t | ascii_upcase
.ts | contains(["a"])
.ts | contains(["a", "b"])
.ts | map(. + "!")
.items | map(.name)
.items | map(select(.price > 1))
.items | map(select(.sold) | .name)
[.items[] | .price * 2]
[.items[] | select(.price > 1 and .sold) | .name]
[.items[].name]
[.items[] | select(.count == null)] | length
[.vs[]?] | length
.items | map({name, cost: .price})
.items | map(.tags | length)
.items | map(select(.tags | any(. == "a"))) | length
.bs | any
.bs | all
.ns | any(. > 2)
.ns | all(. > 2)
any(.items[]; .price > 1)
all(.items[]; .sold)
.ts | first
.ts | last
.vs | first
.ns | add
.ts | add
.ns | min
.ns | max
.ns | sort
.ts | sort
.ns | unique
.ts | reverse
.x | floor
.x | ceil
if .b then "yes" else "no" end
if .u then .u else "none" end
if .n > 2 then "many" elif .n > 0 then "few" else "none" end
if .n > 2 then 1 else 0.5 end
{a: .n, "b c": .t}
{t: .t, list: .ts, inner: {x: .x}}
[.n, .m]
[.t, "x"]
[]
.ts == []
.vs == []
.vs != []
.n as $n | .items | map(select(.price > $n)) | length
.t as $t | "\($t) and \($t)"
.items | length > 1
.t | . + "!"
(.t | length) > 2
.ts | map(length)
.item | .name + ":" + (.price | tostring)
.ns | map(. * 2) | add
.["t"]
.item["name"]
.items | map(select(.name | startswith("a"))) | length == 0
@text "t: \(.t)"
.items[0]?
.maybe.tags
.u | ascii_downcase
.y | floor
.u | startswith("a")
.u | split(",")
.u | test("a")
.u | contains("a")
.u | ltrimstr("a")
.u | tonumber
.vs | map(. + "!")
.vs | join(",")
.vs | add
.vs | sort
.vs | reverse
.vs | unique
.vs | length
.vs | last
.vs | contains(["a"])
.vs | any(. == "a")
.us | map(startswith("a"))
.us | map(. // "none")
.us | map(length)
.maybe | .name + "x"
.maybe.price * 2
.maybe.tags | length
-.m
.m * 2
.m - .k
.y / 2
.x / .y
.n / .m
.t | IN("a", "ab")
.u | IN("a", "b")
.n | IN(1, 2)
.x | IN(1, 2.5)
IN(.u; "a", "b")
IN(.u; .ts[])
IN(.n; .ns[])
IN(.t; .us[])
.item | has("name")
.item | has("nope")
.ts | index("a")
.vs | index("a")
.ns | index(2)
.ts | index("a") != null
.t | index("b")
.u | index("b") == null
.t | inside("xabx")
.u | inside("ab")
isempty(.items[])
isempty(.items[] | select(.price > 1))
[limit(2; .ts[])]
[limit(1; .items[] | select(.sold)) | .name]
.ts | nth(1)
.vs | nth(0)
.items | sort_by(.price) | map(.name)
.items | sort_by(.name) | map(.price)
.items | sort_by(-.price) | map(.name)
.items | min_by(.price) | .name
.items | max_by(.price) | .name
.vs | sort_by(length)
.t | sub("a"; "X")
.t | gsub("b"; "")
.t | gsub("\\."; "-")
.u | gsub("a"; "${HOME}")
.t | trim
.u | trim
.x | abs
.m | abs
.x | round
.y | round
.t[0:1]
.u[0:2]
.vs[1:]
.vs[:1] | length
.t[1:]
.t[-2:]
[.b, .c] | all
[.u, .b] | any
[.t == "a", .n > 2] | any
[.bs[]] | all
[.items[].count] | add
.us | add
[.us[] | values]
[.us[] | select(. != null)] | length
[.items[].count | values] | max
.n % 3
.n % 2 == 0
.m % 2
.n % .m
.t | @json
.n | @text
.ns | map(. % 2 == 0) | any
.items | map(select(.name | IN("a", "b"))) | length
.items | map(.tags | index("a"))
.items | sort_by(.count) | map(.name)
.items | min_by(.count) | .name
.items | max_by(.count) | .price
.us | sort_by(.)
`), "\n")
}

func TestTranslationsMeanTheSame(t *testing.T) {
	env := map[string]spec.Type{}
	for _, f := range world() {
		env[f.name] = typeOf(f.of)
	}
	for _, text := range translations() {
		t.Run(text, func(t *testing.T) {
			c, err := reader(world()).translate(text)
			if err != nil {
				t.Fatalf("not translated: %v", err)
			}
			read, err := expression.Parse(c.text)
			if err != nil {
				t.Fatalf("%s: %v", c.text, err)
			}
			program, _, err := read.Compile(env, expression.Writer{Text: func(v any) string { return value.Text(value.FromGo(v)) }, JSON: func(v any) string { return string(value.JSON(value.FromGo(v))) }})
			if err != nil {
				t.Fatalf("%s: %v", c.text, err)
			}
			query, err := gojq.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) {
				data := map[string]any{}
				for _, f := range world() {
					if strings.Contains(text, f.name) { // the others are not read
						data[f.name] = drawn(rt, f.of)
					}
				}
				want, more := query.Run(data).Next()
				if _, failed := want.(error); failed || !more {
					if got, err := program.Run(data); err == nil && expression.Measure(got) == nil {
						rt.Fatalf("%s gives %v, jq fails with %v for %v", c.text, got, want, data)
					}
					return
				}
				got, err := program.Run(data)
				if err == nil {
					err = expression.Measure(got)
				}
				if err != nil {
					rt.Fatalf("%s: %v; jq gives %v for %v", c.text, err, want, data)
				}
				if a, b := plainJSON(rt, want), plainJSON(rt, got); !reflect.DeepEqual(a, b) {
					rt.Fatalf("%s gives %#v, jq gives %#v for %v", c.text, b, a, data)
				}
				if got == nil && !c.null {
					rt.Fatalf("%s gave null, which the translator did not expect", c.text)
				}
			})
		})
	}
}

// TestNoExpressionGrowsWithoutBound: parts that a translation names twice, one
// inside of the other, and parts that are nested without end.
func TestNoExpressionGrowsWithoutBound(t *testing.T) {
	for _, text := range []string{
		strings.TrimSuffix(strings.Repeat(".u + .w + ", 500), " + "),
		".u" + strings.Repeat(" | . + .", 500),
		".t" + strings.Repeat(` | split(",") | join("")`, 300),
		".n" + strings.Repeat(" | {a: ., b: .} | .a", 300),
		strings.Repeat("(", 50_000) + ".t" + strings.Repeat(")", 50_000),
		strings.Repeat("[", 100_000),
		strings.Repeat("-", 7000) + "1",
	} {
		if c, err := reader(world()).translate(text); err == nil {
			t.Errorf("%.40s… is translated to %d bytes", text, len(c.text))
		}
	}
}
