package jq

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/expression"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

func rec(name string, fields ...*document.Field) *document.Type {
	return &document.Type{Kind: document.Record, Declared: true, Name: name, Fields: fields}
}

func of(s document.Kind) *document.Type { return &document.Type{Kind: s, Declared: true} }

func listOf(elem *document.Type) *document.Type {
	return &document.Type{Kind: document.List, Declared: true, Elem: elem}
}

func opt(s *document.Type) *document.Type {
	c := *s
	c.Optional = true
	return &c
}

// testData returns the data that the expressions of the tests read.
func testData() []*document.Field {
	item := rec("Item", &document.Field{Name: "name", Type: of(document.Text)}, &document.Field{Name: "price", Type: of(document.Float)}, &document.Field{Name: "count", Type: opt(of(document.Int))},
		&document.Field{Name: "tags", Type: listOf(of(document.Text))}, &document.Field{Name: "sold", Type: of(document.Bool)})
	return []*document.Field{
		{Name: "t", Type: of(document.Text)}, {Name: "u", Type: opt(of(document.Text))}, {Name: "w", Type: opt(of(document.Text))}, {Name: "n", Type: of(document.Int)}, {Name: "m", Type: opt(of(document.Int))}, {Name: "k", Type: opt(of(document.Int))},
		{Name: "x", Type: of(document.Float)}, {Name: "y", Type: opt(of(document.Float))}, {Name: "b", Type: of(document.Bool)}, {Name: "c", Type: opt(of(document.Bool))},
		{Name: "ts", Type: listOf(of(document.Text))}, {Name: "us", Type: listOf(opt(of(document.Text)))}, {Name: "ns", Type: listOf(of(document.Int))}, {Name: "bs", Type: listOf(of(document.Bool))}, {Name: "vs", Type: opt(listOf(of(document.Text)))},
		{Name: "items", Type: listOf(item)}, {Name: "item", Type: item}, {Name: "maybe", Type: opt(item)},
	}
}

// drawValue draws a value of a type as decoded from JSON.
func drawValue(t *rapid.T, s *document.Type) any {
	if s.Optional && rapid.Bool().Draw(t, "null") {
		return nil
	}
	switch s.Kind {
	case document.Text:
		return rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "ab", "Ab,Z", "é", "x y", "12", "true", "ÄÖ z", "A\"\\\n"}), rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r >= 0x20 && r != 0x7f }))).Draw(t, "text")
	case document.Int:
		return rapid.IntRange(-5, 5).Draw(t, "int")
	case document.Float:
		return rapid.SampledFrom([]float64{-2.5, -1, 0, 0.1, 1, 1.5, 2, 1e6, 123456.75}).Draw(t, "number")
	case document.Bool:
		return rapid.Bool().Draw(t, "bool")
	case document.List:
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			items = append(items, drawValue(t, s.Elem))
		}
		return items
	}
	fields := map[string]any{}
	for _, f := range s.Fields {
		fields[f.Name] = drawValue(t, f.Type)
	}
	return fields
}

func typeOf(s *document.Type) spec.Type {
	t := spec.Type{Optional: s.Optional}
	switch s.Kind {
	case document.List:
		elem := typeOf(s.Elem)
		t.Elem = &elem
	case document.Record:
		t.Name, t.Custom = s.Name, &spec.CustomType{ID: s.Name}
		for _, f := range s.Fields {
			t.Custom.Properties = append(t.Custom.Properties, spec.Property{Name: f.Name, Type: typeOf(f.Type)})
		}
	default:
		t.Name = s.BareText()
	}
	return t
}

func newTranslator(fields []*document.Field) *Translator {
	return &Translator{Vars: map[string]*Expr{}, Root: &Expr{Member: func(name string) (*Expr, error) {
		for _, f := range fields {
			if f.Name == name {
				return &Expr{Source: name, Prec: PrecAtom, Type: f.Type, Nullable: f.Type.Optional}, nil
			}
		}
		return nil, Unsupported(name, "no data %s", name)
	}}}
}

// plainJSON normalizes a value for comparison.
func plainJSON(t *rapid.T, v any) any {
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return "not a number"
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

// translations returns expressions that must have the same result after
// translation, at least one for each construct.
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
.maybe.name // "unknown"
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

func TestTranslate_SameResultAsJQ(t *testing.T) {
	env := map[string]spec.Type{}
	for _, f := range testData() {
		env[f.Name] = typeOf(f.Type)
	}
	for _, text := range translations() {
		t.Run(text, func(t *testing.T) {
			c, err := newTranslator(testData()).Translate(text)
			if err != nil {
				t.Fatalf("not translated: %v", err)
			}
			read, err := expression.Parse(c.Source)
			if err != nil {
				t.Fatalf("%s: %v", c.Source, err)
			}
			program, _, err := read.Compile(env, expression.Writer{Text: func(v any) string { return value.Text(value.FromGo(v)) }, JSON: func(v any) string { return string(value.JSON(value.FromGo(v))) }})
			if err != nil {
				t.Fatalf("%s: %v", c.Source, err)
			}
			query, err := gojq.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) {
				data := map[string]any{}
				for _, f := range testData() {
					if strings.Contains(text, f.Name) { // only what is read
						data[f.Name] = drawValue(rt, f.Type)
					}
				}
				want, more := query.Run(data).Next()
				if _, failed := want.(error); failed || !more {
					if got, err := program.Run(t.Context(), data); err == nil && expression.Measure(got) == nil {
						rt.Fatalf("%s returns %v, jq fails with %v for %v", c.Source, got, want, data)
					}
					return
				}
				got, err := program.Run(t.Context(), data)
				if err == nil {
					err = expression.Measure(got)
				}
				if err != nil {
					rt.Fatalf("%s: %v; jq returns %v for %v", c.Source, err, want, data)
				}
				if a, b := plainJSON(rt, want), plainJSON(rt, got); !reflect.DeepEqual(a, b) {
					rt.Fatalf("%s returns %#v, jq returns %#v for %v", c.Source, b, a, data)
				}
				if got == nil && !c.Nullable {
					rt.Fatalf("%s returned null but is not nullable", c.Source)
				}
			})
		})
	}
}

// TestTranslate_LimitsSize tests operands that a translation repeats, and deep
// nesting.
func TestTranslate_LimitsSize(t *testing.T) {
	for _, text := range []string{
		strings.TrimSuffix(strings.Repeat(".u + .w + ", 500), " + "),
		".u" + strings.Repeat(" | . + .", 500),
		".t" + strings.Repeat(` | split(",") | join("")`, 300),
		".n" + strings.Repeat(" | {a: ., b: .} | .a", 300),
		strings.Repeat("(", 50_000) + ".t" + strings.Repeat(")", 50_000),
		strings.Repeat("[", 100_000),
		strings.Repeat("-", 7000) + "1",
	} {
		if c, err := newTranslator(testData()).Translate(text); err == nil {
			t.Errorf("%.40s… is translated to %d bytes", text, len(c.Source))
		}
	}
}
