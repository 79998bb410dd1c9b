package validate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"

	"github.com/qtype-dev/qtype/diag"
	"github.com/qtype-dev/qtype/source"
	"github.com/qtype-dev/qtype/spec"
)

// formula is an expression and where it stands.
type formula struct {
	expr   *spec.Expression
	at     context
	target *spec.Ref[*spec.Variable] // the variable that it sets; nil for a condition
}

// wholeEnv stands for all variables at once in the expression library. It is no
// variable here: nobody could tell what the expression reads.
const wholeEnv = "$env"

// longestFormula bounds an expression, in bytes: the parser's depth grows with it.
const longestFormula = 4000

// linkFormulas reads every expression, links the variables that it names and
// checks its types (QT423 to QT426). The variables become inputs of the step.
func (p *program) linkFormulas() {
	for _, f := range p.formulas {
		if strings.TrimSpace(f.expr.Text) == "" {
			continue
		}
		tree, err := parseFormula(f.expr.Text)
		if err != nil {
			p.list.Add(f.fault("the expression cannot be read", err))
			continue
		}
		env := p.linkNames(f, tree)
		if env[wholeEnv] != nil {
			continue // what else it names cannot be known
		}
		if result, err := checkFormula(tree, env); err != nil {
			p.list.Add(f.fault("the expression does not fit its values", err))
		} else {
			p.checkResult(f, result)
		}
	}
}

// parseFormula reads an expression.
func parseFormula(text string) (tree *parser.Tree, err error) {
	if len(text) > longestFormula {
		return nil, errors.New("an expression has at most " + strconv.Itoa(longestFormula) + " characters")
	}
	defer unpanic(&err)
	return parser.ParseWithConfig(text, conf.CreateNew())
}

// checkFormula answers the type of an expression's value.
func checkFormula(tree *parser.Tree, env types.Map) (result reflect.Type, err error) {
	defer unpanic(&err)
	return checker.Check(tree, conf.New(env))
}

// unpanic makes an error of a panic: the library must not end the program,
// whatever it meets.
func unpanic(err *error) {
	if recover() != nil {
		*err = errors.New("not an expression")
	}
}

// names collects what an expression names.
type names struct {
	used    []*ast.IdentifierNode
	called  map[*ast.IdentifierNode]bool // functions
	defined map[string]bool              // by let
}

// Visit looks at one node.
func (n *names) Visit(node *ast.Node) {
	switch x := (*node).(type) {
	case *ast.IdentifierNode:
		n.used = append(n.used, x)
	case *ast.CallNode:
		if f, ok := x.Callee.(*ast.IdentifierNode); ok {
			n.called[f] = true
		}
	case *ast.VariableDeclaratorNode:
		n.defined[x.Name] = true
	}
}

// linkNames links the variables of an expression, and answers the types of
// everything that it names: of what is unknown, and reported, any type.
func (p *program) linkNames(f formula, tree *parser.Tree) types.Map {
	found := names{called: map[*ast.IdentifierNode]bool{}, defined: map[string]bool{}}
	ast.Walk(&tree.Node, &found)
	slices.SortStableFunc(found.used, func(a, b *ast.IdentifierNode) int { return a.Location().From - b.Location().From })
	env := types.Map{}
	var vars []spec.Ref[*spec.Variable]
	for _, id := range found.used {
		if _, known := env[id.Value]; known || found.defined[id.Value] {
			continue
		}
		env[id.Value] = types.Any
		span := f.span(id.Location())
		if found.called[id] {
			p.list.Add(unknownFunction(span, id.Value))
			continue
		}
		ref := spec.Ref[*spec.Variable]{ID: id.Value, Span: span}
		if p.linkName(f, &ref) {
			env[id.Value] = p.formulaType(ref.To)
			vars = append(vars, ref)
		}
	}
	f.expr.Vars = vars
	if step, ok := f.at.owner.(spec.Step); ok {
		readsToo(step, f.expr.Vars)
	}
	return env
}

// linkName links one variable, or reports that there is none.
func (p *program) linkName(f formula, ref *spec.Ref[*spec.Variable]) bool {
	m := mention{ref: ref, at: f.at}
	if p.link(m, false) {
		return true
	}
	if p.ambiguous(ref.ID, m) {
		return false
	}
	finding := fault("QT425", ref.Span, "the expression names %q, which is no variable", ref.ID)
	near, entity := p.nearest(ref.ID, m)
	choices := p.choices(m).ids
	switch {
	case near != "":
		p.used[entity] = true
		finding = finding.WithSuggestion(near).WithRelated(idPlace(entity), "a variable declared here")
	case len(choices) > 0:
		finding = finding.WithHint("there are %s; a text stands in quotes", few(choices))
	default:
		finding = finding.WithHint("the flow declares no variables")
	}
	p.list.Add(finding)
	return false
}

func unknownFunction(span source.Span, name string) diag.Diagnostic {
	finding := fault("QT423", span, "the expression calls %q, which is no function", name)
	return finding.WithSuggestion(diag.Nearest(name, builtin.Names))
}

// readsToo makes variables inputs of a step that does not name them. What the
// step sets itself, as the condition of a Loop sees it, it need not be given.
func readsToo(step spec.Step, vars []spec.Ref[*spec.Variable]) {
	base := step.Common()
	for i := range vars {
		_, isLoop := step.(*spec.Loop)
		if holds(inputsOf(step), vars[i].ID) || isLoop && holds(outputsOf(step), vars[i].ID) {
			continue
		}
		base.DerivedInputs = append(base.DerivedInputs, &vars[i])
	}
}

// span is the place of a part of the expression, whose ends are counted in characters.
func (f formula) span(part file.Location) source.Span {
	text := f.expr.Text
	from := byteOf(text, part.From)
	to := max(byteOf(text, part.To), from)
	if from == len(text) { // the end of the text: its last word is marked
		from = strings.LastIndexAny(strings.TrimSpace(text), " \t\n(") + 1
	}
	return within(f.expr.Span, excerptAt(text, from, max(to-from, 0)))
}

// byteOf is the offset of the n-th character.
func byteOf(text string, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// fault makes a finding of an error of the expression library.
func (f formula) fault(what string, err error) diag.Diagnostic {
	var at *file.Error
	if !errors.As(err, &at) {
		return fault("QT423", f.expr.Span, "%s: %s", what, firstLine(err.Error()))
	}
	finding := fault("QT423", f.span(at.Location), "%s: %s", what, inOurWords(firstLine(at.Message)))
	if strings.Contains(at.Message, `Operator("=")`) {
		finding = finding.WithHint("write == to compare")
	}
	return finding
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// inOurWords puts a message of the expression library into the language's terms.
func inOurWords(message string) string {
	if kind, rest, found := strings.Cut(message, "unexpected token "); found && kind == "" {
		what, value, hasValue := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		switch {
		case what == "EOF":
			return "something is missing at its end"
		case hasValue:
			return "unexpected " + value
		}
	}
	if field, found := strings.CutPrefix(message, "unknown field "); found {
		return fmt.Sprintf("there is no field %q", field)
	}
	message = strings.NewReplacer("invalid operation: ", "", " (mismatched types ", " does not go with ", " (mismatched type ", " does not go with ").Replace(message)
	if strings.Contains(message, " does not go with ") {
		message = strings.TrimSuffix(message, ")")
	}
	return strings.NewReplacer("map[string]interface {}", "a record", "map[string]any", "a record", "[]interface {}", "a list",
		"[]any", "a list", "interface {}", "any", "float64", "float", "string", "text", "boolean", "boolean", "bool", "boolean").Replace(message)
}

// deepestRecord is how far types of records are followed: they may hold themselves.
const deepestRecord = 4

// formulaType is a variable's type in the terms of the expression library. What
// may be null, and what has no counterpart there, is of any type.
func (p *program) formulaType(v *spec.Variable) types.Type {
	if v == nil || p.untyped[v] || v.IsOptional() {
		return types.Any
	}
	return typeOf(v.Type, 0)
}

func typeOf(t spec.Type, depth int) types.Type {
	switch {
	case t.Optional || depth > deepestRecord:
		return types.Any
	case t.Elem != nil:
		return types.Array(typeOf(*t.Elem, depth+1))
	case t.Custom != nil:
		fields := types.Map{}
		for _, p := range t.Custom.Properties {
			fields[p.Name] = typeOf(p.Type, depth+1)
		}
		return fields
	}
	switch t.Name {
	case "text":
		return types.String
	case "int":
		return types.Int
	case "float":
		return types.Float64
	case "boolean":
		return types.Bool
	}
	return types.Any
}

// checkResult holds an expression's value against what it is for (QT424, QT426).
func (p *program) checkResult(f formula, result reflect.Type) {
	switch {
	case f.target == nil && result.Kind() != reflect.Bool && result.Kind() != reflect.Interface:
		p.list.Add(fault("QT424", f.expr.Span, "the condition gives %s, not true or false", resultName(result)).
			WithHint("compare it with something, such as == or >"))
	case f.target != nil && f.target.To != nil && !p.untyped[f.target.To] && !takes(f.target.To.Type, result):
		finding := fault("QT426", f.expr.Span, "%q is %s, but the expression gives %s", f.target.ID, f.target.To.Type.String(), resultName(result)).
			WithRelated(typePlace(f.target.To.Place().Field("type")), "declared here")
		if convert := converter(f.target.To.Type); convert != "" {
			finding = finding.WithHint("convert it with %s(…), or give the variable another type", convert)
		}
		p.list.Add(finding)
	}
}

// takes tells whether a variable of a type can be set to an expression's value.
func takes(t spec.Type, result reflect.Type) bool {
	k := result.Kind()
	isNumber := k == reflect.Int || k == reflect.Float64
	switch {
	case k == reflect.Interface:
		return true
	case t.IsList():
		return k == reflect.Slice || k == reflect.Array
	case t.IsRecord():
		return k == reflect.Map || t.Is("ChatMessage") && k == reflect.String
	}
	switch t.Name {
	case "text":
		return k == reflect.String
	case "int":
		return k == reflect.Int
	case "float":
		return isNumber
	case "boolean":
		return k == reflect.Bool
	}
	return k != reflect.Bool && !isNumber // dates and media are made of texts
}

// converter is the function of expressions that makes a value of a type.
func converter(t spec.Type) string {
	switch t.String() {
	case "text", "text?":
		return "string"
	case "int", "int?":
		return "int"
	case "float", "float?":
		return "float"
	}
	return ""
}

// resultName is the type of an expression's value in the language's terms.
func resultName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Float64, reflect.Float32:
		return "float"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map:
		return "a record"
	case reflect.Struct:
		return "a datetime"
	}
	return "another value"
}
