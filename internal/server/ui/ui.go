// Package ui is the web interface: a React application in src, whose build in dist is
// embedded, compressed as it is sent, and the handler that serves it. After a change of src, npm run build
// writes dist again.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

//go:embed all:dist
var dist embed.FS

// ContentSecurityPolicy is the policy that pages of the web interface are served with.
// Attachments are shown from data and blob addresses; nothing else comes from outside.
const ContentSecurityPolicy = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
	"base-uri 'self'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// baseElement is what the build has in the page in place of the real address.
const baseElement = `<base href="./" />`

// Handler returns a handler that serves the web interface below the path at which it
// is mounted. It answers GET and HEAD for files of the build and for the addresses of
// pages, and 404 for everything else. It is safe for concurrent use.
func Handler() http.Handler {
	files, err := readFiles(dist)
	if err != nil {
		panic(fmt.Sprintf("ui: the embedded build is incomplete: %v", err)) // a defect of the binary
	}
	return &handler{files: files}
}

type handler struct{ files map[string]*file }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, problem.New(http.StatusMethodNotAllowed, "method_not_allowed", "the method %s is not allowed here", r.Method))
		return
	}
	escaped := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	if depth, ok := pageDepth(escaped); ok {
		h.servePage(w, r, depth)
		return
	}
	f, ok := h.files[escaped]
	if !ok || escaped == "index.html" {
		problem.Write(w, problem.New(http.StatusNotFound, "not_found", "nothing is served at this path"))
		return
	}
	setHeaders(w.Header(), escaped)
	f.serve(w, r)
}

// servePage serves the page with the address of the application relative to it, so
// that it also works behind a proxy that adds a prefix.
func (h *handler) servePage(w http.ResponseWriter, r *http.Request, depth int) {
	base := "./"
	if depth > 0 {
		base = strings.Repeat("../", depth)
	}
	page := h.files["index.html"].content()
	page = bytes.Replace(page, []byte(baseElement), []byte(`<base href="`+base+`" />`), 1)
	setHeaders(w.Header(), "index.html")
	w.Header().Set("Content-Security-Policy", ContentSecurityPolicy)
	newFile("index.html", page, false).serve(w, r)
}

// setHeaders sets how a file may be used and stored. Names of files in assets contain
// a hash of their content; other files are validated by their ETag.
func setHeaders(h http.Header, name string) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(name, "assets/") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		return
	}
	h.Set("Cache-Control", "no-cache")
}

// pages has the addresses of pages: the first segment, and how many follow at least
// and at most. src/lib/router.tsx has the same list.
var pages = map[string]struct{ least, most int }{
	"chat":    {1, 2},
	"form":    {1, 1},
	"batch":   {1, 1},
	"graph":   {1, 1},
	"history": {1, 1},
	"trace":   {1, 1},
}

// pageDepth returns how many folders the address of a page is below the root, and
// whether the escaped path is such an address.
func pageDepth(escaped string) (depth int, ok bool) {
	if escaped == "" {
		return 0, true
	}
	first, rest, _ := strings.Cut(escaped, "/")
	p, ok := pages[first]
	if !ok || rest == "" {
		return 0, false
	}
	segments := strings.Split(rest, "/")
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return 0, false
		}
	}
	return len(segments), len(segments) >= p.least && len(segments) <= p.most
}

// readFiles reads all files below dist, by their path in it.
func readFiles(build fs.FS) (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(build, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(build, name)
		name, isZipped := strings.CutSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		files[name] = newFile(name, content, isZipped)
		return err
	})
	if err == nil && files["index.html"] == nil {
		err = fmt.Errorf("index.html: %w", fs.ErrNotExist)
	}
	return files, err
}

// contentTypes has the types that the system's table may lack or have differently.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
}

func contentType(name string) string {
	ext := path.Ext(name)
	if t, ok := contentTypes[ext]; ok {
		return t
	}
	if t := mime.TypeByExtension(ext); t != "" {
		return t
	}
	return "application/octet-stream"
}

// write writes a body with its length; the answer to HEAD has only the headers.
func write(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) //nolint:gosec // a file of the program; it fails only if the client is gone
	}
}

// file is a file of the build.
type file struct {
	content func() []byte
	zipped  []byte // the content in gzip; nil if the build does not compress it
	kind    string // content type
	etag    string
}

func newFile(name string, data []byte, isZipped bool) *file {
	sum := sha256.Sum256(data)
	f := &file{kind: contentType(name), etag: hex.EncodeToString(sum[:12]), content: func() []byte { return data }}
	if isZipped {
		f.zipped = data
		f.content = sync.OnceValue(func() []byte { return unzip(data) })
	}
	return f
}

// unzip returns a file of the build in plain, for the few clients that do not accept gzip.
func unzip(data []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(z)
	}
	if err != nil {
		panic(fmt.Sprintf("ui: the embedded build is damaged: %v", err)) // a defect of the binary
	}
	return data
}

// serve answers with the file in the best coding that the client accepts, or with 304
// if the client has it.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	etag := `"` + f.etag + `"`
	h.Set("Vary", "Accept-Encoding")
	zip := f.zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding"))
	if zip {
		etag = `"` + f.etag + `-gzip"`
	}
	h.Set("ETag", etag)
	if hasETag(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	if !zip {
		write(w, r, f.content())
		return
	}
	h.Set("Content-Encoding", "gzip")
	write(w, r, f.zipped)
}

// acceptsGzip reports whether an Accept-Encoding header allows gzip.
func acceptsGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		name = strings.TrimSpace(name)
		if name != "gzip" && name != "*" {
			continue
		}
		weight = strings.ReplaceAll(weight, " ", "")
		return !strings.HasPrefix(weight, "q=0") || strings.Trim(weight, "q=0.") != ""
	}
	return false
}

// hasETag reports whether an If-None-Match header has the tag of a file, in any coding.
func hasETag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate == `"`+tag+`"` || candidate == `"`+tag+`-gzip"` {
			return true
		}
	}
	return false
}
