package lsp

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

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
