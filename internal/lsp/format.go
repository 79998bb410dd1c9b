package lsp

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/yamlformat"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// format handles textDocument/formatting.
func (s *server) format(_ context.Context, p protocol.TextDocumentParams) ([]protocol.TextEdit, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return nil, err
	}
	if len(s.workspace.rootsOf(d.path)) == 0 {
		return []protocol.TextEdit{}, nil // not a qtype document
	}
	formatted, err := yamlformat.Format(d.text)
	if err != nil {
		return nil, requestFailed("%v", err)
	}
	return changedLines(d, formatted), nil
}

// changedLines returns one edit of the lines that differ, or none.
func changedLines(d *document, formatted string) []protocol.TextEdit {
	if formatted == d.text {
		return []protocol.TextEdit{}
	}
	before, after := strings.SplitAfter(d.text, "\n"), strings.SplitAfter(formatted, "\n")
	start := 0
	for len(before) > 1 && len(after) > 1 && before[0] == after[0] {
		start += len(before[0])
		before, after = before[1:], after[1:]
	}
	end := len(d.text)
	for len(before) > 1 && len(after) > 1 && before[len(before)-1] == after[len(after)-1] {
		end -= len(before[len(before)-1])
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	return []protocol.TextEdit{{Range: d.rangeOf(start, end), NewText: strings.Join(after, "")}}
}

// codeActions handles textDocument/codeAction.
func (s *server) codeActions(ctx context.Context, p protocol.CodeActionParams) ([]protocol.CodeAction, error) {
	actions := []protocol.CodeAction{}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return actions, err
	}
	if len(p.Context.Only) > 0 && !slices.ContainsFunc(p.Context.Only, func(k string) bool {
		return k == "" || k == protocol.CodeActionQuickFix || strings.HasPrefix(k, protocol.CodeActionQuickFix+".")
	}) {
		return actions, nil
	}
	titles := map[string]bool{}
	for _, root := range s.workspace.rootsOf(d.path) {
		a := s.workspace.analyze(ctx, root)
		if a == nil {
			continue
		}
		for _, f := range a.diagnostics {
			if a.pathOf(f.Span.File) != d.path || !a.rangeOf(f.Span).Overlaps(p.Range) {
				continue
			}
			for _, action := range s.quickFixes(a, d, f) {
				if key := fmt.Sprint(action.Title, a.rangeOf(f.Span)); !titles[key] {
					titles[key] = true
					actions = append(actions, action)
				}
			}
		}
	}
	return actions, nil
}

// quickFixes returns the actions that resolve a diagnostic.
func (s *server) quickFixes(a *analysis, d *document, f diag.Diagnostic) []protocol.CodeAction {
	about := []protocol.Diagnostic{s.diagnostic(a, f)}
	made := protocol.CodeAction{Kind: protocol.CodeActionQuickFix, Diagnostics: about, IsPreferred: true}
	var actions []protocol.CodeAction
	switch {
	case len(f.Fixes) > 0:
		edits := map[string][]protocol.TextEdit{}
		for _, one := range f.Fixes {
			path := a.pathOf(one.Span.File)
			edits[path] = append(edits[path], protocol.TextEdit{Range: a.rangeOf(one.Span), NewText: one.NewText})
		}
		made.Title, made.Edit = fixTitle(f), s.workspaceEdit(edits)
		actions = append(actions, made)
	case f.Suggestion != "":
		made.Title = "Replace with " + f.Suggestion
		made.Edit = s.workspaceEdit(map[string][]protocol.TextEdit{d.path: {{Range: a.rangeOf(f.Span), NewText: s.replacement(a, f)}}})
		actions = append(actions, made)
	}
	if f.Severity == diag.Warning && !insideText(d, a.rangeOf(f.Span)) {
		actions = append(actions, s.ignoreAction(a, d, f, about))
	}
	return actions
}

// fixTitle returns the title of the action that applies the fixes of a diagnostic.
func fixTitle(f diag.Diagnostic) string {
	switch fix := f.Fixes[0]; {
	case len(f.Fixes) > 1:
		return "Fix: " + f.Message
	case fix.NewText == "":
		return "Remove it"
	case fix.Span.Start == fix.Span.End:
		return "Insert " + strings.TrimSpace(fix.NewText)
	default:
		return "Replace with " + strings.TrimSpace(fix.NewText)
	}
}

// ignoreAction inserts a comment that suppresses the diagnostic above its line.
func (s *server) ignoreAction(a *analysis, d *document, f diag.Diagnostic, about []protocol.Diagnostic) protocol.CodeAction {
	line := a.rangeOf(f.Span).Start.Line
	text := d.text[d.starts[line]:d.lineEnd(line)]
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	at := protocol.Position{Line: line}
	return protocol.CodeAction{Title: "Ignore " + f.Code + " here", Kind: protocol.CodeActionQuickFix, Diagnostics: about,
		Edit: s.workspaceEdit(map[string][]protocol.TextEdit{d.path: {{Range: protocol.Range{Start: at, End: at}, NewText: indent + "# qtype:ignore " + f.Code + "\n"}}})}
}

// insideText reports whether the line of a range starts within a scalar or
// brackets, where an inserted line would not be a comment.
func insideText(d *document, at protocol.Range) bool {
	start := d.starts[min(at.Start.Line, len(d.starts)-1)]
	inside := false
	d.outline().Walk(func(n *outline.Node) {
		if (n.Kind == outline.Scalar || n.Flow) && n.Start < start && start <= n.End {
			inside = true
		}
	})
	return inside
}

// replacement returns the suggestion in the quotes of the text that it replaces.
func (s *server) replacement(a *analysis, f diag.Diagnostic) string {
	l := a.linesOf(f.Span.File)
	start, end := l.sourceOffsets(f.Span)
	written := l.text[start:end]
	for _, q := range []string{`"`, "'"} {
		if len(written) >= 2 && strings.HasPrefix(written, q) && strings.HasSuffix(written, q) && !strings.HasPrefix(f.Suggestion, q) && isPlainID(f.Suggestion) {
			return q + f.Suggestion + q
		}
	}
	return f.Suggestion
}

// setVariables returns the environment variables that are set for a document, without
// their values.
func (w *workspace) setVariables(root string) []loader.SetVariable {
	if w.isolated {
		return nil
	}
	return loader.SetVariables(root, loader.Options{})
}

// environmentUses returns the environment variables in the values of a document and its
// includes. The offsets are those in the decoded texts.
func (s *syntaxIndex) environmentUses() []loader.Variable {
	var all []loader.Variable
	for _, path := range slices.Sorted(maps.Keys(s.words)) {
		if root := s.read(path); root != nil {
			root.Walk(func(n *outline.Node) {
				if n.Kind == outline.Scalar {
					all = append(all, loader.Variables(n.Text)...)
				}
			})
		}
	}
	return all
}

// environmentText describes the environment variable at an offset and returns its range;
// the text is empty if there is none.
func (s *server) environmentText(root string, syntax *syntaxIndex, d *document, at int) (string, *protocol.Range) {
	m := syntax.at(d.path, at)
	if m == nil || m.end > len(d.text) {
		return "", nil
	}
	all := loader.Variables(d.text[m.start:m.end])
	i := slices.IndexFunc(all, func(v loader.Variable) bool { return m.start+v.Start <= at && at < m.start+v.End })
	if i < 0 {
		return "", nil
	}
	v := all[i]
	uses := 0
	for _, u := range syntax.environmentUses() {
		if u.Name == v.Name {
			uses++
		}
	}
	lines := []string{fmt.Sprintf("**%s** — environment variable", v.Name)}
	if !s.workspace.isolated {
		lines = append(lines, stateText(s.workspace.setVariables(root), v, root))
	}
	if v.HasDefault {
		lines = append(lines, "Default: `"+v.Default+"`")
	}
	r := d.rangeOf(m.start+v.Start, m.start+v.End)
	return strings.Join(append(lines, "Used in "+textfmt.Count(uses, "place")), "\n\n"), &r
}

// stateText reports where a variable is set.
func stateText(set []loader.SetVariable, v loader.Variable, root string) string {
	i := slices.IndexFunc(set, func(s loader.SetVariable) bool { return s.Name == v.Name })
	switch {
	case i >= 0:
		return "Set " + placeText(set[i], root)
	case v.HasDefault:
		return "Not set; the default is used"
	}
	return "Not set: checking gives a warning, and running is an error"
}

// placeText returns where a variable is set, the file relative to the document.
func placeText(v loader.SetVariable, root string) string {
	if v.File == "" {
		return "in the environment of the editor"
	}
	if rel, err := filepath.Rel(filepath.Dir(root), v.File); err == nil && filepath.IsLocal(rel) {
		return "in `" + rel + "`"
	}
	return "in `" + v.File + "`"
}

// proposeEnvironment proposes names after ${ and reports whether the cursor is in such a
// name. root is the document.
func (c *completer) proposeEnvironment(root string, w *workspace) bool {
	line := c.doc.starts[c.doc.line(c.offset)]
	i := strings.LastIndex(c.doc.text[line:c.offset], "${")
	if i < 0 || !c.findTarget() {
		return false
	}
	c.start, c.end = line+i+len("${"), c.offset
	if strings.ContainsAny(c.doc.text[c.start:c.offset], "}:") {
		return false
	}
	for c.end < len(c.doc.text) && strings.IndexByte("}: \t\r\n\"'", c.doc.text[c.end]) < 0 {
		c.end++
	}
	closing := "}"
	if rest := c.doc.text[c.end:]; strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, ":-") {
		closing = ""
	}
	known := map[string]bool{c.doc.text[c.start:c.end]: true}
	add := func(name, detail, order string) {
		if !known[name] && name != "" && !strings.ContainsAny(name, cursor+"${}:\n") {
			known[name] = true
			c.add(protocol.CompletionItem{Label: name, Kind: protocol.CompletionItemKindVariable, Detail: detail, SortText: order + name}, name+closing)
		}
	}
	set := w.setVariables(root)
	for _, u := range c.syntax.environmentUses() {
		add(u.Name, stateText(set, u, root), "0")
	}
	for _, v := range set {
		order := "1"
		if v.File == "" {
			order = "2"
		}
		add(v.Name, "Set "+placeText(v, root), order)
	}
	return true
}
