package lsp

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

// documentLinks returns the includes of a document: editors open the files.
func (s *server) documentLinks(_ context.Context, p protocol.TextDocumentParams) ([]protocol.DocumentLink, error) {
	links := []protocol.DocumentLink{}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return links, err
	}
	for _, m := range s.syntaxOf(d).words[d.path] {
		if m.role == roleInclude && m.text != "" {
			links = append(links, protocol.DocumentLink{Range: d.rangeOf(m.start, m.end), Target: s.workspace.uri(includePath(d.path, m.text))})
		}
	}
	return links, nil
}

// foldingRanges returns the values below keys and dashes that have several lines.
func (s *server) foldingRanges(_ context.Context, p protocol.TextDocumentParams) ([]protocol.FoldingRange, error) {
	folds := []protocol.FoldingRange{}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return folds, err
	}
	add := func(start int, value *outline.Node) {
		last := d.line(max(value.Start, value.Start+len(strings.TrimRight(d.text[value.Start:value.End], " \t\r\n"))-1))
		if first := d.line(start); last > first {
			folds = append(folds, protocol.FoldingRange{StartLine: first, EndLine: last})
		}
	}
	d.outline().Walk(func(n *outline.Node) {
		for _, pair := range n.Pairs {
			add(pair.Start, pair.Value)
		}
		for _, item := range n.Items {
			if !n.Flow {
				add(item.Dash, item)
			}
		}
	})
	return folds, nil
}

// proposePaths proposes the files and folders of the folder that the path of an include names so far.
func (c *completer) proposePaths(m *syntaxWord) {
	typed, _, _ := strings.Cut(m.text, cursor)
	name := strings.LastIndexByte(typed, '/') + 1
	if c.start = c.offset - len(typed[name:]); m.node.Style == outline.Plain {
		c.end = m.end - len(cursor)
	}
	folder := includePath(c.doc.path, typed[:name]+".")
	if !filepath.IsAbs(folder) || isRemote(folder) || strings.HasPrefix(typed, "~") {
		return
	}
	entries, _ := os.ReadDir(folder) // none while the folder is being typed
	for _, e := range entries {
		name := e.Name()
		switch isText := m.node.Tag == "!include_raw"; {
		case strings.HasPrefix(name, "."), filepath.Join(folder, name) == c.doc.path:
		case e.IsDir():
			c.add(protocol.CompletionItem{Label: name + "/", Kind: protocol.CompletionItemKindFolder}, name+"/")
		case isText || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml"):
			c.add(protocol.CompletionItem{Label: name, Kind: protocol.CompletionItemKindFile}, name)
		}
	}
}
