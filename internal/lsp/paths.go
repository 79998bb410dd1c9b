package lsp

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

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
