package lsp

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// pathOf is what the loader calls the document of a URI: an absolute path for a
// file, the URI itself for anything else, such as a document without a file.
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

// uriOf is the URI of a path; what is a URI already stays one.
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

// isRemote tells whether an include is of another machine.
func isRemote(path string) bool {
	scheme, _, found := strings.Cut(path, "://")
	return found && len(scheme) > 1 && !strings.ContainsAny(scheme, `/\`)
}

// included is where an include of a file leads.
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
