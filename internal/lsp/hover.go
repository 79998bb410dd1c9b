package lsp

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// hover says what is known about the word at a place: what is wrong with it,
// what it names, what the key means.
func (s *server) hover(ctx context.Context, p positionParams) (*hover, error) {
	d, err := s.held(p.TextDocument)
	if err != nil {
		return nil, err
	}
	var parts []string
	var over *textRange
	at := d.offset(p.Position)
	for _, root := range s.space.rootsOf(d.path) {
		a := s.space.analyze(ctx, root)
		if a == nil || ctx.Err() != nil {
			continue
		}
		parts = append(parts, s.faultTexts(a, d, p.Position)...)
		survey := indexSyntax(s.lang, root, s.space.outlineOf)
		if m := survey.at(d.path, at); m != nil {
			r := d.span(m.start, m.end)
			over = &r
		}
		if text, r := s.wordText(a, survey, d, at); text != "" {
			parts = append(parts, text)
			if r != nil {
				over = r
			}
		}
		if len(parts) > 0 {
			break
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return &hover{Contents: markdown(strings.Join(parts, "\n\n---\n\n")), Range: over}, nil
}

// faultTexts explain the rules that are broken at a place.
func (s *server) faultTexts(a *analysis, d *document, at position) []string {
	var parts []string
	for _, f := range a.faults {
		if a.pathOf(f.Span.File) != d.path || !a.place(f.Span).holds(at) {
			continue
		}
		if r, known := ruleOf(f.Code); known {
			text := fmt.Sprintf("**%s** %s\n\n%s", r.Code, r.Title, strings.TrimSpace(r.Doc))
			if !slices.Contains(parts, text) {
				parts = append(parts, text)
			}
		}
	}
	return parts
}

// ruleOf finds a rule by its code.
func ruleOf(code string) (diag.Rule, bool) {
	for _, r := range lint.Rules() {
		if r.Code == code {
			return r, true
		}
	}
	return diag.Rule{}, false
}

// wordText says what a word means, and which stretch it is.
func (s *server) wordText(a *analysis, survey *syntaxIndex, d *document, at int) (string, *textRange) {
	if u := a.index().at(d.path, at); u != nil {
		r := d.span(u.start, u.end)
		return s.entityText(a, u.entity, u.id), &r
	}
	m := survey.at(d.path, at)
	if m == nil {
		return "", nil
	}
	switch m.role {
	case asKey:
		if m.field != nil {
			return keyText(m.field, s.lang), nil
		}
		if m.text == "type" && m.in != nil && m.in.union != nil {
			return "**type** — which " + m.in.union.Name + " this is", nil
		}
	case asTag:
		if k := m.in.class; k != nil {
			return fmt.Sprintf("**%s** — %s\n\n%s", k.tag, m.in.union.Name, k.doc), nil
		}
	case asType:
		return typeText(m.text), nil
	case asRef:
		return s.staleText(a, m), nil
	case asValue:
		if m.field != nil && slices.Contains(m.field.enum, m.text) {
			return keyText(m.field, s.lang), nil
		}
	}
	return "", nil
}

// staleText describes what a reference names while the document cannot be read:
// as it was when it last could.
func (s *server) staleText(a *analysis, m *word) string {
	if u := s.lastDeclaration(a.root, m); u != nil {
		return s.entityText(s.space.lastValid(a.root), u.entity, u.id)
	}
	return ""
}

// keyText describes a key.
func keyText(f *field, l *language) string {
	facts := []string{l.shape(f.of)}
	switch {
	case f.required:
		facts = append(facts, "required")
	case f.hasDefault:
		facts = append(facts, fmt.Sprintf("default `%s`", f.fallback))
	}
	text := fmt.Sprintf("**%s** — %s\n\n%s", f.name, strings.Join(facts, ", "), f.doc)
	if len(f.enum) > 0 {
		text += "\n\nOne of `" + strings.Join(f.enum, "`, `") + "`."
	}
	return strings.TrimSpace(text)
}

// typeText describes a built-in type.
func typeText(expression string) string {
	t, err := spec.ParseType(expression)
	if err != nil {
		return ""
	}
	core := t
	for core.Elem != nil {
		core = *core.Elem
	}
	switch {
	case slices.Contains(spec.Primitives(), core.Name):
		return fmt.Sprintf("`%s` — built-in type", t)
	case slices.Contains(spec.DomainTypes(), core.Name):
		return fmt.Sprintf("`%s` — built-in record type", t)
	}
	return ""
}

// entityText describes an entity: what it is, what it says of itself, who uses it.
func (s *server) entityText(a *analysis, e spec.Entity, id declaration) string {
	title := fmt.Sprintf("**%s** — %s", e.EntityID(), e.Kind())
	if tag := spec.TypeName(e); tag != "" && tag != string(e.Kind()) {
		title += " (" + tag + ")"
	}
	lines := []string{title}
	lines = append(lines, a.facts(e)...)
	var by []string
	used := 0
	for _, u := range a.index().all(id) {
		if u.kind == declared {
			lines = append(lines, "Declared at "+a.spot(u))
			continue
		}
		used++
		if u.by != "" && !slices.Contains(by, u.by) {
			by = append(by, u.by)
		}
	}
	if used == 0 {
		return strings.Join(append(lines, "Nothing uses it."), "\n\n")
	}
	const most = 6
	if len(by) > most {
		by = append(by[:most:most], fmt.Sprintf("%d more", len(by)-most))
	}
	return strings.Join(append(lines, fmt.Sprintf("Used in %s by %s", places(used), strings.Join(by, ", "))), "\n\n")
}

// places counts places in words.
func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// spot is the file and line of a use, seen from the document.
func (a *analysis) spot(u use) string {
	name := u.file.Path
	if rel, err := filepath.Rel(filepath.Dir(a.root), u.path); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return fmt.Sprintf("%s:%d", name, a.linesOf(u.file).line(u.start)+1)
}

// written is a text of an entity as it may be shown: where variables of the
// environment were set in, which may be secret, as it stands in the document.
func (a *analysis) written(n spec.Node, key, value string) string {
	place, ok := n.Place().Lookup(key)
	if !ok || place.Span().File == nil {
		return value
	}
	l := a.linesOf(place.Span().File)
	start, end := l.bytesOf(place.Span())
	if raw := l.text[start:end]; strings.Contains(raw, "${") {
		return strings.Trim(raw, `"'`)
	}
	return value
}

// facts are an entity's own words about itself. Secrets are never among them.
func (a *analysis) facts(e spec.Entity) []string {
	var lines []string
	if t, ok := e.(*spec.Variable); ok {
		lines = append(lines, "Type `"+t.Type.String()+"`"+properties(t.Type))
	}
	v := reflect.ValueOf(e).Elem()
	if d := v.FieldByName("Description"); d.IsValid() && d.Kind() == reflect.String && d.String() != "" {
		lines = append(lines, a.written(e, "description", d.String()))
	}
	switch e := e.(type) {
	case *spec.Memory:
		lines = append(lines, memoryText(e))
	case *spec.Model:
		lines = append(lines, a.modelText(e))
	case *spec.EmbeddingModel:
		lines = append(lines, a.modelText(&e.Model)+fmt.Sprintf(", %d dimensions", e.Dimensions))
	case *spec.APITool:
		lines = append(lines, fmt.Sprintf("`%s %s`", e.Method, a.written(e, "endpoint", e.Endpoint)))
	case *spec.CustomType:
		lines = append(lines, strings.TrimSpace(properties(spec.Type{Custom: e})))
	case *spec.Flow:
		lines = append(lines, fmt.Sprintf("Inputs: %s; outputs: %s", signature(e.Inputs), signature(e.Outputs)))
	}
	if tool, ok := e.(spec.Tool); ok {
		lines = append(lines, fmt.Sprintf("Inputs: %s; outputs: %s", declaredAs(tool.Common().Inputs), declaredAs(tool.Common().Outputs)))
	}
	return lines
}

// memoryText returns the policy of a memory with its limits.
func memoryText(m *spec.Memory) string {
	row, _ := m.Row()
	var limits []string
	for _, l := range row.Limits {
		limits = append(limits, fmt.Sprintf("`%s` %s", l.Key, strconv.FormatFloat(m.Limit(l.Key), 'f', -1, 64)))
	}
	text := strings.Join(limits, ", ")
	if row.Name == spec.Policies()[0].Name { // the default
		return text
	}
	if text != "" {
		text = ": " + text
	}
	return fmt.Sprintf("Policy `%s`", m.Policy) + text
}

// modelText is who runs a model, and which one it is there.
func (a *analysis) modelText(m *spec.Model) string {
	if m.ModelID == "" {
		return fmt.Sprintf("Provider `%s`", m.Provider)
	}
	return fmt.Sprintf("Provider `%s`, model `%s`", m.Provider, a.written(m, "model_id", m.ModelID))
}

// signature lists the variables of references with their types.
func signature(refs []spec.Ref[*spec.Variable]) string { return declaredAs(variablesOf(refs)) }

// declaredAs lists variables as name and type.
func declaredAs(variables []*spec.Variable) string {
	if len(variables) == 0 {
		return "none"
	}
	var all []string
	for _, v := range variables {
		all = append(all, fmt.Sprintf("`%s: %s`", v.ID, v.Type))
	}
	return strings.Join(all, ", ")
}

// properties lists what a value of a custom type holds.
func properties(t spec.Type) string {
	for t.Elem != nil {
		t = *t.Elem
	}
	if t.Custom == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n```yaml\n")
	for _, p := range t.Custom.Properties {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Type)
	}
	b.WriteString("```")
	return b.String()
}
