package loader

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// badVariable is a ${ that does not start ${NAME} or ${NAME:-default}, or one that other programs read otherwise.
type badVariable struct {
	written string // as far as it goes
	message string
	hint    string
	literal bool // QType (Python) has a meaning for it: a warning
}

// shellForm matches the content of braces in shells and Compose: a name, an operator and its operand.
var shellForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_]\w*)(:?)([-?+=])(.*)$`) })

// maxBadVariables is the largest number of variables of one text that are reported.
const maxBadVariables = 10

// badVariables returns the variables of a text that expand does not read, or reads differently
// from Compose; at most maxBadVariables.
func badVariables(text string) []badVariable {
	if !strings.Contains(text, "${") {
		return nil
	}
	var found []badVariable
	scan := envScanner{text: text}
	done := 0
	for len(found) < maxBadVariables {
		v, more := scan.next()
		end := len(text)
		if more {
			end = v.Start
		}
		for i := strings.Index(text[done:end], "${"); i >= 0 && len(found) < maxBadVariables; i = strings.Index(text[done:end], "${") {
			found = append(found, explainVariable(variableText(text[done+i:])))
			done += i + len("${")
		}
		if !more {
			return found
		}
		switch written := text[v.Start:v.End]; {
		case strings.Contains(v.Name, "${"):
			found = append(found, explainVariable(variableText(text[v.Start:])))
		case strings.Contains(v.Default, "${"):
			found = append(found, badVariable{written: written, message: "a default cannot contain another variable", hint: "the first } ends it: write a text"})
		case strings.HasSuffix(text[:v.Start], "$"):
			found = append(found, badVariable{written: "$" + written, message: "$$ is no escape here: this is a $ and the value of " + v.Name, hint: "write ${DOLLAR:-$}{" + v.Name + "} for the text ${" + v.Name + "}", literal: true})
		}
		done = v.End
	}
	return found
}

// variableText returns the text from a ${ to its brace, or to the end of the name if the line has no brace for it.
func variableText(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	inner := line[len("${"):]
	if i := strings.IndexAny(inner, "}$"); i >= 0 && inner[i] == '}' {
		return line[:len("${")+i+1]
	}
	return line[:len("${")+len(inner)-len(strings.TrimLeft(inner, "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"))]
}

// explainVariable returns the fault of a form and the right one. Defaults may be secrets: hints omit them.
func explainVariable(written string) badVariable {
	body, closed := strings.CutSuffix(strings.TrimPrefix(written, "${"), "}")
	bad := badVariable{written: written, hint: "write ${NAME}, or ${NAME:-text} with a default"}
	m := shellForm().FindStringSubmatch(body)
	name, _, _ := strings.Cut(body, ":")
	switch {
	case !closed:
		bad.message = "this variable is not closed"
		if body != "" {
			bad.hint = "write ${" + body + "}"
		}
	case m != nil && m[3] == "?":
		bad.message, bad.hint = "${NAME:?text} is a form of other programs", "write ${"+m[1]+"}: a run refuses a variable without a value"
	case m != nil && m[3] == "=":
		bad.message, bad.hint = "${NAME:=text} is a form of other programs", "write ${"+m[1]+":-…}"
	case m != nil && m[3] == "+":
		bad.message = "${NAME:+text} is a form of other programs"
	case strings.EqualFold(name, "env"):
		name, rest, hasDefault := strings.Cut(body[len("env:"):], ":")
		bad.message, bad.hint = "${env:NAME} is a form of other programs", "write ${"+name+"}"
		if hasDefault && rest != "" {
			bad.hint = "write ${" + name + ":-…}"
		}
	case name == "":
		bad.message, bad.literal = "this names no variable, and stays as it is written", true
	default:
		bad.message, bad.literal = "a default begins with :-, so this stays as it is written", true
		bad.hint = "write ${" + name + ":-…}"
	}
	return bad
}

// otherForm returns the likely form of a variable that is not set, if its name has an operator of a
// shell; empty if it has none.
func otherForm(name string) string {
	m := shellForm().FindStringSubmatch(name)
	switch {
	case m == nil:
		return ""
	case m[3] == "-" || m[3] == "=":
		return fmt.Sprintf("; ${%s:-%s} is %[1]s with the default %[2]s", m[1], m[4])
	case m[3] == "?":
		return fmt.Sprintf("; the variable %s is ${%[1]s}", m[1])
	}
	return ""
}

// reportForms reports variables of other forms in the text of a scalar, which is at [start, end) of the file,
// and whether one of them is an error.
func (b *builder) reportForms(made *node, start, end int) (wrong bool) {
	for _, bad := range badVariables(made.text) {
		span := made.span
		if found := folded(bad.written).FindIndex(b.file.Text[start:end]); found != nil {
			span = source.Span{File: b.file, Start: b.pos.at(start + found[0]), End: b.pos.at(start + found[1])}
			start += found[1]
		}
		found := ruleVariable.At(span, "%s", bad.message).WithHint("%s", bad.hint)
		if bad.literal {
			found = found.WithSeverity(diag.Warning)
		}
		wrong = wrong || !bad.literal
		b.diags.add(found)
	}
	return wrong
}

// folded returns a pattern for a text of a scalar as it is written: white space may contain the ends of lines.
func folded(text string) *regexp.Regexp {
	var words []string
	for word := range strings.FieldsSeq(text) {
		words = append(words, regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(strings.Join(words, `[\\\s]+`))
}

// typeVariables gives values of parameters of models the type of their text: those that are one
// unquoted environment variable, where the parameter is a number or a boolean.
func (n *node) typeVariables() {
	for i, p := range n.pairs {
		switch v := p.value; {
		case v.kind == mapping:
			v.typeVariables()
		case v.kind == text && v.bare && !v.unset && isOneVariable(v.source):
			is := resolve11(v.text)
			if (is == integer || is == float) && modelparams.IsNumber(p.key.text) || is == boolean && modelparams.IsBoolean(p.key.text) {
				typed := *v // an alias elsewhere keeps the text
				typed.kind = is
				n.pairs[i].value = &typed
			}
		}
	}
}

// isOneVariable reports whether a text is a variable and nothing else.
func isOneVariable(text string) bool {
	scan := envScanner{text: text}
	v, found := scan.next()
	return found && v.Start == 0 && v.End == len(text)
}

// decodeUnion decodes a mapping into the struct that its key `type` selects.
func (d *decoder) decodeUnion(n *node, v reflect.Value, at target) {
	u := spec.FindUnion(d.unions, v.Type())
	if u == nil {
		return
	}
	if !d.isMapping(n, at, "a mapping that defines a "+u.Name) {
		return
	}
	chosen, certain := d.chooseCase(n, u)
	made := chosen.New()
	if !certain {
		// The wrong type was reported; further errors may not apply to the intended
		// type. The entity is still created, so that references to its id resolve.
		d.diags.muted++
		defer func() { d.diags.muted-- }()
	}
	d.decodeStruct(n, reflect.ValueOf(made).Elem(), u.Name)
	v.Set(reflect.ValueOf(made))
}

// chooseCase returns the case that the type selects. If the type is missing or unknown,
// it reports that and returns the most probable case, which is certain if the type is a
// misspelling of no other.
func (d *decoder) chooseCase(n *node, u *spec.Union) (chosen spec.Case, certain bool) {
	tag := n.get("type")
	if tag == nil {
		tag = misspelledTag(n, u)
	}
	if tag == nil || tag.kind == null {
		return d.chooseUntyped(n, u, tag)
	}
	for _, c := range u.Cases {
		if tag.kind == text && c.Tag == tag.text {
			return c, true
		}
	}
	likely, _ := d.chooseByFields(n, u)
	if tag.kind == broken || tag.unset {
		n.markInvalid()
		return likely, false
	}
	if tag.kind != text {
		n.markInvalid()
		d.diags.add(ruleUnionTag.At(tag.head(), "the type of a %s must be a word, not %s", u.Name, tag.describe()).WithHint("%s", oneOf(tags(u))))
		return likely, false
	}
	found := ruleUnionTag.At(tag.span, "unknown %s type %q", u.Name, tag.shown())
	explained, ok := explainValue(found, u.Name, tag.text, tags(u))
	if !ok {
		explained = found.WithNearest(tag.text, tags(u))
	}
	if found = explained; found.Suggestion != "" {
		certain = diag.IsUnambiguous(tag.text, found.Suggestion, tags(u))
		if !certain {
			n.markInvalid()
		}
		for _, c := range u.Cases {
			if c.Tag == found.Suggestion {
				likely = c
			}
		}
	} else {
		n.markInvalid() // the intended type is not known
		if found.Hint == "" {
			found = found.WithHint("%s", oneOf(tags(u)))
		}
	}
	d.diags.add(found)
	return likely, certain
}

// misspelledTag returns the value of a key that is probably a misspelling of `type`.
// The unknown key is reported with the other keys.
func misspelledTag(n *node, u *spec.Union) *node {
	for _, p := range n.pairs {
		if p.value.kind != text || diag.Nearest(p.key.text, []string{"type"}) == "" {
			continue
		}
		if slices.Contains(tags(u), p.value.text) || diag.Nearest(p.value.text, tags(u)) != "" {
			return p.value
		}
	}
	return nil
}

// chooseUntyped chooses the case of an entity whose type is missing, or null if tag is set.
func (d *decoder) chooseUntyped(n *node, u *spec.Union, tag *node) (chosen spec.Case, certain bool) {
	if tag == nil && n.unread { // the type may be in a merge that could not be read
		likely, _ := d.chooseByFields(n, u)
		return likely, false
	}
	likely, fits := d.chooseByFields(n, u)
	if u.TagOptional && fits && tag == nil {
		return likely, true
	}
	n.markInvalid() // no rule applies to a guess
	owner := u.Name
	if id := n.get("id"); id != nil && id.kind == text {
		owner += " \"" + id.shown() + "\""
	}
	missing := missingField(n, owner, "type")
	found := ruleUnionTag.At(missing.Span, "%s", missing.Message).WithHint(`add "type:" here; %s`, oneOf(tags(u)))
	found = keyedType(found, n, u)
	if tag != nil {
		found.Span = tag.span
	}
	d.diags.add(found)
	return likely, false
}

// chooseByFields returns the case that has most of the keys, where required ones count
// twice; the first of equal cases. It fits if it has a key other than the id.
func (d *decoder) chooseByFields(n *node, u *spec.Union) (best spec.Case, fits bool) {
	most := -1
	for _, c := range u.Cases {
		p := d.planOf(reflect.TypeOf(c.New()).Elem())
		score := 0
		for _, f := range p.fields {
			switch {
			case f.name == "id" || !n.has(f.name):
			case f.required:
				score += 2
			default:
				score++
			}
		}
		if score > most {
			best, most = c, score
		}
	}
	return best, most > 0
}

// oneOf lists choices on one line, up to a readable number.
func oneOf(choices []string) string {
	const shown = 12
	if len(choices) == 1 {
		return "it can be " + choices[0]
	}
	if len(choices) > shown {
		return "it can be " + strings.Join(choices[:shown], ", ") + ", …"
	}
	last := len(choices) - 1
	return "it can be " + strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// unknowns collects what the parts of a document that could not be decoded may have
// contained: entities with ids, and references to others.
type unknowns struct {
	declared, named map[reflect.Type]bool
	order           spec.Unknowns
	known           map[reflect.Type]bool // types that were visited
}

// spec returns what was collected.
func (g *unknowns) spec() spec.Unknowns { return g.order }

// add records that a value of a type is missing. The variables of a tool are local, so
// a part of a tool declares nothing.
func (g *unknowns) add(d *decoder, t reflect.Type) {
	if g.known[t] && !d.inTool {
		return
	}
	g.walk(d, t, map[reflect.Type]bool{}, d.inTool)
	if g.known == nil {
		g.known = map[reflect.Type]bool{}
	}
	g.known[t] = g.known[t] || !d.inTool
}

// markLost records what may be missing in a value. An entity of a union whose type is
// unknown still has its id.
func (d *decoder) markLost(v reflect.Value) {
	declared := d.gaps.order.Declared
	d.gaps.add(d, v.Type())
	if v.Kind() != reflect.Interface || v.IsNil() {
		return
	}
	if e, ok := v.Interface().(spec.Entity); ok && e.EntityID() != "" {
		for _, t := range d.gaps.order.Declared[len(declared):] {
			delete(d.gaps.declared, t)
		}
		d.gaps.order.Declared = declared
		delete(d.gaps.known, v.Type())
	}
}

// walk visits the types that a value of a type can contain.
func (g *unknowns) walk(d *decoder, t reflect.Type, seen map[reflect.Type]bool, inTool bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Reference]()) {
		g.addNamed(spec.TargetType(reflect.New(t).Interface().(spec.Reference)))
		return
	}
	switch t {
	case reflect.TypeFor[spec.Expression]():
		g.addNamed(reflect.TypeFor[*spec.Variable]())
		return
	case reflect.TypeFor[spec.Type]():
		g.addNamed(reflect.TypeFor[*spec.CustomType]())
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		g.walk(d, t.Elem(), seen, inTool)
	case reflect.Interface:
		for _, c := range d.caseTypes(t) {
			g.walk(d, c, seen, inTool)
		}
	case reflect.Struct:
		g.walkStruct(d, t, seen, inTool)
	}
}

func (g *unknowns) walkStruct(d *decoder, t reflect.Type, seen map[reflect.Type]bool, inTool bool) {
	pointer := reflect.PointerTo(t)
	isVariable := t == reflect.TypeFor[spec.Variable]()
	if pointer.Implements(reflect.TypeFor[spec.Entity]()) && !(isVariable && inTool) {
		g.addDeclared(d, pointer)
	}
	if pointer.Implements(reflect.TypeFor[spec.Tool]()) {
		// The variables of a tool are local; flows are visited elsewhere.
		inTool = true
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Type != reflect.TypeFor[spec.Positioned]() {
			g.walk(d, f.Type, seen, inTool)
		}
	}
}

// addDeclared records an entity that references may name.
func (g *unknowns) addDeclared(d *decoder, pointer reflect.Type) {
	if g.declared[pointer] || d.inTool && pointer == reflect.TypeFor[*spec.Variable]() {
		return
	}
	if g.declared == nil {
		g.declared = map[reflect.Type]bool{}
	}
	g.declared[pointer] = true
	g.order.Declared = append(g.order.Declared, pointer)
}

// addNamed records what a missing reference may name.
func (g *unknowns) addNamed(wants reflect.Type) {
	if g.named[wants] {
		return
	}
	if g.named == nil {
		g.named = map[reflect.Type]bool{}
	}
	g.named[wants] = true
	g.order.Named = append(g.order.Named, wants)
}
