package lsp

import (
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// Limits of the search for documents that include a file.
const (
	maxScanned   = 20_000
	maxDocuments = 2_000
)

// isDocumentName reports whether a file name is that of a document.
func isDocumentName(path string) bool {
	return strings.HasSuffix(path, ".qtype.yaml") || strings.HasSuffix(path, ".qtype.yml")
}

// rootsOf returns the documents as part of which a file is checked: those that
// include it, otherwise the file itself. It is empty for a file that is not a
// document.
func (w *workspace) rootsOf(path string) []string {
	if w.lang().kindOf(path) != nil {
		return []string{path}
	}
	w.scan()
	includers := w.includers()
	var found []string
	for from, all := range includers {
		if from != path && slices.Contains(all, path) {
			found = append(found, from)
		}
	}
	// A document that is itself included by another one of them is checked there.
	top := slices.DeleteFunc(slices.Clone(found), func(r string) bool {
		return slices.ContainsFunc(found, func(other string) bool {
			return other != r && slices.Contains(includers[other], r) && !slices.Contains(includers[r], other)
		})
	})
	slices.Sort(top)
	if len(top) == 0 && w.looksLikeDocument(path) {
		return []string{path}
	}
	return top
}

// includers maps documents to the files that they read.
func (w *workspace) includers() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string][]string{}
	for from, to := range w.includes {
		if w.docs[from] == nil {
			all[from] = to
		}
	}
	for from, r := range w.roots {
		if r.latest == nil || w.docs[from] == nil || w.lang().kindOf(from) != nil {
			continue
		}
		for to := range r.latest.requested {
			all[from] = append(all[from], to)
		}
	}
	return all
}

// looksLikeDocument reports whether an open file is a document, by its name or
// content: editors may send every YAML file that they open.
func (w *workspace) looksLikeDocument(path string) bool {
	d := w.document(path)
	if d == nil {
		return false
	}
	if isDocumentName(path) || d.lang == "qtype" || strings.TrimSpace(d.text) == "" {
		return true
	}
	root := d.outline()
	if root.Kind == outline.Sequence {
		return slices.ContainsFunc(root.Items, func(n *outline.Node) bool { return n.Get("id") != nil })
	}
	known := w.lang().structs[reflect.TypeFor[spec.Application]()]
	return slices.ContainsFunc(root.Pairs, func(p *outline.Pair) bool { return known.byName[p.Key] != nil && p.Key != "description" })
}

// scan searches the folders for documents that include others.
func (w *workspace) scan() {
	w.scanning.Lock()
	defer w.scanning.Unlock()
	w.mu.Lock()
	folders := w.foldersOfDocuments()
	done := w.scanned || w.isolated
	w.scanned = true
	w.mu.Unlock()
	if done {
		return
	}
	found := map[string][]string{}
	for _, path := range filesIn(folders, isDocumentName) {
		text, ok := w.text(path)
		if !ok || !strings.Contains(text, "!include") {
			continue
		}
		for _, i := range indexSyntax(w.lang(), path, w.outlineOf).includes {
			found[path] = append(found[path], i.to)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.includes = found
}

// skip continues a walk without a folder or file.
func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// filesIn lists the files in folders whose paths are wanted, except in hidden folders and those of
// packages.
func filesIn(folders []string, isWanted func(path string) bool) []string {
	var found []string
	seen := 0
	for _, folder := range folders {
		// The trailing separator makes a link to a folder the folder itself.
		_ = filepath.WalkDir(folder+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
			path = filepath.Clean(path)
			seen++
			switch {
			case err != nil:
				return skip(d) // deleted, or no permission
			case seen > maxScanned || len(found) > maxDocuments:
				return filepath.SkipAll
			case d.IsDir() && path != filepath.Clean(folder) && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
				return filepath.SkipDir
			case !d.IsDir() && isWanted(path):
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}
