package lsp

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
)

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
