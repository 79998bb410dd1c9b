package lsp

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec/diag"
)

// prepareRename handles textDocument/prepareRename.
func (s *server) prepareRename(ctx context.Context, p protocol.TextDocumentPositionParams) (*protocol.PrepareRenameResult, error) {
	target, err := s.renameable(ctx, p)
	if err != nil {
		return nil, err
	}
	return &protocol.PrepareRenameResult{Range: target.document.rangeOf(target.nameUse.start, target.nameUse.end), Placeholder: target.nameUse.entity.EntityID()}, nil
}

// renameable returns the target of a rename, or an error if there is none.
func (s *server) renameable(ctx context.Context, p protocol.TextDocumentPositionParams) (target, error) {
	target, err := s.targetAt(ctx, p)
	switch {
	case err != nil:
		return target, err
	case target.nameUse == nil && s.lang().kindOf(target.document.path) != nil:
		return target, s.notRenameable(ctx, target)
	case target.nameUse == nil && target.analysis != nil && !target.analysis.isReadable():
		return target, requestFailed("fix the syntax errors first")
	case target.nameUse == nil:
		return target, requestFailed("there is no id that can be renamed here")
	}
	return target, nil
}

// notRenameable returns why nothing can be renamed in a file of tests or of an evaluation.
func (s *server) notRenameable(ctx context.Context, t target) error {
	path := t.document.path
	m := indexSyntax(s.lang(), path, s.workspace.outlineOf).at(path, t.offset)
	if a, u := s.namedTarget(ctx, path, m); u != nil {
		return requestFailed("rename %q in %s, which declares it", m.text, a.describeLocation(*u))
	}
	return requestFailed("there is no id that can be renamed here")
}

// plainIDPattern matches ids that need no quotes and may be used in a template.
var plainIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_.-]*$`) })

// isPlainID reports whether YAML reads an id as a string without quotes. The letters y and n
// are strings, as in QType (Python).
func isPlainID(id string) bool {
	switch strings.ToLower(id) {
	case "true", "false", "yes", "no", "on", "off", "null":
		return false
	}
	return plainIDPattern().MatchString(id)
}

// rename handles textDocument/rename, in includes and in files of tests and evaluations too. The edited documents are
// checked first: a rename that would change the meaning of another name is
// rejected.
func (s *server) rename(ctx context.Context, p protocol.RenameParams) (*protocol.WorkspaceEdit, error) {
	target, err := s.renameable(ctx, p.TextDocumentPositionParams)
	if err != nil {
		return nil, err
	}
	old := target.nameUse.entity.EntityID()
	switch {
	case p.NewName == old:
		return &protocol.WorkspaceEdit{}, nil
	case !isPlainID(p.NewName):
		return nil, requestFailed("invalid id %q: use letters, digits and _, and start with a letter", p.NewName)
	}
	edits := map[string][]span{}
	readers := s.dependents(ctx, target)
	for _, a := range readers {
		if err := collectEdits(a, target.nameUse.id, old, edits); err != nil {
			return nil, err
		}
	}
	if err := s.collectKindEdits(ctx, readers, target.nameUse, edits); err != nil {
		return nil, err
	}
	for path := range edits {
		if isRemote(path) && s.workspace.document(path) == nil {
			return nil, requestFailed("cannot rename %q: %s refers to it and cannot be edited here", old, path)
		}
	}
	for _, a := range readers {
		if err := s.tryRename(ctx, a, target.nameUse, edits, p.NewName); err != nil {
			return nil, err
		}
	}
	return s.renameEdit(edits, p.NewName), nil
}

// span is a range of bytes in a file.
type span struct{ start, end int }

// collectEdits adds the occurrences of an entity's name. Each must be the literal
// id: an id that contains an environment variable cannot be replaced.
func collectEdits(a *analysis, id declaration, old string, edits map[string][]span) error {
	for _, u := range a.index().usesOf(id) {
		if written := a.linesOf(u.file).text[u.start:u.end]; written != old {
			return requestFailed("cannot rename %q: it is written as %s at %s", old, written, a.describeLocation(u))
		}
		at := span{u.start, u.end}
		if !slices.Contains(edits[u.path], at) {
			edits[u.path] = append(edits[u.path], at)
		}
	}
	for _, all := range edits {
		slices.SortStableFunc(all, func(x, y span) int { return x.start - y.start })
	}
	return nil
}

// tryRename checks a document as it would be after the rename: it must have no new
// errors, and every name must refer to the same entity as before.
func (s *server) tryRename(ctx context.Context, a *analysis, renamed *nameUse, edits map[string][]span, name string) error {
	texts := map[string]string{}
	for path, all := range edits {
		if text, ok := s.workspace.text(path); ok {
			texts[path] = replaceAll(text, all, name)
		}
	}
	after := s.workspace.loadWith(ctx, a.path, func(path string) (io.ReadCloser, bool) {
		text, held := texts[path]
		if !held {
			d := s.workspace.document(path)
			if held = d != nil; held {
				text = d.text
			}
		}
		return io.NopCloser(strings.NewReader(text)), held
	})
	if f, ok := newError(a.diagnostics, after.diagnostics); ok {
		if f.Code == "QT201" {
			return requestFailed("%s", f.Message)
		}
		return requestFailed("cannot rename %q to %q: %s", renamed.entity.EntityID(), name, f.Message)
	}
	if len(after.index().uses) > len(a.index().uses) {
		return requestFailed("cannot rename %q to %q: an undefined name would then refer to this %s", renamed.entity.EntityID(), name, renamed.entity.Kind())
	}
	if !sameLinks(a.index(), after.index()) {
		return requestFailed("cannot rename %q to %q: references would refer to another %s with that name", renamed.entity.EntityID(), name, renamed.entity.Kind())
	}
	return nil
}

// replaceAll replaces sorted ranges by a name.
func replaceAll(text string, all []span, name string) string {
	var b strings.Builder
	last := 0
	for _, at := range all {
		if at.start < last || at.end > len(text) {
			continue
		}
		b.WriteString(text[last:at.start])
		b.WriteString(name)
		last = at.end
	}
	b.WriteString(text[last:])
	return b.String()
}

// newError returns an error with a code that occurs more often than before.
func newError(before, after diag.List) (diag.Diagnostic, bool) {
	counts := map[string]int{}
	for _, f := range before {
		counts[f.Code]++
	}
	for _, f := range after {
		if counts[f.Code]--; counts[f.Code] < 0 && f.Severity == diag.Error {
			return f, true
		}
	}
	return diag.Diagnostic{}, false
}

// sameLinks reports whether the names in two versions of a document refer to the
// same entities, in order.
func sameLinks(before, after *nameIndex) bool {
	if len(before.uses) != len(after.uses) {
		return false
	}
	number := func(x *nameIndex) []int {
		seen := map[declaration]int{}
		order := make([]int, len(x.uses))
		for i, u := range x.uses {
			if _, known := seen[u.id]; !known {
				seen[u.id] = len(seen)
			}
			order[i] = seen[u.id]
		}
		return order
	}
	return slices.Equal(number(before), number(after))
}

// renameEdit returns the edits that replace ranges by a name.
func (s *server) renameEdit(edits map[string][]span, name string) *protocol.WorkspaceEdit {
	made := map[string][]protocol.TextEdit{}
	for path, all := range edits {
		text, ok := s.workspace.text(path)
		if !ok {
			continue
		}
		l := newLineIndex(text)
		for _, at := range all {
			made[path] = append(made[path], protocol.TextEdit{Range: l.rangeOf(at.start, at.end), NewText: name})
		}
	}
	return s.workspaceEdit(made)
}

// workspaceEdit returns the edits in the form that the editor prefers.
func (s *server) workspaceEdit(byPath map[string][]protocol.TextEdit) *protocol.WorkspaceEdit {
	edit := &protocol.WorkspaceEdit{}
	paths := make([]string, 0, len(byPath))
	for path := range byPath {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	versioned := s.editor.Capabilities.Workspace.WorkspaceEdit.DocumentChanges
	for _, path := range paths {
		if !versioned {
			if edit.Changes == nil {
				edit.Changes = map[string][]protocol.TextEdit{}
			}
			edit.Changes[s.workspace.uri(path)] = byPath[path]
			continue
		}
		var one protocol.TextDocumentEdit
		one.TextDocument.URI = s.workspace.uri(path)
		if d := s.workspace.document(path); d != nil {
			one.TextDocument.Version = &d.version
		}
		one.Edits = byPath[path]
		edit.DocumentChanges = append(edit.DocumentChanges, one)
	}
	return edit
}
