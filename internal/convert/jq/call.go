package jq

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/spec/diag"
)

// builtin is a function of jq that has a counterpart.
type builtin struct {
	args int           // how many it takes
	in   document.Kind // what it works on; unknown for anything
	zero bool          // it works on null, too
	make func(t *Translator, x *call) (*Expr, error)
}

// call is one call of a function.
type call struct {
	*gojq.Func
	in  *Expr // what it works on
	dot *Expr // what its arguments work on
}

// builtins are the functions by their names. Those with a second form of other
// arguments look at them themselves.
func builtins() map[string]builtin {
	return map[string]builtin{
		"not":        {0, document.Unknown, true, (*Translator).not},
		"length":     {0, document.Unknown, true, (*Translator).length},
		"tostring":   {0, document.Unknown, true, func(t *Translator, x *call) (*Expr, error) { t.AssumeType(x.in, document.Text); return t.AsText(x.in) }},
		"tojson":     {0, document.Unknown, true, func(t *Translator, x *call) (*Expr, error) { t.AssumeType(x.in, document.Text); return t.asJSON(x.in) }},
		"tonumber":   {0, document.Unknown, false, (*Translator).toNumber},
		"type":       {0, document.Unknown, true, (*Translator).typeName},
		"startswith": {1, document.Text, false, words("startsWith")},
		"endswith":   {1, document.Text, false, words("endsWith")},
		"contains":   {1, document.Unknown, false, (*Translator).contains},
		"test":       {1, document.Text, false, (*Translator).test},
		"split":      {1, document.Text, false, (*Translator).split},
		"join":       {1, document.List, false, (*Translator).join},
		"ltrimstr":   {1, document.Text, false, trimmed("trimPrefix")},
		"rtrimstr":   {1, document.Text, false, trimmed("trimSuffix")},
		"map":        {1, document.List, false, (*Translator).mapping},
		"select": {1, document.Unknown, true, func(*Translator, *call) (*Expr, error) {
			return nil, Unsupported("select", "select gives a value or none; inside of [ ] or map it can be translated")
		}},
		"any":     {-1, document.List, false, quantifier("any")},
		"all":     {-1, document.List, false, quantifier("all")},
		"first":   {0, document.List, true, element("0")},
		"last":    {0, document.List, true, element("-1")},
		"add":     {0, document.List, false, (*Translator).add},
		"min":     {0, document.List, false, extreme("min")},
		"max":     {0, document.List, false, extreme("max")},
		"sort":    {0, document.List, false, sorted("sort(%s)")},
		"unique":  {0, document.List, false, sorted("sort(uniq(%s))")},
		"reverse": {0, document.List, false, func(_ *Translator, x *call) (*Expr, error) { return x.list("reverse(%s)"), nil }},
		"has":     {1, document.Unknown, true, (*Translator).has},
		"index":   {1, document.Unknown, true, (*Translator).position},
		"inside":  {1, document.Text, false, (*Translator).inside},
		"IN":      {-1, document.Unknown, true, (*Translator).among},
		"isempty": {-1, document.Unknown, true, (*Translator).isEmptyStream},
		"limit":   {-1, document.Unknown, true, (*Translator).limit},
		"nth":     {1, document.List, true, (*Translator).nth},
		"sort_by": {1, document.List, false, sortedBy("%s")},
		"min_by":  {1, document.List, false, sortedBy("get(%s, 0)")},
		"max_by":  {1, document.List, false, sortedBy("get(%s, -1)")},
		"sub":     {2, document.Text, false, replaced(", 1")},
		"gsub":    {2, document.Text, false, replaced("")},
		"trim": {0, document.Text, false, func(_ *Translator, x *call) (*Expr, error) {
			return newExpr(document.Text, PrecAtom, "trim(%s)", x.in.Source), nil
		}},
		"abs": {0, document.Float, false, func(_ *Translator, x *call) (*Expr, error) {
			return newExpr(x.in.Type.Kind, PrecAtom, "abs(%s)", x.in.Source), nil
		}},
		"round":          {0, document.Float, false, rounded("round")},
		"floor":          {0, document.Float, false, rounded("floor")},
		"ceil":           {0, document.Float, false, rounded("ceil")},
		"ascii_downcase": {0, document.Text, false, cased("lower", "A-Z")},
		"ascii_upcase":   {0, document.Text, false, cased("upper", "a-z")},
	}
}

// call translates the call of a function.
func (t *Translator) call(f *gojq.Func, dot *Expr) (*Expr, error) {
	table := builtins()
	b, known := table[f.Name]
	switch {
	case f.Name == "null" || f.Name == "true" || f.Name == "false":
	case !known:
		e := &Error{f.Name, fmt.Sprintf("the function %s has no counterpart", f.Name)}
		var names []string
		for name := range table {
			names = append(names, name)
		}
		if near := diag.Nearest(f.Name, names); near != "" {
			e.why += fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, e
	case b.args >= 0 && len(f.Args) != b.args && !(f.Name == "test" && len(f.Args) == 2):
		return nil, Unsupported(f.Name, "%s with %d arguments has no counterpart", f.Name, len(f.Args))
	}
	if dot.Member != nil && !(b.args < 0 && (len(f.Args) == 2 || f.Name == "isempty")) {
		return nil, Unsupported(f.Name, "%s works on all of the data at once; name the part that is meant", f.Name)
	}
	x := &call{Func: f, in: dot, dot: dot}
	switch {
	case b.args < 0: // it says itself what it works on
	case b.in != document.Unknown && !dot.is(b.in):
		return nil, Unsupported(f.Name, "%s works on %s, and this is %s", f.Name, b.in.Noun(), dot.Type.Kind.Noun())
	}
	return b.make(t, x)
}

// list is a list made of the input.
func (x *call) list(format string) *Expr {
	text := x.in.Source
	if x.in.Nullable { // sort and its like take null for an empty list, jq fails, as map does
		text = "map(" + text + ", #)"
	}
	return &Expr{Source: fmt.Sprintf(format, text), Prec: PrecAtom, Type: &document.Type{Kind: document.List, Declared: true, Elem: x.in.Type.Elem}}
}

// argument is the first argument, a text.
func (t *Translator) argument(x *call) (*Expr, error) {
	c, err := t.plainValue(x.Args[0], x.dot)
	if err == nil && (!c.is(document.Text) || c.Nullable) {
		return nil, Unsupported(x.Name, "the argument of %s is not a text for certain", x.Name)
	}
	return c, err
}

func (t *Translator) not(x *call) (*Expr, error) {
	c := t.Truth(x.in)
	switch c.Source {
	case "true":
		return Constant("false", document.Bool), nil
	case "false":
		return Constant("true", document.Bool), nil
	}
	return newExpr(document.Bool, PrecUnary, "not %s", c.Wrap(PrecAtom)), nil
}

func (t *Translator) length(x *call) (*Expr, error) {
	c := x.in
	if !t.AssumeType(c, document.List) && !c.Type.Declared {
		return newExpr(document.Int, PrecAtom, "len(%s)", c.Source), nil
	}
	switch c.Type.Kind {
	case document.Text:
		return newExpr(document.Int, PrecAtom, "len(%s)", c.orBare(`""`)), nil
	case document.List:
		return newExpr(document.Int, PrecAtom, "len(%s)", c.orBare("[]")), nil
	case document.Int, document.Float:
		if !c.Nullable {
			return newExpr(c.Type.Kind, PrecAtom, "abs(%s)", c.Source), nil
		}
	}
	return nil, Unsupported("length", "the length of %s has no counterpart", c.Type.Kind.Noun())
}

func (t *Translator) toNumber(x *call) (*Expr, error) {
	if !t.AssumeType(x.in, document.Text) && !x.in.Type.Declared {
		return newExpr(document.Float, PrecAtom, "float(%s)", x.in.Source), nil
	}
	switch x.in.Type.Kind {
	case document.Int, document.Float:
		return x.in, nil
	case document.Text:
		return newExpr(document.Float, PrecAtom, "float(%s)", x.in.Source), nil
	}
	return nil, Unsupported("tonumber", "%s is no number", x.in.Type.Kind.Noun())
}

func (t *Translator) typeName(x *call) (*Expr, error) {
	if t.Guess && x.in.Type.Kind == document.Unknown {
		return Constant(`""`, document.Text), nil
	}
	name := map[document.Kind]string{document.Int: "number", document.Float: "number", document.Bool: "boolean", document.List: "array", document.Record: "object"}[x.in.Type.Kind]
	if name == "" {
		name = "string"
	}
	if !x.in.Nullable {
		return QuoteExpr(name), nil
	}
	return newExpr(document.Text, precIf, `%s == nil ? "null" : %q`, x.in.Wrap(PrecAdd), name), nil
}

// words translates a function of two texts that is an operator.
func words(operator string) func(*Translator, *call) (*Expr, error) {
	return func(t *Translator, x *call) (*Expr, error) {
		arg, err := t.argument(x)
		if err != nil {
			return nil, err
		}
		return newExpr(document.Bool, precCompare, "%s %s %s", x.in.nonNull(), operator, arg.Wrap(PrecAdd)), nil
	}
}

// trimmed translates a function that takes a text away at an end.
func trimmed(function string) func(*Translator, *call) (*Expr, error) {
	return func(t *Translator, x *call) (*Expr, error) {
		arg, err := t.argument(x)
		if err != nil {
			return nil, err
		}
		return newExpr(document.Text, PrecAtom, "%s(%s, %s)", function, x.in.Source, arg.Source), nil
	}
}

// contains translates a part of a text, and texts of a list: jq looks for each of
// them inside of the list's texts.
func (t *Translator) contains(x *call) (*Expr, error) {
	arg, err := t.plainValue(x.Args[0], x.dot)
	if err != nil {
		return nil, err
	}
	commonType(x.in, arg)
	if arg.Type.Kind == document.List && x.in.is(document.List) && len(listedArray(x.Args[0])) > 0 && arg.Type.Elem.Kind == document.Text {
		x.in.Type.Elem = textElement(x.in.Type.Elem)
		if x.in.Type.Elem.Kind != document.Text {
			return nil, Unsupported("contains", "contains looks for texts in a list of others")
		}
		var parts []string
		for _, q := range listedArray(x.Args[0]) {
			c, err := t.plainValue(q, x.dot)
			if err != nil || c.depth > 0 {
				return nil, Unsupported("contains", "contains looks for what is worked out")
			}
			elem := "#"
			if x.in.Type.Elem.Optional {
				elem = `(# ?? "")`
			}
			parts = append(parts, fmt.Sprintf("any(%s, %s contains %s)", x.in.Source, elem, c.Wrap(PrecAdd)))
		}
		prec := PrecAtom
		if len(parts) > 1 {
			prec = precAnd
		}
		return newExpr(document.Bool, prec, "%s", strings.Join(parts, " and ")), nil
	}
	if !x.in.is(document.Text) || !arg.is(document.Text) || arg.Nullable {
		return nil, Unsupported("contains", "contains looks for %s in %s", arg.Type.Kind.Noun(), x.in.Type.Kind.Noun())
	}
	return newExpr(document.Bool, precCompare, "%s contains %s", x.in.nonNull(), arg.Wrap(PrecAdd)), nil
}

// textElement is what a list's elements are of which a text is looked for.
func textElement(elem *document.Type) *document.Type {
	if elem.Kind == document.Unknown && !elem.Declared {
		elem.Kind = document.Text
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
func (t *Translator) test(x *call) (*Expr, error) {
	pattern, ok := constantText(x.Args[0])
	flags := ""
	if len(x.Args) == 2 && ok {
		flags, ok = constantText(x.Args[1])
	}
	if !ok {
		return nil, Unsupported("test", "the pattern of test is worked out")
	}
	for _, flag := range flags {
		switch flag {
		case 'i', 's':
		case 'g':
			flags = strings.ReplaceAll(flags, "g", "")
		default:
			return nil, Unsupported("test", "the flag %c of test has no counterpart", flag)
		}
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, Unsupported("test", "the pattern %s cannot be used: it is not in the syntax RE2", strconv.Quote(pattern))
	}
	return newExpr(document.Bool, precCompare, "%s matches %s", x.in.nonNull(), Quote(pattern)), nil
}

func (t *Translator) split(x *call) (*Expr, error) {
	sep, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	c := newExpr(document.List, precIf, `%s == "" ? [] : split(%s, %s)`, x.in.Wrap(PrecAdd), x.in.Source, sep.Source)
	c.Type.Elem = &document.Type{Kind: document.Text, Declared: true}
	return c, nil
}

// join translates join, which writes numbers and truth values as they are and
// null as nothing.
func (t *Translator) join(x *call) (*Expr, error) {
	sep, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	x.in.Type.Elem = textElement(x.in.Type.Elem)
	elem := x.in.Type.Elem
	texts := x.in.Source
	switch {
	case elem.Kind == document.Text && elem.Optional:
		texts = fmt.Sprintf(`map(%s, # ?? "")`, texts)
	case elem.Kind == document.Text:
	case elem.Kind == document.Int || elem.Kind == document.Float || elem.Kind == document.Bool:
		one := "toJSON(#)"
		if elem.Optional {
			one = `# == nil ? "" : toJSON(#)`
		}
		texts = fmt.Sprintf("map(%s, %s)", texts, one)
	default:
		return nil, Unsupported("join", "join works on texts and numbers, and these are %ss", strings.TrimPrefix(elem.Kind.Noun(), "a "))
	}
	return newExpr(document.Text, PrecAtom, "join(%s, %s)", texts, sep.Source), nil
}
