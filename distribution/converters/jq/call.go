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

// builtin is a function of jq with a counterpart.
type builtin struct {
	args int           // number of arguments; -1: checked by the function
	in   document.Kind // type of the input; Unknown for any
	zero bool          // accepts null
	make func(t *Translator, x *call) (*Expr, error)
}

// call is a call of a builtin.
type call struct {
	*gojq.Func
	in  *Expr // the input
	dot *Expr // the input of the arguments
}

// builtins returns the functions by name.
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
			return nil, Unsupported("select", "select returns a value or none; only in [ ] or map it can be translated")
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

func (t *Translator) call(f *gojq.Func, dot *Expr) (*Expr, error) {
	table := builtins()
	b, known := table[f.Name]
	switch {
	case f.Name == "null" || f.Name == "true" || f.Name == "false":
	case !known:
		e := &Error{f.Name, fmt.Sprintf("function %s has no counterpart", f.Name)}
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
		return nil, Unsupported(f.Name, "%s is applied to the whole data; apply it to a part", f.Name)
	}
	x := &call{Func: f, in: dot, dot: dot}
	switch {
	case b.args < 0: // the function checks its input
	case b.in != document.Unknown && !dot.is(b.in):
		return nil, Unsupported(f.Name, "%s takes %s, not %s", f.Name, b.in.Noun(), dot.Type.Kind.Noun())
	}
	return b.make(t, x)
}

// list returns an expression of the input that returns a list.
func (x *call) list(format string) *Expr {
	text := x.in.Source
	if x.in.Nullable { // sort and others read null as an empty list; map fails on null, as jq does
		text = "map(" + text + ", #)"
	}
	return &Expr{Source: fmt.Sprintf(format, text), Prec: PrecAtom, Type: &document.Type{Kind: document.List, Declared: true, Elem: x.in.Type.Elem}}
}

// argument translates the first argument, which must be a string.
func (t *Translator) argument(x *call) (*Expr, error) {
	c, err := t.plainValue(x.Args[0], x.dot)
	if err == nil && (!c.is(document.Text) || c.Nullable) {
		return nil, Unsupported(x.Name, "the argument of %s may not be a string", x.Name)
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
	return nil, Unsupported("tonumber", "%s is not a number", x.in.Type.Kind.Noun())
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

// words translates a test of two strings that is an operator.
func words(operator string) func(*Translator, *call) (*Expr, error) {
	return func(t *Translator, x *call) (*Expr, error) {
		arg, err := t.argument(x)
		if err != nil {
			return nil, err
		}
		return newExpr(document.Bool, precCompare, "%s %s %s", x.in.nonNull(), operator, arg.Wrap(PrecAdd)), nil
	}
}

// trimmed translates a function that removes a prefix or suffix.
func trimmed(function string) func(*Translator, *call) (*Expr, error) {
	return func(t *Translator, x *call) (*Expr, error) {
		arg, err := t.argument(x)
		if err != nil {
			return nil, err
		}
		return newExpr(document.Text, PrecAtom, "%s(%s, %s)", function, x.in.Source, arg.Source), nil
	}
}

// contains translates a search for a substring, and for substrings of elements of a
// list.
func (t *Translator) contains(x *call) (*Expr, error) {
	arg, err := t.plainValue(x.Args[0], x.dot)
	if err != nil {
		return nil, err
	}
	commonType(x.in, arg)
	if arg.Type.Kind == document.List && x.in.is(document.List) && len(listedArray(x.Args[0])) > 0 && arg.Type.Elem.Kind == document.Text {
		x.in.Type.Elem = textElement(x.in.Type.Elem)
		if x.in.Type.Elem.Kind != document.Text {
			return nil, Unsupported("contains", "contains searches for strings in a list of other values")
		}
		var parts []string
		for _, q := range listedArray(x.Args[0]) {
			c, err := t.plainValue(q, x.dot)
			if err != nil || c.depth > 0 {
				return nil, Unsupported("contains", "contains searches for an expression of the element")
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
		return nil, Unsupported("contains", "contains searches for %s in %s", arg.Type.Kind.Noun(), x.in.Type.Kind.Noun())
	}
	return newExpr(document.Bool, precCompare, "%s contains %s", x.in.nonNull(), arg.Wrap(PrecAdd)), nil
}

// textElement returns the element type of a list in which a string is searched.
func textElement(elem *document.Type) *document.Type {
	if elem.Kind == document.Unknown && !elem.Declared {
		elem.Kind = document.Text
	}
	return elem
}

// listedArray returns the elements of [a, b].
func listedArray(q *gojq.Query) []*gojq.Query {
	if q.Term == nil || q.Term.Type != gojq.TermTypeArray || q.Term.Array.Query == nil || len(q.Term.SuffixList) > 0 {
		return nil
	}
	return listed(q.Term.Array.Query)
}

// constantText returns the value of a string literal.
func constantText(q *gojq.Query) (string, bool) {
	if q.Term == nil || q.Term.Type != gojq.TermTypeString || len(q.Term.Str.Queries) > 0 || len(q.Term.SuffixList) > 0 {
		return "", false
	}
	return q.Term.Str.Str, true
}

// test translates a match of a regular expression.
func (t *Translator) test(x *call) (*Expr, error) {
	pattern, ok := constantText(x.Args[0])
	flags := ""
	if len(x.Args) == 2 && ok {
		flags, ok = constantText(x.Args[1])
	}
	if !ok {
		return nil, Unsupported("test", "the pattern of test is not constant")
	}
	for _, flag := range flags {
		switch flag {
		case 'i', 's':
		case 'g':
			flags = strings.ReplaceAll(flags, "g", "")
		default:
			return nil, Unsupported("test", "flag %c of test has no counterpart", flag)
		}
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, Unsupported("test", "pattern %s is not valid in RE2 syntax", strconv.Quote(pattern))
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

// join translates join, which formats numbers and booleans, and null as an empty
// string.
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
		return nil, Unsupported("join", "join takes strings and numbers; an element is %s", elem.Kind.Noun())
	}
	return newExpr(document.Text, PrecAtom, "join(%s, %s)", texts, sep.Source), nil
}
