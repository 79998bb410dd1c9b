package convert

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/spec/diag"
)

// builtin is a function of jq that has a counterpart.
type builtin struct {
	args int      // how many it takes
	in   typeKind // what it works on; unknown for anything
	zero bool     // it works on null, too
	make func(t *jq, x *call) (*translatedExpr, error)
}

// call is one call of a function.
type call struct {
	*gojq.Func
	in  *translatedExpr // what it works on
	dot *translatedExpr // what its arguments work on
}

// builtins are the functions by their names. Those with a second form of other
// arguments look at them themselves.
func builtins() map[string]builtin {
	return map[string]builtin{
		"not":        {0, unknown, true, (*jq).not},
		"length":     {0, unknown, true, (*jq).length},
		"tostring":   {0, unknown, true, func(t *jq, x *call) (*translatedExpr, error) { t.assumeType(x.in, isText); return t.asText(x.in) }},
		"tojson":     {0, unknown, true, func(t *jq, x *call) (*translatedExpr, error) { t.assumeType(x.in, isText); return t.asJSON(x.in) }},
		"tonumber":   {0, unknown, false, (*jq).toNumber},
		"type":       {0, unknown, true, (*jq).typeName},
		"startswith": {1, isText, false, words("startsWith")},
		"endswith":   {1, isText, false, words("endsWith")},
		"contains":   {1, unknown, false, (*jq).contains},
		"test":       {1, isText, false, (*jq).test},
		"split":      {1, isText, false, (*jq).split},
		"join":       {1, isList, false, (*jq).join},
		"ltrimstr":   {1, isText, false, trimmed("trimPrefix")},
		"rtrimstr":   {1, isText, false, trimmed("trimSuffix")},
		"map":        {1, isList, false, (*jq).mapping},
		"select": {1, unknown, true, func(*jq, *call) (*translatedExpr, error) {
			return nil, unsupportedJQ("select", "select gives a value or none; inside of [ ] or map it can be translated")
		}},
		"any":     {-1, isList, false, quantifier("any")},
		"all":     {-1, isList, false, quantifier("all")},
		"first":   {0, isList, true, element("0")},
		"last":    {0, isList, true, element("-1")},
		"add":     {0, isList, false, (*jq).add},
		"min":     {0, isList, false, extreme("min")},
		"max":     {0, isList, false, extreme("max")},
		"sort":    {0, isList, false, sorted("sort(%s)")},
		"unique":  {0, isList, false, sorted("sort(uniq(%s))")},
		"reverse": {0, isList, false, func(_ *jq, x *call) (*translatedExpr, error) { return x.list("reverse(%s)"), nil }},
		"has":     {1, unknown, true, (*jq).has},
		"index":   {1, unknown, true, (*jq).position},
		"inside":  {1, isText, false, (*jq).inside},
		"IN":      {-1, unknown, true, (*jq).among},
		"isempty": {-1, unknown, true, (*jq).isEmptyStream},
		"limit":   {-1, unknown, true, (*jq).limit},
		"nth":     {1, isList, true, (*jq).nth},
		"sort_by": {1, isList, false, sortedBy("%s")},
		"min_by":  {1, isList, false, sortedBy("get(%s, 0)")},
		"max_by":  {1, isList, false, sortedBy("get(%s, -1)")},
		"sub":     {2, isText, false, replaced(", 1")},
		"gsub":    {2, isText, false, replaced("")},
		"trim": {0, isText, false, func(_ *jq, x *call) (*translatedExpr, error) {
			return made(isText, precAtom, "trim(%s)", x.in.text), nil
		}},
		"abs": {0, isNumber, false, func(_ *jq, x *call) (*translatedExpr, error) {
			return made(x.in.of.sort, precAtom, "abs(%s)", x.in.text), nil
		}},
		"round":          {0, isNumber, false, rounded("round")},
		"floor":          {0, isNumber, false, rounded("floor")},
		"ceil":           {0, isNumber, false, rounded("ceil")},
		"ascii_downcase": {0, isText, false, cased("lower", "A-Z")},
		"ascii_upcase":   {0, isText, false, cased("upper", "a-z")},
	}
}

// call translates the call of a function.
func (t *jq) call(f *gojq.Func, dot *translatedExpr) (*translatedExpr, error) {
	table := builtins()
	b, known := table[f.Name]
	switch {
	case f.Name == "null" || f.Name == "true" || f.Name == "false":
	case !known:
		e := &jqError{f.Name, fmt.Sprintf("the function %s has no counterpart", f.Name)}
		var names []string
		for name := range table {
			names = append(names, name)
		}
		if near := diag.Nearest(f.Name, names); near != "" {
			e.why += fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, e
	case b.args >= 0 && len(f.Args) != b.args && !(f.Name == "test" && len(f.Args) == 2):
		return nil, unsupportedJQ(f.Name, "%s with %d arguments has no counterpart", f.Name, len(f.Args))
	}
	if dot.member != nil && !(b.args < 0 && (len(f.Args) == 2 || f.Name == "isempty")) {
		return nil, unsupportedJQ(f.Name, "%s works on all of the data at once; name the part that is meant", f.Name)
	}
	x := &call{Func: f, in: dot, dot: dot}
	switch {
	case b.args < 0: // it says itself what it works on
	case b.in != unknown && !dot.is(b.in):
		return nil, unsupportedJQ(f.Name, "%s works on %s, and this is %s", f.Name, b.in.noun(), dot.of.sort.noun())
	}
	return b.make(t, x)
}

// list is a list made of the input.
func (x *call) list(format string) *translatedExpr {
	text := x.in.text
	if x.in.null { // sort and its like take null for an empty list, jq fails, as map does
		text = "map(" + text + ", #)"
	}
	return &translatedExpr{text: fmt.Sprintf(format, text), prec: precAtom, of: &inferredType{sort: isList, declared: true, elem: x.in.of.elem}}
}

// argument is the first argument, a text.
func (t *jq) argument(x *call) (*translatedExpr, error) {
	c, err := t.plainValue(x.Args[0], x.dot)
	if err == nil && (!c.is(isText) || c.null) {
		return nil, unsupportedJQ(x.Name, "the argument of %s is not a text for certain", x.Name)
	}
	return c, err
}

func (t *jq) not(x *call) (*translatedExpr, error) {
	c := t.truth(x.in)
	switch c.text {
	case "true":
		return constant("false", isBool), nil
	case "false":
		return constant("true", isBool), nil
	}
	return made(isBool, precUnary, "not %s", c.wrap(precAtom)), nil
}

func (t *jq) length(x *call) (*translatedExpr, error) {
	c := x.in
	if !t.assumeType(c, isList) && !c.of.declared {
		return made(isInt, precAtom, "len(%s)", c.text), nil
	}
	switch c.of.sort {
	case isText:
		return made(isInt, precAtom, "len(%s)", c.orBare(`""`)), nil
	case isList:
		return made(isInt, precAtom, "len(%s)", c.orBare("[]")), nil
	case isInt, isNumber:
		if !c.null {
			return made(c.of.sort, precAtom, "abs(%s)", c.text), nil
		}
	}
	return nil, unsupportedJQ("length", "the length of %s has no counterpart", c.of.sort.noun())
}

func (t *jq) toNumber(x *call) (*translatedExpr, error) {
	if !t.assumeType(x.in, isText) && !x.in.of.declared {
		return made(isNumber, precAtom, "float(%s)", x.in.text), nil
	}
	switch x.in.of.sort {
	case isInt, isNumber:
		return x.in, nil
	case isText:
		return made(isNumber, precAtom, "float(%s)", x.in.text), nil
	}
	return nil, unsupportedJQ("tonumber", "%s is no number", x.in.of.sort.noun())
}

func (t *jq) typeName(x *call) (*translatedExpr, error) {
	if t.guess && x.in.of.sort == unknown {
		return constant(`""`, isText), nil
	}
	name := map[typeKind]string{isInt: "number", isNumber: "number", isBool: "boolean", isList: "array", isRecord: "object"}[x.in.of.sort]
	if name == "" {
		name = "string"
	}
	if !x.in.null {
		return quotedCode(name), nil
	}
	return made(isText, precIf, `%s == nil ? "null" : %q`, x.in.wrap(precAdd), name), nil
}

// words translates a function of two texts that is an operator.
func words(operator string) func(*jq, *call) (*translatedExpr, error) {
	return func(t *jq, x *call) (*translatedExpr, error) {
		arg, err := t.argument(x)
		if err != nil {
			return nil, err
		}
		return made(isBool, precCompare, "%s %s %s", x.in.nonNull(), operator, arg.wrap(precAdd)), nil
	}
}

// trimmed translates a function that takes a text away at an end.
func trimmed(function string) func(*jq, *call) (*translatedExpr, error) {
	return func(t *jq, x *call) (*translatedExpr, error) {
		arg, err := t.argument(x)
		if err != nil {
			return nil, err
		}
		return made(isText, precAtom, "%s(%s, %s)", function, x.in.text, arg.text), nil
	}
}

// contains translates a part of a text, and texts of a list: jq looks for each of
// them inside of the list's texts.
func (t *jq) contains(x *call) (*translatedExpr, error) {
	arg, err := t.plainValue(x.Args[0], x.dot)
	if err != nil {
		return nil, err
	}
	commonType(x.in, arg)
	if arg.of.sort == isList && x.in.is(isList) && len(listedArray(x.Args[0])) > 0 && arg.of.elem.sort == isText {
		x.in.of.elem = textElement(x.in.of.elem)
		if x.in.of.elem.sort != isText {
			return nil, unsupportedJQ("contains", "contains looks for texts in a list of others")
		}
		var parts []string
		for _, q := range listedArray(x.Args[0]) {
			c, err := t.plainValue(q, x.dot)
			if err != nil || c.depth > 0 {
				return nil, unsupportedJQ("contains", "contains looks for what is worked out")
			}
			elem := "#"
			if x.in.of.elem.optional {
				elem = `(# ?? "")`
			}
			parts = append(parts, fmt.Sprintf("any(%s, %s contains %s)", x.in.text, elem, c.wrap(precAdd)))
		}
		prec := precAtom
		if len(parts) > 1 {
			prec = precAnd
		}
		return made(isBool, prec, "%s", strings.Join(parts, " and ")), nil
	}
	if !x.in.is(isText) || !arg.is(isText) || arg.null {
		return nil, unsupportedJQ("contains", "contains looks for %s in %s", arg.of.sort.noun(), x.in.of.sort.noun())
	}
	return made(isBool, precCompare, "%s contains %s", x.in.nonNull(), arg.wrap(precAdd)), nil
}

// textElement is what a list's elements are of which a text is looked for.
func textElement(elem *inferredType) *inferredType {
	if elem.sort == unknown && !elem.declared {
		elem.sort = isText
	}
	return elem
}

// listedArray are the parts of [a, b].
func listedArray(q *gojq.Query) []*gojq.Query {
	if q.Term == nil || q.Term.Type != gojq.TermTypeArray || q.Term.Array.Query == nil || len(q.Term.SuffixList) > 0 {
		return nil
	}
	return listed(q.Term.Array.Query)
}

// constantText is the text of an argument that is written as one.
func constantText(q *gojq.Query) (string, bool) {
	if q.Term == nil || q.Term.Type != gojq.TermTypeString || len(q.Term.Str.Queries) > 0 || len(q.Term.SuffixList) > 0 {
		return "", false
	}
	return q.Term.Str.Str, true
}

// test translates a regular expression.
func (t *jq) test(x *call) (*translatedExpr, error) {
	pattern, ok := constantText(x.Args[0])
	flags := ""
	if len(x.Args) == 2 && ok {
		flags, ok = constantText(x.Args[1])
	}
	if !ok {
		return nil, unsupportedJQ("test", "the pattern of test is worked out")
	}
	for _, flag := range flags {
		switch flag {
		case 'i', 's':
		case 'g':
			flags = strings.ReplaceAll(flags, "g", "")
		default:
			return nil, unsupportedJQ("test", "the flag %c of test has no counterpart", flag)
		}
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, unsupportedJQ("test", "the pattern %s cannot be used: it is not in the syntax RE2", strconv.Quote(pattern))
	}
	return made(isBool, precCompare, "%s matches %s", x.in.nonNull(), quoted(pattern)), nil
}

func (t *jq) split(x *call) (*translatedExpr, error) {
	sep, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	c := made(isList, precIf, `%s == "" ? [] : split(%s, %s)`, x.in.wrap(precAdd), x.in.text, sep.text)
	c.of.elem = &inferredType{sort: isText, declared: true}
	return c, nil
}

// join translates join, which writes numbers and truth values as they are and
// null as nothing.
func (t *jq) join(x *call) (*translatedExpr, error) {
	sep, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	x.in.of.elem = textElement(x.in.of.elem)
	elem := x.in.of.elem
	texts := x.in.text
	switch {
	case elem.sort == isText && elem.optional:
		texts = fmt.Sprintf(`map(%s, # ?? "")`, texts)
	case elem.sort == isText:
	case elem.sort == isInt || elem.sort == isNumber || elem.sort == isBool:
		one := "toJSON(#)"
		if elem.optional {
			one = `# == nil ? "" : toJSON(#)`
		}
		texts = fmt.Sprintf("map(%s, %s)", texts, one)
	default:
		return nil, unsupportedJQ("join", "join works on texts and numbers, and these are %ss", strings.TrimPrefix(elem.sort.noun(), "a "))
	}
	return made(isText, precAtom, "join(%s, %s)", texts, sep.text), nil
}
