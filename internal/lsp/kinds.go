package lsp

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// kindOf returns the kind of a file that is not a document; nil for documents.
func (l *language) kindOf(path string) *lint.Kind {
	i := slices.IndexFunc(l.kinds, func(k *lint.Kind) bool { return k.Has(path) && filepath.IsAbs(path) })
	if i < 0 {
		return nil
	}
	return l.kinds[i]
}

// documentOf returns the path of the document that a file of a kind is about.
func (w *workspace) documentOf(k *lint.Kind, path string) string {
	return k.Document(path, w.outlineOf(path).GetText("app"))
}

// checkKind sets the diagnostics of a file that is not a document.
func (a *analysis) checkKind(ctx context.Context, k *lint.Kind, opts loader.Options) {
	_, list := k.Check(ctx, a.path, opts)
	a.doc = &spec.Document{}
	var elsewhere diag.List
	for _, d := range list {
		switch {
		case a.pathOf(d.Span.File) == a.path:
			a.diagnostics.Add(d)
		case d.Severity == diag.Error:
			elsewhere.Add(d)
		}
	}
	if len(elsewhere) > 0 {
		first := elsewhere[0]
		at := source.Span{File: &source.File{Path: a.path}, Start: source.Pos{Line: 1, Column: 1}, End: source.Pos{Line: 1, Column: 1}}
		problem := diag.Diagnostic{Code: first.Code, Severity: diag.Warning, Span: at,
			Message: filepath.Base(a.pathOf(first.Span.File)) + " has errors; this file is checked with it once they are corrected"}
		a.diagnostics.Add(problem.WithRelated(first.Span, first.Message))
	}
}

// readKind reads a file that is not a document, and the document that it is about.
func (s *syntaxIndex) readKind(k *lint.Kind, n *outline.Node) {
	s.readValue(n, reflect.TypeOf(k.Content), nil, nil)
	path := k.Document(s.path, n.GetText("app"))
	if o := s.read(path); o != nil && !holdsPath(s.trail, path) {
		s.path, s.trail = path, append(s.trail, path)
		s.readDocument(o, nil)
	}
}

// Values of the tag `names` that are not kinds of entities: the inputs and outputs of the flow
// at the place, the types of metrics and the categories of attacks.
const (
	namesInputs  = "inputs"
	namesOutputs = "outputs"
	namesMetrics = "metric"
	namesAttacks = "attack"
)

// isName reports whether a word may be a name that the tag `names` declares. It accepts nil.
func (m *syntaxWord) isName() bool {
	return m != nil && m.field != nil && len(m.field.names) > 0 && (m.role == roleFreeKey || m.role == roleValue)
}

// proposeNames proposes what a text or a key of a file names in its document. It reports
// whether the word at the cursor is one.
func (c *completer) proposeNames(m *syntaxWord) bool {
	if !m.isName() || len(m.field.enum) > 0 {
		return false
	}
	isMap := m.field.goType.Kind() == reflect.Map
	switch {
	case m.role == roleFreeKey:
	case isMap && (m.goType == nil || m.goType.Kind() != reflect.Map || !c.isAloneOnLine()):
		return false // a value of the mapping
	case !isMap && m.goType != nil && m.goType.Kind() == reflect.Slice:
		return false // the list itself
	case m.goType == expressionType && !c.selectName():
		return true
	}
	if m.field.names[0] == namesInputs || m.field.names[0] == namesOutputs {
		c.proposeFlowNames(m, isMap)
		return true
	}
	listed := c.listedIDs()
	for _, e := range c.syntax.entities {
		if slices.Contains(m.field.names, string(e.class.kind())) && !slices.Contains(listed, e.id) {
			c.addEntity(e)
		}
	}
	return true
}

// proposeFlowNames proposes the inputs or outputs of the flow at the cursor.
func (c *completer) proposeFlowNames(m *syntaxWord, asKeys bool) {
	there := map[string]bool{}
	if v := m.mapping.node.Get(m.field.name); asKeys && v != nil {
		for _, p := range v.Pairs {
			there[p.Key] = p != m.pair
		}
	}
	for _, name := range c.flowNames(c.syntax.flowAt(m.mapping), m.field.names[0] == namesOutputs) {
		if there[name.id] {
			continue
		}
		text := name.id
		if asKeys && (m.pair == nil || m.role != roleFreeKey || !m.pair.Colon) {
			text += ": "
		}
		c.add(protocol.CompletionItem{Label: name.id, Kind: protocol.CompletionItemKindVariable, Detail: name.detail}, text)
	}
}

// flowAt returns the id of the flow that a part of a file is about: that of the nearest key
// flow, or else the first flow of the document.
func (s *syntaxIndex) flowAt(o *mappingNode) string {
	for ; o != nil; o = o.parent {
		if id := o.node.GetText("flow"); id != "" {
			return id
		}
	}
	for _, e := range s.entities {
		if e.class.kind() == spec.KindFlow {
			return e.id
		}
	}
	return ""
}

// namedTarget returns the declaration of what a word of a file names in its document, with
// the analysis of the document; nil for none.
func (s *server) namedTarget(ctx context.Context, root string, m *syntaxWord) (*analysis, *nameUse) {
	k := s.lang().kindOf(root)
	if k == nil || !m.isName() {
		return nil, nil
	}
	a := s.workspace.analyze(ctx, s.workspace.documentOf(k, root))
	if a == nil {
		return nil, nil
	}
	isInput := m.field.names[0] == namesInputs
	for _, u := range a.index().uses {
		kind := string(u.entity.Kind())
		if u.kind == declaredName && u.entity.EntityID() == m.text &&
			(slices.Contains(m.field.names, kind) || isInput && kind == string(spec.KindVariable)) {
			return a, &u
		}
	}
	return nil, nil
}

// kindFiles lists the files of tests and of evaluations in the folders of the workspace, and the open ones.
func (w *workspace) kindFiles() []string {
	w.mu.Lock()
	folders := w.foldersOfDocuments()
	var found []string
	for path := range w.docs {
		if w.lang().kindOf(path) != nil {
			found = append(found, path)
		}
	}
	isolated := w.isolated
	w.mu.Unlock()
	if !isolated {
		found = append(found, filesIn(folders, func(path string) bool { return w.lang().kindOf(path) != nil })...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// foldersOfDocuments returns the folders of the workspace, or else those of the open documents. The caller
// holds the lock.
func (w *workspace) foldersOfDocuments() []string {
	folders := slices.Clone(w.folders)
	if len(folders) > 0 {
		return folders
	}
	for path := range w.docs {
		if filepath.IsAbs(path) && !slices.Contains(folders, filepath.Dir(path)) {
			folders = append(folders, filepath.Dir(path))
		}
	}
	return folders
}

// collectKindEdits adds the occurrences of an entity's name in the files of tests and evaluations about the
// documents.
func (s *server) collectKindEdits(ctx context.Context, readers []*analysis, renamed *nameUse, edits map[string][]span) error {
	for _, path := range s.workspace.kindFiles() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k := s.lang().kindOf(path)
		document := s.workspace.documentOf(k, path)
		i := slices.IndexFunc(readers, func(a *analysis) bool { return a.path == document })
		text, ok := s.workspace.text(path)
		if i < 0 || !ok {
			continue
		}
		syntax := indexSyntax(s.lang(), path, s.workspace.outlineOf)
		for _, m := range syntax.words[path] {
			for _, at := range readers[i].occurrences(syntax, &m, renamed, text) {
				if !slices.Contains(edits[path], at) {
					edits[path] = append(edits[path], at)
				}
			}
		}
		slices.SortFunc(edits[path], func(x, y span) int { return x.start - y.start })
		if len(edits[path]) == 0 {
			delete(edits, path)
		}
	}
	return nil
}

// occurrences returns where a word of a file of tests or of an evaluation names an entity of the document a.
func (a *analysis) occurrences(syntax *syntaxIndex, m *syntaxWord, renamed *nameUse, text string) []span {
	if !m.isName() || m.start < 0 || m.end > len(text) || m.start > m.end {
		return nil
	}
	old, names := renamed.entity.EntityID(), m.field.names
	ofFlow := names[0] == namesInputs || names[0] == namesOutputs
	switch {
	case ofFlow && !a.isNameOfFlow(syntax.flowAt(m.mapping), renamed):
		return nil
	case !ofFlow && !slices.Contains(names, string(renamed.entity.Kind())):
		return nil
	case m.goType == expressionType:
		var found []span
		for _, name := range expressionNames(text[m.start:m.end]) {
			if name.name == old {
				found = append(found, span{m.start + name.start, m.start + name.end})
			}
		}
		return found
	case m.text != old || !m.isWholeName():
		return nil
	}
	at := span{m.start, m.end}
	if written := text[at.start:at.end]; len(written) == len(old)+2 && (written[0] == '"' || written[0] == '\'') {
		at = span{at.start + 1, at.end - 1}
	}
	if text[at.start:at.end] != old {
		return nil // written with escapes
	}
	return []span{at}
}

// isWholeName reports whether a word is a name itself, and not a value of a mapping whose keys are names, or a
// part of such a value. Values of models are names as well.
func (m *syntaxWord) isWholeName() bool {
	t := m.field.goType
	if t == nil || t.Kind() != reflect.Map {
		return m.role == roleValue
	}
	if m.role == roleValue {
		return slices.Contains(m.field.names, string(spec.KindModel)) && m.goType != nil && m.goType.Kind() == reflect.String
	}
	var all *outline.Node
	if m.mapping != nil {
		all = m.mapping.node.Get(m.field.name)
	}
	return all != nil && slices.Contains(all.Pairs, m.pair)
}

// isNameOfFlow reports whether a variable is an input or output of the flow with an id.
func (a *analysis) isNameOfFlow(id string, renamed *nameUse) bool {
	x := a.index()
	for entity := range x.declarations {
		f, ok := entity.(*spec.Flow)
		if !ok || f.ID != id {
			continue
		}
		for _, ref := range slices.Concat(f.Inputs, f.Outputs) {
			if ref.To == nil {
				continue
			}
			if at, known := x.declarations[ref.To]; known && at == renamed.id {
				return true
			}
		}
	}
	return false
}

// specialType is a type of package spec with its own notation instead of that of
// its struct.
type specialType struct {
	description string // in terms of documents
	isMapping   bool   // it is a mapping, which is written below its key
	read        func(s *syntaxIndex, n *outline.Node, f *field, in *mappingNode)
}

var (
	variableRefType    = reflect.TypeFor[spec.Ref[*spec.Variable]]()
	stepRefType        = reflect.TypeFor[spec.Ref[spec.Step]]()
	storeRefType       = reflect.TypeFor[spec.Ref[*spec.Store]]()
	typeExpressionType = reflect.TypeFor[spec.Type]()
	expressionType     = reflect.TypeFor[spec.Expression]()
	documentType       = reflect.TypeFor[*spec.Document]()
)

// specialTypes returns all types with their own notation, except references.
func specialTypes() map[reflect.Type]specialType {
	return map[reflect.Type]specialType{
		typeExpressionType:                  {"a type", false, (*syntaxIndex).readTypeExpression},
		reflect.TypeFor[spec.Secret]():      {"a text or a secret", false, (*syntaxIndex).readSecret},
		reflect.TypeFor[spec.Duration]():    {"a duration", false, nil},
		reflect.TypeFor[spec.Thinking]():    {"a word or a number of tokens", false, nil},
		expressionType:                      {"an expression", false, nil},
		reflect.TypeFor[spec.Assignments](): {"a mapping of variables to expressions", true, (*syntaxIndex).readAssignments},
		reflect.TypeFor[spec.Bindings]():    {"a mapping of names to variables", true, (*syntaxIndex).readBindings},
		reflect.TypeFor[spec.Properties]():  {"a mapping of names to types", true, (*syntaxIndex).readProperties},
		reflect.TypeFor[spec.PathRef]():     {"a variable or {uri: …}", false, (*syntaxIndex).readPathRef},
		reflect.TypeFor[spec.StoreRef]():    {"the id of a store or a URL", false, (*syntaxIndex).readStoreRef},
		reflect.TypeFor[spec.Tokenizer]():   {"an encoding or the path of a file", false, nil},
		reflect.TypeFor[*spec.StepItem]():   {"a step", false, (*syntaxIndex).readStepItem},
		documentType:                        {"a document", false, func(s *syntaxIndex, n *outline.Node, _ *field, in *mappingNode) { s.readDocument(n, in) }},
	}
}

// readSpecial reads a type with its own notation and reports whether it is one.
func (s *syntaxIndex) readSpecial(n *outline.Node, t reflect.Type, f *field, in *mappingNode) bool {
	if isRef(t) {
		s.readReference(n, t, f, in)
		return true
	}
	known, ok := s.lang.specialTypes[t]
	if ok && known.read == nil || ok && known.isMapping && n.Kind == outline.Scalar {
		s.readScalar(n, t, f, in)
	} else if ok {
		known.read(s, n, f, in)
	}
	return ok
}

// readSecret reads a text or {secret_name: …}.
func (s *syntaxIndex) readSecret(n *outline.Node, f *field, in *mappingNode) {
	if n.Kind == outline.Mapping {
		t := reflect.TypeFor[spec.SecretReference]()
		s.readStruct(n, s.lang.structs[t], nil, t, f, in)
		return
	}
	s.readScalar(n, reflect.TypeFor[spec.Secret](), f, in)
}

// readStepItem reads a step or {$ref: id}.
func (s *syntaxIndex) readStepItem(n *outline.Node, f *field, in *mappingNode) {
	if n.Get("$ref") != nil {
		s.readReference(n, stepRefType, f, in)
		return
	}
	s.readValue(n, reflect.TypeFor[spec.Step](), f, in)
}

// readPathRef reads the id of a variable or {uri: …}.
func (s *syntaxIndex) readPathRef(n *outline.Node, f *field, in *mappingNode) {
	if n.Kind == outline.Mapping && n.Get("$ref") == nil {
		s.readFree(n, f, in)
		return
	}
	s.readReference(n, variableRefType, f, in)
}

// readStoreRef reads the id or URL of a store: they have the same notation.
func (s *syntaxIndex) readStoreRef(n *outline.Node, f *field, in *mappingNode) {
	s.readReference(n, storeRefType, f, in)
}

// readBindings reads a mapping of names to variables.
func (s *syntaxIndex) readBindings(n *outline.Node, f *field, in *mappingNode) {
	s.readNames(roleBinding, n, variableRefType, f, in)
}

// readProperties reads a mapping of names to types.
func (s *syntaxIndex) readProperties(n *outline.Node, f *field, in *mappingNode) {
	s.readNames(roleProperty, n, typeExpressionType, f, in)
}

// readNames reads a mapping of names to values of a type.
func (s *syntaxIndex) readNames(r role, n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.addKey(r, p, f, in)
		s.readValue(p.Value, t, f, in)
	}
}

// readAssignments reads a mapping of variables to expressions.
func (s *syntaxIndex) readAssignments(n *outline.Node, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.addWord(syntaxWord{role: roleReference, start: p.Start, end: p.End, text: p.Key, pair: p, field: f, goType: variableRefType, mapping: in})
		s.readValue(p.Value, expressionType, f, in)
	}
}

// readReference reads an id or {$ref: id}.
func (s *syntaxIndex) readReference(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.addValue(roleReference, n, t, f, in)
	case outline.Mapping:
		s.readObject(n, "$ref", t, f, in)
	}
}

// readTypeExpression reads text, list[Order]? or {element_type: …}.
func (s *syntaxIndex) readTypeExpression(n *outline.Node, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.addValue(roleType, n, typeExpressionType, f, in)
	case outline.Mapping:
		s.readObject(n, "element_type", typeExpressionType, f, in)
	}
}

// readObject reads a mapping in which one key has a value of a known type.
func (s *syntaxIndex) readObject(n *outline.Node, key string, t reflect.Type, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.addKey(roleFreeKey, p, nil, in)
		if p.Key == key {
			s.readValue(p.Value, t, f, in)
		} else {
			s.readValue(p.Value, nil, f, in)
		}
	}
}
