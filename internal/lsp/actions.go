package lsp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec/diag"
)

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
