package promptfoo

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/converters/evalset"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// simple are the assertions that compare the output with a value.
var simple = map[string]struct {
	metric     string
	ignoreCase bool
	several    bool // the value is a list, of which one is enough
}{
	"equals": {metric: "exact"}, "contains": {metric: "contains"}, "icontains": {metric: "contains", ignoreCase: true},
	"contains-any": {metric: "contains", several: true}, "icontains-any": {metric: "contains", ignoreCase: true, several: true},
	"starts-with": {metric: "starts_with"},
}

// judged are the assertions that a model judges: the rubric, in which a value stands after a colon.
var judged = map[string]string{
	"llm-rubric":             "",
	"g-eval":                 "",
	"model-graded-closedqa":  "The output meets this criterion: ",
	"factuality":             "The output agrees in its facts with this text, and may say more or less: ",
	"model-graded-factcheck": "The output agrees in its facts with this text, and may say more or less: ",
	"is-refusal":             "The output refuses to do what the input asks",
}

// isAssertion reports whether a name is that of an assertion that is converted, for the cells of CSV files.
func isAssertion(name string) bool {
	name = strings.TrimPrefix(name, "not-")
	_, compares := simple[name]
	_, judges := judged[name]
	return compares || judges || slices.Contains([]string{"contains-all", "icontains-all", "regex", "is-json", "similar", "bleu",
		"answer-relevance", "latency", "cost", "javascript", "python", "webhook", "levenshtein", "rouge-n", "contains-json", "perplexity", "moderation"}, name)
}

// check is one assertion of a row.
type check struct {
	n      *input.Node
	row    int
	name   string // of the metric
	not    bool
	values map[string]string // of the row
}

// assertion adds the checks of an assertion to a row.
func (c *conversion) assertion(row int, n *input.Node, values map[string]string) {
	if n.Kind == input.Text {
		if ref := n.Text; strings.HasPrefix(ref, "$ref") {
			c.Unsupported(n, "%s is not converted", ref)
			return
		}
		n = shorthand(n)
	}
	if ref := n.Get("$ref"); ref != nil {
		name, local := strings.CutPrefix(ref.Text, "#/assertionTemplates/")
		template := c.root.Get("assertionTemplates").Get(name)
		if template == nil || !local {
			c.Malformed(ref, "no assertion template is called %s", ref.Text)
			return
		}
		n = template
	}
	kind := c.RequiredText(n, "type", "an assertion")
	k := check{n: n, row: row, name: document.Slug(c.Text(n, "metric")), values: values}
	if weight := n.Get("weight"); weight != nil && weight.Text != "1" {
		c.Unsupported(weight, "the weight of an assertion has no counterpart: each metric must pass by itself")
	}
	if kind == "assert-set" {
		if t := n.Get("threshold"); t != nil {
			c.Unsupported(t, "the threshold of a set of assertions has no counterpart: each metric must pass by itself")
		}
		for _, item := range list(n.Get("assert")) {
			c.assertion(row, item, values)
		}
		return
	}
	base, not := strings.CutPrefix(kind, "not-")
	k.not = not
	k.name = strings.ToLower(strings.ReplaceAll(k.name, "-", "_"))
	s, compares := simple[base]
	_, judges := judged[base]
	switch {
	case compares:
		c.compare(k, s.metric, s.ignoreCase, c.expected(k, s.several))
	case base == "contains-all" || base == "icontains-all":
		for _, item := range c.texts(k) {
			c.compare(k, "contains", base == "icontains-all", item)
		}
	case judges:
		c.judge(k, base)
	default:
		c.other(k, base)
	}
}

// texts returns the values of an assertion, filled with those of the row.
func (c *conversion) texts(k check) (all []string) {
	for _, v := range list(k.n.Get("value")) {
		all = append(all, c.fill(k, v))
	}
	return all
}

// fill returns the text of a value with the variables of the row, or that of a file.
func (c *conversion) fill(k check, v *input.Node) string {
	text := evalset.Text(v.Use())
	if name, isFile := strings.CutPrefix(text, "file://"); isFile {
		if slices.Contains([]string{".js", ".cjs", ".mjs", ".ts", ".py"}, path.Ext(strings.SplitN(name, ":", 2)[0])) {
			c.Unsupported(v, "the program %s is not converted", name)
			return ""
		}
		read, err := c.text(name)
		if err != nil {
			c.Unsupported(v, "the value %s cannot be read: %s", name, err)
		}
		text = read
	}
	filled, ok := evalset.Fill(text, func(name string) (string, bool) {
		value, known := k.values[strings.TrimPrefix(name, "vars.")]
		return value, known
	})
	if !ok {
		c.Unsupported(v, "an expression of the value is not converted: %s", document.OneLine(text))
	}
	return filled
}

// expected returns the value of an assertion: a text, or a list of which one is enough.
func (c *conversion) expected(k check, several bool) any {
	texts := c.texts(k)
	switch {
	case len(texts) == 0:
		c.Malformed(k.n, "an assertion of this type needs a value")
		return ""
	case several && len(texts) > 1:
		return texts
	case several || k.n.Get("value").Kind < input.List:
		return texts[0]
	}
	c.Assumed(k.n.Get("value"), "the value is compared as text: JSON without white space")
	return evalset.JSON(k.n.Get("value"))
}

// add adds a metric.
func (c *conversion) add(k check, id, key string, b *document.Block, fixed, column string, expected any) {
	if k.not {
		b.Set("not", document.Number("true"))
		id, key = "not_"+id, "not "+key
	}
	if k.name != "" {
		id, key = k.name, k.name+" "+key
	}
	c.Evaluation.Check(k.row, key, document.Metric{ID: id, Block: b, Fixed: fixed, Column: column}, expected)
}

func (c *conversion) compare(k check, metric string, ignoreCase bool, expected any) {
	b, id := evalset.Keys("type", metric), metric
	if ignoreCase {
		b.Set("ignore_case", document.Number("true"))
		id = "i" + id
	}
	switch {
	case expected == "" && metric == "exact":
		c.add(k, "empty", "empty", evalset.Keys("type", "regexp", "pattern", `^\s*$`), "", "", nil)
		return
	case expected == "":
		return // reported, or true of any output
	}
	c.add(k, id, id, b, "value", "expected", expected)
}

// threshold returns the threshold of an assertion, or a default.
func (c *conversion) threshold(k check, otherwise string) document.Number {
	if v := k.n.Get("threshold"); v != nil && (v.Kind == input.Float || v.Kind == input.Int) {
		if x, err := strconv.ParseFloat(v.Text, 64); err == nil && x >= 0 && x <= 1 {
			return document.Number(v.Text)
		}
		c.Malformed(v, "the threshold is not from 0 to 1")
	}
	return document.Number(otherwise)
}

// judge adds a metric that a model decides.
func (c *conversion) judge(k check, base string) {
	provider, name := "", ""
	for _, from := range []*input.Node{k.n, c.root.Get("defaultTest").Get("options")} {
		if p := from.Get("provider"); p != nil && name == "" {
			id := p.Text
			if p.Kind == input.Map {
				id = p.Get("id").Scalar()
			}
			provider, name, _ = modelOf(id)
		}
	}
	b := evalset.Keys("type", "judge", "model", c.Judge(k.n, provider, name))
	key := base
	if t := k.n.Get("threshold"); t != nil || base == "g-eval" {
		threshold := c.threshold(k, "0.7")
		b.Set("threshold", threshold)
		key += " " + string(threshold)
		if k.not {
			c.Unsupported(k.n, "the reverse of a score with a threshold is not converted")
			return
		}
	} else {
		good, bad := []string{"pass"}, []string{"fail"}
		if k.not {
			good, bad, k.not = bad, good, false
		}
		b.Set("labels", c.Labels(good, bad))
		key += " " + good[0]
	}
	rubric := strings.Join(c.texts(k), "\n")
	if rubric == "" && base != "is-refusal" {
		c.Malformed(k.n, "an assertion of this type needs a value")
		return
	}
	c.add(k, strings.ReplaceAll(base, "-", "_"), key, b, "rubric", "rubric", judged[base]+rubric)
}

// isJSON adds the metric of an assertion about JSON, with a schema, that of a file, or none.
func (c *conversion) isJSON(k check) {
	schema := k.n.Get("value")
	if schema != nil && schema.Kind == input.Text {
		name, _ := strings.CutPrefix(schema.Text, "file://")
		read, err := c.value(name)
		if err != nil {
			c.Unsupported(schema, "the schema %s cannot be read: %s", name, err)
			return
		}
		schema = read
	}
	if schema == nil || schema.Kind != input.Map {
		c.add(k, "is_json", "is_json", evalset.Keys("type", "is_json"), "", "", nil)
		return
	}
	b := evalset.Keys("type", "json_schema", "schema", evalset.Value(schema))
	c.add(k, "json_schema", "json_schema "+schema.Use().Fingerprint(), b, "", "", nil)
}

// other adds the metrics of assertions that neither compare with a text nor are judged by a rubric.
func (c *conversion) other(k check, base string) {
	switch base {
	case "regex":
		pattern := strings.Join(c.texts(k), "")
		if _, err := regexp.Compile(pattern); err != nil || pattern == "" {
			c.Unsupported(k.n, "the regular expression %s is none of RE2", document.OneLine(pattern))
			return
		}
		c.add(k, "regexp", "regexp "+pattern, evalset.Keys("type", "regexp", "pattern", pattern), "", "", nil)
	case "is-json":
		c.isJSON(k)
	case "similar", "bleu", "answer-relevance":
		if k.not {
			c.Unsupported(k.n, "the reverse of %s is not converted", base)
			return
		}
		switch base {
		case "similar":
			t := c.threshold(k, "0.75")
			b := evalset.Keys("type", "similarity", "model", c.Embedder(), "threshold", t)
			c.add(k, "similarity", "similar "+string(t), b, "value", "expected", c.expected(k, true))
		case "bleu":
			t := c.threshold(k, "0.5")
			c.add(k, "bleu", "bleu "+string(t), evalset.Keys("type", "bleu", "threshold", t), "value", "expected", c.expected(k, true))
		default:
			t := c.threshold(k, "0.5")
			c.Assumed(k.n, "answer-relevance is judged by a model here, not by the similarity of questions")
			c.Labels([]string{"yes"}, nil)
			b := evalset.Keys("type", "relevance", "model", c.Judge(k.n, "", ""), "threshold", t)
			c.add(k, "relevance", "relevance "+string(t), b, "", "", nil)
		}
	case "latency", "cost":
		limit, err := strconv.ParseFloat(k.n.Get("threshold").Scalar(), 64)
		if err != nil || k.not {
			c.Unsupported(k.n, "%s without a threshold, or reversed, is not converted", base)
			return
		}
		if base == "latency" {
			limit /= 1000
		}
		c.Assumed(k.n, "the threshold of %s is that of the mean of all rows", base)
		c.add(k, base, fmt.Sprint(base, limit), evalset.Keys("type", base, "max", document.Number(strconv.FormatFloat(limit, 'f', -1, 64))), "", "", nil)
	case "javascript":
		c.javascript(k)
	default:
		k.n.Get("value").Use()
		k.n.Get("threshold").Use()
		c.Unsupported(k.n, "the assertion %s has no counterpart", strings.TrimSpace(base))
	}
}

// The JavaScript that is converted: a comparison of the output with a text, or of its length with a number.
var (
	jsText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(!?)\(?output(\.toLowerCase\(\))?(\.trim\(\))?` +
			`(?:\.(includes|startsWith)\((?:'([^'\\]*)'|"([^"\\]*)")\)|\s*===?\s*(?:'([^'\\]*)'|"([^"\\]*)"))\)?;?$`)
	})
	jsLength = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\(?output(?:\.trim\(\))?\.length\s*(<=|<|>=|>)\s*(\d{1,3})\)?;?$`)
	})
)

// javascript adds the metrics of a condition that consists of comparisons joined by &&.
func (c *conversion) javascript(k check) {
	text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(strings.Join(c.texts(k), "\n")), "return "), ";")
	var adds []func()
	for part := range strings.SplitSeq(text, "&&") {
		part = strings.TrimSpace(part)
		one := k
		if m := jsText().FindStringSubmatch(part); m != nil {
			want := m[5] + m[6] + m[7] + m[8]
			metric := map[string]string{"includes": "contains", "startsWith": "starts_with", "": "exact"}[m[4]]
			one.not = k.not != (m[1] == "!")
			adds = append(adds, func() { c.compare(one, metric, m[2] != "", want) })
			continue
		}
		if m := jsLength().FindStringSubmatch(part); m != nil {
			pattern := map[string]string{"<=": "(?s)^.{0,%s}$", ">=": "(?s)^.{%s,}", ">": "(?s)^.{%s}.", "<": "(?s)^.{%s,}"}[m[1]]
			pattern, one.not = fmt.Sprintf(pattern, m[2]), k.not != (m[1] == "<")
			adds = append(adds, func() {
				c.add(one, "length", "length "+pattern, evalset.Keys("type", "regexp", "pattern", pattern), "", "", nil)
			})
			continue
		}
		adds = nil
		break
	}
	if len(adds) == 0 || k.not && len(adds) > 1 {
		k.n.Get("threshold").Use()
		c.Unsupported(k.n, "the JavaScript is not converted: %s", document.OneLine(text))
		return
	}
	for _, add := range adds {
		add()
	}
}
