package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
)

// settings are the user's settings in the editor. Unknown keys, and a value that
// is not an object, belong to other servers and are ignored.
type settings struct {
	RemoteIncludes *bool // read remote includes; nil if not set
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *settings) UnmarshalJSON(raw []byte) error {
	var known struct {
		RemoteIncludes json.RawMessage `json:"remoteIncludes"`
	}
	if json.Unmarshal(raw, &known) != nil || len(known.RemoteIncludes) == 0 {
		return nil //nolint:nilerr // no settings of this server
	}
	if json.Unmarshal(known.RemoteIncludes, &s.RemoteIncludes) != nil {
		return invalidParams("the setting remoteIncludes must be true or false, not %s", known.RemoteIncludes)
	}
	return nil
}

// didChangeConfigurationParams are the parameters of workspace/didChangeConfiguration.
type didChangeConfigurationParams struct {
	Settings allSettings `json:"settings"`
}

// allSettings are the settings of all servers.
type allSettings struct {
	Qtype settings `json:"qtype"`
}

// UnmarshalJSON accepts values that are not objects: some editors send [] for none.
func (s *allSettings) UnmarshalJSON(raw []byte) error {
	type plain allSettings
	var invalid *jsonrpc2.Error
	if err := json.Unmarshal(raw, (*plain)(s)); errors.As(err, &invalid) {
		return invalid
	}
	return nil
}

// didChangeConfiguration applies changed settings. An invalid one is shown to the
// user: a notification has no response.
func (s *server) didChangeConfiguration(ctx context.Context, raw json.RawMessage) {
	p, err := decodeParams[didChangeConfigurationParams](raw)
	if invalid := new(jsonrpc2.Error); errors.As(err, &invalid) {
		s.publisher.call(ctx, "window/showMessageRequest",
			encode(protocol.ShowMessageRequestParams{Type: protocol.MessageTypeError, Message: "qtype: " + invalid.Message}))
		return
	}
	if s.applySettings(p.Settings.Qtype) {
		s.workspace.remoteChanged("")
		s.recheck(ctx)
	}
}

// applySettings applies settings and reports whether one changed.
func (s *server) applySettings(chosen settings) bool {
	return chosen.RemoteIncludes != nil && s.workspace.remote.setEnabled(*chosen.RemoteIncludes)
}

// encode encodes parameters of requests to the editor, which cannot fail.
func encode[P any](params P) json.RawMessage {
	raw, _ := json.Marshal(params)
	return raw
}

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

// pathOf returns the loader's name for the document of a URI: an absolute path for
// a file, otherwise the URI, as for a document without a file.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
		if u.Host != "" {
			path = "//" + u.Host + u.Path
		}
	}
	return filepath.Clean(filepath.FromSlash(path))
}

// uriOf returns the URI of a path. A URI is returned unchanged.
func uriOf(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// isRemote reports whether an include is remote.
func isRemote(path string) bool {
	scheme, _, found := strings.Cut(path, "://")
	return found && len(scheme) > 1 && !strings.ContainsAny(scheme, `/\`)
}

// includePath returns the path or address of an include in the file from.
func includePath(from, target string) string {
	if isRemote(from) {
		return remotefs.Join(from, target)
	}
	target = strings.TrimPrefix(target, "file://")
	if filepath.IsAbs(target) || isRemote(target) {
		return target
	}
	return filepath.Join(filepath.Dir(from), target)
}
