package steps_test

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Each step type of the language either runs, or is reported as not available and
// listed in the README.
func TestBuild_EveryStepType(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range spec.Unions() {
		if u.Name != "step" {
			continue
		}
		for _, c := range u.Cases {
			_, err := steps.Build(c.New().(spec.Step), &steps.Env{Slots: layout{}})
			missing, ok := errors.AsType[*spec.NotAvailableError](err)
			if listed := slices.Contains(steps.Unsupported(), c.Tag); ok != listed {
				t.Errorf("%s: not available: %v, listed as unsupported: %v", c.Tag, ok, listed)
			}
			if ok != c.Missing {
				t.Errorf("%s: %v, but its case is missing: %v", c.Tag, missing, c.Missing)
			}
			if ok && !strings.Contains(string(readme), c.Tag) {
				t.Errorf("the README does not list %s as not available", c.Tag)
			}
		}
	}
}

func TestEcho_UnsetBecomesNull(t *testing.T) {
	l := declare(t, nil, "a: text", "b: int")
	r := build(t, &spec.Echo{StepBase: l.base("e", []string{"a", "b"}, []string{"b", "a"})}, &steps.Env{Slots: l})
	expect(t, "echo", drive(t, l, r, l.row(map[string]any{"a": "x"})), `{"a":"x","b":null}`)
}

func TestExplode(t *testing.T) {
	l := declare(t, nil, "all: list[int]", "one: int", "other: text")
	r := build(t, &spec.Explode{StepBase: l.base("e", []string{"all"}, []string{"one"})}, &steps.Env{Slots: l})
	expect(t, "explode", drive(t, l, r,
		l.row(map[string]any{"all": []any{int64(2), nil}, "other": "x"}), l.row(map[string]any{"all": []any{}}),
		l.row(map[string]any{"all": nil}), l.row(map[string]any{"all": "abc"}), l.row(nil)),
		`{"all":[2,null],"one":2,"other":"x"}`, `{"all":[2,null],"one":null,"other":"x"}`,
		"error: variable all: expected a list, got null", `error: variable all: expected a list, got "abc"`, "error: variable all is not set")
}

func TestCollect_KeepsSharedValues(t *testing.T) {
	l := declare(t, nil, "n: int", "all: list[int]", "same: text", "differs: text", "m: ChatMessage")
	msg := chat.Text(chat.User, "x")
	rows := func() []*steps.Row {
		return []*steps.Row{
			l.row(map[string]any{"n": int64(1), "same": "s", "differs": "a", "m": msg, "all": "overridden"}),
			l.row(map[string]any{"n": int64(2), "same": "s", "differs": "b", "m": msg, "all": "overridden"}),
			l.row(map[string]any{"same": "s"}),
			l.row(map[string]any{"n": int64(3), "same": "s", "m": msg, "all": "overridden"}),
		}
	}
	s := &spec.Collect{StepBase: l.base("c", []string{"n"}, []string{"all"})}
	message := `"m":{"role":"user","blocks":[{"type":"text","content":"x"}]}`
	expect(t, "all", drive(t, l, build(t, s, &steps.Env{Slots: l}), rows()...),
		"error: variable n is not set", `{"all":[1,2,3],"same":"s",`+message+`}`)
	s.BatchConfig = &spec.BatchConfig{BatchSize: 2}
	expect(t, "in groups of 2", drive(t, l, build(t, s, &steps.Env{Slots: l}), rows()...),
		`{"all":[1,2],"same":"s",`+message+`}`, "error: variable n is not set", `{"n":3,"all":[3],"same":"s",`+message+`}`)
	expect(t, "nothing", drive(t, l, build(t, s, &steps.Env{Slots: l})))
}

func TestConstruct(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"price: float", "sku: text?"})
	l := declare(t, []*spec.CustomType{item}, "p: int", "s: text", "out: Item", "hit: SearchResult", "data: citation_url")
	env := &steps.Env{Slots: l}
	bind := func(out string, pairs ...string) *spec.Construct {
		c := &spec.Construct{StepBase: l.base("c", nil, []string{out})}
		for i := 0; i < len(pairs); i += 2 {
			c.FieldBindings = append(c.FieldBindings, spec.Binding{Name: pairs[i], Var: l.ref(pairs[i+1])})
		}
		return c
	}
	both := map[string]any{"p": int64(2), "s": "x"}
	expect(t, "a single field", drive(t, l, build(t, bind("out", "price", "p"), env), l.row(both)), `{"p":2,"s":"x","out":{"price":2,"sku":null}}`)
	expect(t, "two fields", drive(t, l, build(t, bind("out", "sku", "s", "price", "p"), env), l.row(both)), `{"p":2,"s":"x","out":{"price":2,"sku":"x"}}`)
	expect(t, "text takes no number", drive(t, l, build(t, bind("out", "sku", "p", "price", "p"), env), l.row(both)), "error: Item: sku: expected text, got 2")
	expect(t, "a required field", drive(t, l, build(t, bind("out", "sku", "s"), env), l.row(both)), "error: Item: price: missing, expected float")
	expect(t, "unset", drive(t, l, build(t, bind("out", "price", "p"), env), l.row(nil)), "error: field price: variable p is not set")
	expect(t, "a domain type", drive(t, l, build(t, bind("hit", "content", "s", "doc_id", "s", "score", "p", "rank", "p"), env), l.row(both)),
		`error: SearchResult: unknown field "rank": SearchResult has content, doc_id, score`)
	whole := &spec.Construct{StepBase: l.base("c", []string{"data"}, []string{"out"})}
	expect(t, "a whole value", drive(t, l, build(t, whole, env), l.row(map[string]any{"data": valuetest.Parse(t, `{"price":"1.5","more":1}`)})),
		`{"out":{"price":1.5,"sku":null},"data":{"price":"1.5","more":1}}`)
}

func TestDecoder_JSON(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"sku: text", "price: float"})
	l := declare(t, []*spec.CustomType{item}, "raw: text", "label: text", "n: int?", "items: list[Item]?")
	r := build(t, &spec.Decoder{StepBase: l.base("d", []string{"raw"}, []string{"label", "n", "items"}), Format: "json"}, &steps.Env{Slots: l})
	const fine = `"label":"refund","n":5,"items":null}`
	tests := []struct{ name, in, want string }{
		{"plain", ` {"label":"refund","n":5} `, fine},
		{"fence", "```json\n{\"label\":\"refund\",\"n\":5}\n```", fine},
		{"upper-case fence", "```JSON\n{\"label\":\"refund\",\"n\":5}\n```", fine},
		{"fence without label", "```\n{\"label\":\"refund\",\"n\":5}\n```", fine},
		{"fence on one line", "```{\"label\":\"refund\",\"n\":5}```", fine},
		{"fence that never closes", "```json\n{\"label\":\"refund\",\"n\":5}", fine},
		{"a byte order mark", "\ufeff{\"label\":\"refund\",\"n\":5}", fine},
		{"reasoning", "<think>Maybe {\"label\":\"x\"}?</think>\n{\"label\":\"refund\",\"n\":5}", fine},
		{"other label", "Sure!\n```text\n{\"label\":\"refund\",\"n\":5}\n```\nAnything else?", fine},
		{"prose", `The answer for {customer} is {"label":"refund","n":5}. I hope {that} helps.`, fine},
		{"a smiley before", `:-{ well {"label":"refund","n":5}`, fine},
		{"an example before", `Such as {"example":1}: {"label":"refund","n":5}`, fine},
		{"numbers and booleans as text", `{"label":42}`, `"label":"42","n":null,"items":null}`},
		{"an object as text", `{"label":{"a":[1,"x"]}}`, `"label":"{\"a\":[1,\"x\"]}","n":null,"items":null}`},
		{"a list as text", `{"label":[1, "x"]}`, `"label":"[1,\"x\"]","n":null,"items":null}`},
		{"a numeric text", `{"label":"a","n":" 7 "}`, `"label":"a","n":7,"items":null}`},
		{"records", `{"label":"a","items":[{"sku":"x","price":1,"more":true}]}`, `"label":"a","n":null,"items":[{"sku":"x","price":1}]}`},
		{"duplicate keys", `{"label":"a","label":"b"}`, `"label":"b","n":null,"items":null}`},
		{"braces in a text", `Here: {"label":"a } b {","n":1}!`, `"label":"a } b {","n":1,"items":null}`},
		{"a raw line end", "{\"label\":\"a\nb\"}", `"label":"a\nb","n":null,"items":null}`},
		{"no such key", `{"labels":"a","x":1}`, `error: the answer has no "label"; it has labels, x`},
		{"null", `{"label":null}`, `error: label: expected text, got null`},
		{"a wrong type", `{"label":"a","n":"many"}`, `error: n: expected int, got "many"`},
		{"a wrong record", `{"label":"a","items":[{"sku":"x","price":"dear"}]}`, `error: items: [0].price: expected float, got "dear"`},
		{"a list", `[1]`, `error: expected a JSON object, got a list of 1`},
		{"cut off", `{"label":"a","inner":{"label":"wrong"`, `error: the JSON object cannot be read: line 1, column 38: expected , or }, found the end of the text`},
		{"broken with a good inside", `{"label": bad, "inner": {"label":"wrong"}}`, `error: the JSON object cannot be read: line 1, column 11: expected a value, found 'b'`},
		{"no object", "I do not know.", `error: no JSON object in the text: "I do not know."`},
		{"empty", "  ", `error: the text is empty, expected a JSON object`},
		{"many braces", strings.Repeat("{", 5000), `error: the JSON object cannot be read: line 1, column 2: expected a key in quotes, found '{'`},
	}
	for _, tt := range tests {
		got := drive(t, l, r, l.row(map[string]any{"raw": tt.in}))
		if !strings.HasSuffix(got[0], tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got[0], tt.want)
		}
	}
	expect(t, "no text", drive(t, l, r, l.row(map[string]any{"raw": int64(1)}), l.row(map[string]any{"raw": nil}), l.row(nil)),
		"error: variable raw: expected text, got 1", "error: variable raw: expected text, got null", "error: variable raw is not set")
}

func TestDecoder_NaN(t *testing.T) {
	l := declare(t, nil, "raw: text", "x: float")
	r := build(t, &spec.Decoder{StepBase: l.base("d", []string{"raw"}, []string{"x"})}, &steps.Env{Slots: l})
	row := driveRows(t, r, l.row(map[string]any{"raw": `{"x": NaN}`}))[0]
	if x, ok := row.Values[1].(float64); !ok || !math.IsNaN(x) {
		t.Error(show(l, row))
	}
}

// The first object need not be the answer, even where every output is optional.
func TestDecoder_PrefersObjectWithOutputs(t *testing.T) {
	l := declare(t, nil, "raw: text", "x: int?")
	for format, texts := range map[string]map[string]string{
		"json": {`{"a":1} {"x":2}`: "2", `{"a":1}`: "null", `{"a":{"x":1}`: "error"},
		"xml":  {`<a>1</a> <b><x>2</x></b>`: "2", `<a>1</a>`: "null", `<a><b><y>1</y></b>`: "error"},
	} {
		r := build(t, &spec.Decoder{StepBase: l.base("d", []string{"raw"}, []string{"x"}), Format: format}, &steps.Env{Slots: l})
		for text, want := range texts {
			if got := drive(t, l, r, l.row(map[string]any{"raw": text})); !strings.Contains(got[0], `"x":`+want) && !strings.HasPrefix(got[0], want) {
				t.Errorf("%s: got %s, want %s", text, got[0], want)
			}
		}
	}
}

func TestDecoder_XML(t *testing.T) {
	l := declare(t, nil, "raw: text", "label: text", "n: int?", "tags: list[text]?")
	r := build(t, &spec.Decoder{StepBase: l.base("d", []string{"raw"}, []string{"label", "n", "tags"}), Format: "xml"}, &steps.Env{Slots: l})
	tests := []struct{ name, in, want string }{
		{"plain", "<a><label>refund</label><n> 5 </n></a>", `"label":"refund","n":5,"tags":null}`},
		{"fence and prose", "Sure:\n```xml\n<a x=\"1\">text<label>refund</label></a>\n```\nDone.", `"label":"refund","n":null,"tags":null}`},
		{"prose with a tag before", "I <b>think</b> it is <a><label>refund</label></a> & nothing else", `"label":"refund","n":null,"tags":null}`},
		{"raw ampersands", "<a><label>Smith & Sons &co; R&D</label></a>", `"label":"Smith & Sons &co; R&D","n":null,"tags":null}`},
		{"entities", "<a><label>a &lt; b &amp; &eacute;&#233;&#xe9;</label></a>", `"label":"a < b & ééé","n":null,"tags":null}`},
		{"CDATA", "<a><label><![CDATA[a <b> & &lt;]]></label></a>", `"label":"a <b> & &lt;","n":null,"tags":null}`},
		{"repeated, last wins", "<a><label>x</label><label>y</label></a>", `"label":"y","n":null,"tags":null}`},
		{"repeated, a list", "<a><label>x</label><tags>p</tags><tags>q</tags></a>", `"label":"x","n":null,"tags":["p","q"]}`},
		{"empty", "<a><label/><n/></a>", `"label":"","n":null,"tags":null}`},
		{"namespace", `<x:a xmlns:x="urn:x"><x:label>y</x:label></x:a>`, `"label":"y","n":null,"tags":null}`},
		{"grandchildren", "<a><label>x<i>y</i>z</label></a>", `"label":"x","n":null,"tags":null}`},
		{"declaration", `<?xml version="1.0" encoding="UTF-8"?><a><label>x</label></a>`, `"label":"x","n":null,"tags":null}`},
		{"missing", "<a><other>x</other></a>", `error: the answer has no "label"; it has other`},
		{"cut off", "<a><label>x</label>", `error: invalid XML: unclosed element`},
		{"crossed", "<a><label>x</a></label>", `error: invalid XML: line 1: element <label> closed by </a>`},
		{"no element", "none", `error: no XML element in the text: "none"`},
		{"nothing", "", `error: the text is empty, expected an XML element`},
	}
	for _, tt := range tests {
		got := drive(t, l, r, l.row(map[string]any{"raw": tt.in}))
		if !strings.HasSuffix(got[0], tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got[0], tt.want)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, s := range []string{`{"x":1}`, "```json\n{\"x\":1}\n```", "<a><x>1</x></a>", `{"x": {`, `:-{ {"x":1}`, "<a>&lt;&", "<![CDATA[", "a <b <c>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := declare(t, nil, "raw: text", "x: int?")
		for _, format := range []string{"json", "xml"} {
			r := build(t, &spec.Decoder{StepBase: l.base("d", []string{"raw"}, []string{"x"}), Format: format}, &steps.Env{Slots: l})
			got := drive(t, l, r, l.row(map[string]any{"raw": text}))
			if len(got) != 1 || strings.Contains(got[0], "\n") {
				t.Fatalf("%q", got)
			}
		}
	})
}

func TestFieldExtractor(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"name: text", "p: float?"})
	l := declare(t, []*spec.CustomType{item}, "doc: citation_url", "one: text", "maybe: text?", "many: list[text]", "rec: Item", "recs: list[Item]", "num: float")
	doc := `{"name":"root","z":{"name":"z","p":5},"a":[{"name":"a0","p":1.5,"n":"b"},{"name":"a1","p":3,"sub":{"name":"deep"}}],"tags":["x","y"],"nul":null,"big":12345678901234567890}`
	tests := []struct {
		path, out string
		want      []string
	}{
		{"$.name", "one", []string{`"root"`}}, {"name", "one", []string{`"root"`}}, {"a[0].name", "one", []string{`"a0"`}},
		{"$['z']['name']", "one", []string{`"z"`}}, {"$.a[-1].name", "one", []string{`"a1"`}}, {"$.a[*].name", "one", []string{`"a0"`, `"a1"`}},
		{"$..name", "one", []string{`"root"`, `"z"`, `"a0"`, `"a1"`, `"deep"`}}, {"$.a[0:1].name", "one", []string{`"a0"`}},
		{"$.a[1,0].name", "one", []string{`"a1"`, `"a0"`}}, {"$.a[?(@.p > 1)].name", "one", []string{`"a0"`, `"a1"`}},
		{"$.a[?(@.n == 'b')].name", "one", []string{`"a0"`}}, {"$.nul", "one", []string{"null"}}, {"$.z.p", "one", []string{"5"}},
		{"$.none", "maybe", []string{"null"}}, {"$.none", "one", []string{"error: $.none finds nothing in doc"}},
		{"$.tags", "many", []string{`["x","y"]`}}, {"$.tags[*]", "many", []string{`["x"]`, `["y"]`}}, {"$.name", "many", []string{`["root"]`}},
		{"$.z", "rec", []string{`{"name":"z","p":5}`}}, {"$.a", "recs", []string{`[{"name":"a0","p":1.5},{"name":"a1","p":3}]`}},
		{"$.tags", "rec", []string{`error: rec: expected Item, got a list of 2`}}, {"$.a[1].sub", "rec", []string{`{"name":"deep","p":null}`}},
		{"$.z.p + 1", "num", []string{"6"}}, {"$.a[*].p * 2", "num", []string{"3", "6"}}, {"$.tags.`len`", "num", []string{"2"}},
		{"$.z.`keys`", "one", []string{`"name"`, `"p"`}}, {"$.name + '-' + $.z.name", "one", []string{`"root-z"`}},
		{"$.tags.`sorted`[0]", "one", []string{`"x"`}}, {"$.a.`sorted`", "one", []string{"error: $.a.`sorted`: `sorted`: cannot sort values that are neither all numbers nor all strings"}},
		{"$.z.p", "num", []string{"5"}}, {"$.big", "num", []string{"12345678901234567000"}},
	}
	for _, tt := range tests {
		s := &spec.FieldExtractor{StepBase: l.base("f", []string{"doc"}, []string{tt.out}), JSONPath: tt.path}
		r := build(t, s, &steps.Env{Slots: l})
		var got []string
		for _, row := range driveRows(t, r, l.row(map[string]any{"doc": valuetest.Parse(t, doc)})) {
			if row.Err != nil {
				got = append(got, "error: "+row.Err.Err.Error())
				continue
			}
			got = append(got, string(value.JSON(row.Values[l.Slot(l.ref(tt.out).To)])))
		}
		expect(t, tt.path+" into "+tt.out, got, tt.want...)
	}
}

// Paths apply to lists of records and to the JSON in a text.
func TestFieldExtractor_RecordsAndTexts(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"name: text", "role: MessageRole"})
	l := declare(t, []*spec.CustomType{item}, "items: list[Item]", "text: text", "m: ChatMessage", "out: text", "prose: text", "broken: text")
	rec := func(name, role string) any {
		return value.NewRecord("Item", value.Field{Name: "name", Value: name}, value.Field{Name: "role", Value: role})
	}
	row := map[string]any{"items": []any{rec("a", "user"), rec("b", "tool")}, "text": ` {"a":[{"b":"x"},{"b":"y"}]}`, "m": chat.Text(chat.User, "hi"), "prose": "a: 1", "broken": `{"a":`}
	find := func(in, path string) []string {
		r := build(t, &spec.FieldExtractor{StepBase: l.base("f", []string{in}, []string{"out"}), JSONPath: path}, &steps.Env{Slots: l})
		var got []string
		for _, out := range driveRows(t, r, l.row(row)) {
			if out.Err != nil {
				got = append(got, out.Err.Err.Error())
			} else {
				got = append(got, value.Text(out.Values[3]))
			}
		}
		return got
	}
	expect(t, "records", find("items", "$[?(@.role == 'tool')].name"), "b")
	expect(t, "a message", find("m", "$.blocks[0].content"), "hi")
	expect(t, "JSON in a text", find("text", "$.a[*].b"), "x", "y")
	row["text"] = "<think>{}</think>\n```json\n{\"a\":7}\n```"
	expect(t, "JSON in a fence", find("text", "$.a"), "7")
	expect(t, "a text without the key", find("text", "$.b"), "$.b finds nothing in text")
	expect(t, "a text that is not JSON", find("prose", "$.a"), "$.a finds nothing in prose, which is a text that is not JSON")
	expect(t, "a text that begins as JSON", find("broken", "$.a"), "$.a finds nothing in broken, which is a text that is not JSON")
}

func TestFieldExtractor_InvalidPaths(t *testing.T) {
	l := declare(t, nil, "doc: citation_url", "out: text")
	for path, want := range map[string]string{
		" ":     "invalid json_path \" \": empty path",
		"$[":    `invalid json_path "$[": not terminated`,
		"$.a +": `invalid json_path "$.a +": unexpected end`,
	} {
		_, err := steps.Build(&spec.FieldExtractor{StepBase: l.base("f", []string{"doc"}, []string{"out"}), JSONPath: path}, &steps.Env{Slots: l})
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", path, err, want)
		}
	}
}

func TestAggregate(t *testing.T) {
	l := declare(t, nil, "x: int", "stats: AggregateStats")
	r := func() steps.Runner {
		return build(t, &spec.Aggregate{StepBase: l.base("a", nil, []string{"stats"})}, &steps.Env{Slots: l})
	}
	failed := l.row(nil)
	failed.Err = &steps.Error{Step: "before", Err: errors.New("broken")}
	one, two := l.row(map[string]any{"x": int64(1)}), l.row(map[string]any{"x": int64(2)})
	two.Session = "last"
	rows := driveRows(t, r(), one, failed, two)
	expect(t, "rows", []string{show(l, rows[0]), show(l, rows[1]), show(l, rows[2]), show(l, rows[3])},
		`{"x":1}`, "error: broken", `{"x":2}`, `{"stats":{"num_successful":2,"num_failed":1,"num_total":3}}`)
	if rows[3].Session != "last" || rows[3].Number != 0 {
		t.Error(rows[3].Session, rows[3].Number)
	}
	none := driveRows(t, r())
	if len(none) != 1 || none[0].Session != "aggregate-no-input" {
		t.Error(none)
	}
}

// Adjacent rows are of one group if their group_by variables are equal; a list or a record
// is equal to itself only.
func TestCollect_SameGroup(t *testing.T) {
	item := valuetest.Custom(t, "Item", []string{"a: int?"})
	l := declare(t, []*spec.CustomType{item}, "n: int", "all: list[int]", "key: text", "list: list[int]", "rec: Item")
	one, other := []any{int64(1)}, []any{int64(1)}
	rec, twin := value.NewRecord("Item"), value.NewRecord("Item")
	for _, tt := range []struct {
		by   string
		a, b map[string]any
		want bool
	}{
		{"key", map[string]any{"key": "x"}, map[string]any{"key": "x"}, true},
		{"key", map[string]any{"key": "x"}, map[string]any{"key": "y"}, false},
		{"key", map[string]any{"key": nil}, map[string]any{"key": nil}, true},
		{"key", map[string]any{"key": nil}, nil, false},
		{"key", nil, nil, true},
		{"list", map[string]any{"list": one}, map[string]any{"list": one}, true},
		{"list", map[string]any{"list": one}, map[string]any{"list": other}, false},
		{"rec", map[string]any{"rec": rec}, map[string]any{"rec": rec}, true},
		{"rec", map[string]any{"rec": rec}, map[string]any{"rec": twin}, false},
	} {
		c := &spec.Collect{StepBase: l.base("c", []string{"n"}, []string{"all"}), By: l.refs(tt.by)}
		g := build(t, c, &steps.Env{Slots: l}).(steps.RowGrouper)
		if got := g.SameGroup(l.row(tt.a), l.row(tt.b)); got != tt.want {
			t.Errorf("by %s: %v and %v: %v, want %v", tt.by, tt.a, tt.b, got, tt.want)
		}
	}
}
