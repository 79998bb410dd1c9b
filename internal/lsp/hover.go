package lsp

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// hover handles textDocument/hover: which rules are violated, what a name refers
// to, what a key means.
func (s *server) hover(ctx context.Context, p protocol.TextDocumentPositionParams) (*protocol.Hover, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return nil, err
	}
	var parts []string
	var over *protocol.Range
	at := d.offset(p.Position)
	for _, root := range s.workspace.rootsOf(d.path) {
		a := s.workspace.analyze(ctx, root)
		if a == nil || ctx.Err() != nil {
			continue
		}
		first := len(parts)
		parts = append(parts, s.ruleTexts(a, d, p.Position)...)
		syntax := indexSyntax(s.lang(), root, s.workspace.outlineOf)
		if m := syntax.at(d.path, at); m != nil {
			r := d.rangeOf(m.start, m.end)
			over = &r
		}
		text, r := s.environmentText(root, syntax, d, at)
		if text == "" {
			text, r = s.wordText(a, syntax, d, at)
		}
		if text != "" {
			parts = append(parts, text)
			if r != nil {
				over = r
			}
		} else if of, u := s.namedTarget(ctx, root, syntax.at(d.path, at)); u != nil {
			parts = append(parts, of.redactor.String(s.entityText(of, u.entity, u.id)))
		}
		for i := first; i < len(parts); i++ {
			parts[i] = a.redactor.String(parts[i])
		}
		if len(parts) > 0 {
			break
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return &protocol.Hover{Contents: protocol.Markdown(strings.Join(parts, "\n\n---\n\n")), Range: over}, nil
}

// ruleTexts describes the rules that are violated at a position.
func (s *server) ruleTexts(a *analysis, d *document, at protocol.Position) []string {
	var parts []string
	for _, f := range a.diagnostics {
		if a.pathOf(f.Span.File) != d.path || !a.rangeOf(f.Span).Contains(at) {
			continue
		}
		if r, known := s.lang().ruleOf(f.Code); known {
			text := fmt.Sprintf("**%s** %s\n\n%s", r.Code, r.Title, strings.TrimSpace(r.Doc))
			if !slices.Contains(parts, text) {
				parts = append(parts, text)
			}
		}
	}
	return parts
}

func (l *language) ruleOf(code string) (diag.Rule, bool) {
	all := append(lint.Rules(), validate.RulesOf(l.Language)...)
	for _, k := range l.kinds {
		all = append(all, k.Rules()...)
	}
	i := slices.IndexFunc(all, func(r diag.Rule) bool { return r.Code == code })
	if i < 0 {
		return diag.Rule{}, false
	}
	return all[i], true
}

// wordText describes the word at an offset and returns its range.
func (s *server) wordText(a *analysis, syntax *syntaxIndex, d *document, at int) (string, *protocol.Range) {
	if u := a.index().at(d.path, at); u != nil {
		r := d.rangeOf(u.start, u.end)
		return s.entityText(a, u.entity, u.id), &r
	}
	m := syntax.at(d.path, at)
	if m == nil {
		return "", nil
	}
	switch m.role {
	case roleKey:
		if m.field != nil {
			return keyText(m.field, s.lang()) + referenceLink(ownerOf(m)), nil
		}
		if m.text == "type" && m.mapping != nil && m.mapping.union != nil {
			return "**type** — which " + m.mapping.union.Name + " this is", nil
		}
	case roleTag:
		if k := m.mapping.class; k != nil {
			return fmt.Sprintf("**%s** — %s\n\n%s", k.tag, m.mapping.union.Name, k.doc) + referenceLink(k), nil
		}
	case roleType:
		return typeText(m.text), nil
	case roleReference:
		return s.lastValidText(a, m), nil
	case roleValue:
		if m.field != nil && m.field.name == modelKey && m.mapping != nil {
			return catalogueText(modelAt(m.mapping, a.catalogue())), nil
		}
		if m.field != nil && slices.Contains(m.field.enum, m.text) {
			text := keyText(m.field, s.lang())
			if doc := m.field.enumDocs[m.text]; doc != "" {
				text = fmt.Sprintf("**%s** — %s\n\n%s", m.text, doc, text)
			}
			return text + referenceLink(ownerOf(m)), nil
		}
	}
	return "", nil
}

// ownerOf returns the struct that a key belongs to: that of its mapping, which may embed the
// declaring one.
func ownerOf(m *syntaxWord) *structType {
	if m.mapping != nil && m.mapping.class != nil {
		return m.mapping.class
	}
	return m.field.owner
}

// lastValidText describes the target of a reference in the last valid version of
// the document: the current version cannot be parsed.
func (s *server) lastValidText(a *analysis, m *syntaxWord) string {
	if u := s.lastDeclaration(a.path, m); u != nil {
		return s.entityText(s.workspace.lastValid(a.path), u.entity, u.id)
	}
	return ""
}

// keyText describes a key.
func keyText(f *field, l *language) string {
	facts := []string{l.describeType(f.goType)}
	switch {
	case f.required:
		facts = append(facts, "required")
	case f.hasDefault:
		facts = append(facts, fmt.Sprintf("default `%s`", f.defaultText))
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
	case core.Name == spec.Any:
		return fmt.Sprintf("`%s` — any JSON value", t)
	}
	return ""
}

// entityText describes an entity: its kind, its settings and its uses.
func (s *server) entityText(a *analysis, e spec.Entity, id declaration) string {
	title := fmt.Sprintf("**%s** — %s", e.EntityID(), e.Kind())
	if tag := spec.TypeName(e); tag != "" && tag != string(e.Kind()) {
		title += " (" + tag + ")"
	}
	lines := []string{title}
	lines = append(lines, a.entityFacts(e)...)
	var by []string
	used := 0
	for _, u := range a.index().usesOf(id) {
		if u.kind == declaredName {
			lines = append(lines, "Declared at "+a.describeLocation(u))
			continue
		}
		used++
		if u.user != "" && !slices.Contains(by, u.user) {
			by = append(by, u.user)
		}
	}
	if used == 0 {
		return strings.Join(append(lines, "Nothing uses it."), "\n\n")
	}
	const limit = 6
	if len(by) > limit {
		by = append(by[:limit:limit], fmt.Sprintf("%d more", len(by)-limit))
	}
	return strings.Join(append(lines, fmt.Sprintf("Used in %s by %s", textfmt.Count(used, "place"), strings.Join(by, ", "))), "\n\n")
}

// describeLocation returns the file and line of a name, relative to the document.
func (a *analysis) describeLocation(u nameUse) string {
	name := u.file.Path
	if rel, err := filepath.Rel(filepath.Dir(a.path), u.path); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return fmt.Sprintf("%s:%d", name, a.linesOf(u.file).line(u.start)+1)
}

// sourceText returns a text of an entity as it may be shown. If it contains
// environment variables, which may be secret, that is the text in the file.
func (a *analysis) sourceText(n spec.Node, key, value string) string {
	place, ok := n.Position().Lookup(key)
	if !ok || place.Span().File == nil {
		return value
	}
	l := a.linesOf(place.Span().File)
	start, end := l.sourceOffsets(place.Span())
	if raw := l.text[start:end]; strings.Contains(raw, "${") {
		return strings.Trim(raw, `"'`)
	}
	return value
}

// entityFacts returns lines about an entity: its own settings, never secrets.
func (a *analysis) entityFacts(e spec.Entity) []string {
	var lines []string
	if v, ok := e.(*spec.Variable); ok {
		lines = append(lines, "Type `"+v.Type.String()+"`"+customTypeFields(v.Type))
	}
	if d := reflect.ValueOf(e).Elem().FieldByName("Description"); d.IsValid() && d.Kind() == reflect.String && d.String() != "" {
		lines = append(lines, a.sourceText(e, "description", d.String()))
	}
	if describe := a.kindFacts()[e.Kind()]; describe != nil {
		lines = append(lines, describe(e)...)
	}
	return lines
}

// kindFacts returns the functions that describe the entities of a kind. For other
// kinds the description is all.
func (a *analysis) kindFacts() map[spec.Kind]func(spec.Entity) []string {
	return map[spec.Kind]func(spec.Entity) []string{
		spec.KindMemory: func(e spec.Entity) []string { return []string{memoryText(e.(*spec.Memory))} },
		spec.KindModel:  func(e spec.Entity) []string { return []string{a.modelFact(e.(spec.ModelEntity))} },
		spec.KindTool:   func(e spec.Entity) []string { return a.toolFacts(e.(spec.Tool)) },
		spec.KindType: func(e spec.Entity) []string {
			return []string{strings.TrimSpace(customTypeFields(spec.Type{Custom: e.(*spec.CustomType)}))}
		},
		spec.KindFlow: func(e spec.Entity) []string {
			f := e.(*spec.Flow)
			return []string{signature(variablesOf(f.Inputs), variablesOf(f.Outputs))}
		},
	}
}

// toolFacts returns the address that an API tool calls, and the signature.
func (a *analysis) toolFacts(t spec.Tool) []string {
	inputs, outputs := t.Common().Inputs, t.Common().Outputs
	if api, ok := t.(*spec.APITool); ok {
		return []string{fmt.Sprintf("`%s %s`", api.Method, a.sourceText(api, "endpoint", api.Endpoint)), signature(inputs, outputs)}
	}
	return []string{signature(inputs, outputs)}
}

// memoryText returns the policy of a memory with its limits.
func memoryText(m *spec.Memory) string {
	row, _ := m.Row()
	var limits []string
	for _, l := range row.Limits {
		limits = append(limits, fmt.Sprintf("`%s` %s", l.Key, textfmt.Number(m.Limit(l.Key))))
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

// modelFact returns the provider of a model and its id there.
func (a *analysis) modelFact(e spec.ModelEntity) string {
	m := e.Base()
	text := fmt.Sprintf("Provider `%s`", m.Provider)
	if m.ModelID != "" {
		text += fmt.Sprintf(", model `%s`", a.sourceText(m, "model_id", m.ModelID))
	}
	if embedding, ok := e.(*spec.EmbeddingModel); ok {
		text += fmt.Sprintf(", %d dimensions", embedding.Dimensions)
	}
	return text
}

func signature(inputs, outputs []*spec.Variable) string {
	return fmt.Sprintf("Inputs: %s; outputs: %s", describeVariables(inputs), describeVariables(outputs))
}

func describeVariables(variables []*spec.Variable) string {
	if len(variables) == 0 {
		return "none"
	}
	var all []string
	for _, v := range variables {
		all = append(all, fmt.Sprintf("`%s: %s`", v.ID, v.Type))
	}
	return strings.Join(all, ", ")
}

// customTypeFields lists the fields of a custom type as YAML.
func customTypeFields(t spec.Type) string {
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

// presentation is how editors show entities of a kind.
type presentation struct {
	symbol     int // protocol.SymbolKind…
	completion int // protocol.CompletionItemKind…
	token      int // index in tokenTypes
}

// kindPresentations returns the presentation of each kind of entity. Kinds that are
// not listed have the default one.
var kindPresentations = sync.OnceValue(func() map[spec.Kind]presentation {
	return map[spec.Kind]presentation{
		spec.KindApplication: {protocol.SymbolKindModule, protocol.CompletionItemKindReference, tokenNamespace},
		spec.KindFlow:        {protocol.SymbolKindFunction, protocol.CompletionItemKindFunction, tokenFunction},
		spec.KindTool:        {protocol.SymbolKindFunction, protocol.CompletionItemKindFunction, tokenFunction},
		spec.KindStep:        {protocol.SymbolKindMethod, protocol.CompletionItemKindReference, tokenFunction},
		spec.KindVariable:    {protocol.SymbolKindVariable, protocol.CompletionItemKindVariable, tokenVariable},
		spec.KindType:        {protocol.SymbolKindStruct, protocol.CompletionItemKindStruct, tokenType},
		spec.KindAuth:        {protocol.SymbolKindKey, protocol.CompletionItemKindReference, tokenNamespace},
		spec.KindMemory:      {protocol.SymbolKindField, protocol.CompletionItemKindReference, tokenNamespace},
		spec.KindModel:       {protocol.SymbolKindObject, protocol.CompletionItemKindModule, tokenNamespace},
	}
})

// presentationOf returns the presentation of a kind.
func presentationOf(kind spec.Kind) presentation {
	if p, ok := kindPresentations()[kind]; ok {
		return p
	}
	return presentation{protocol.SymbolKindObject, protocol.CompletionItemKindReference, tokenNamespace}
}
