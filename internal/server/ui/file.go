package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
)

// file is a file of the build. It is compressed once, when it is first requested by a
// client that accepts gzip.
type file struct {
	content []byte
	kind    string // content type
	etag    string
	gzipped func() []byte // nil if compression does not make the file smaller
}

func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{content: content, kind: contentType(name), etag: hex.EncodeToString(sum[:12])}
	f.gzipped = sync.OnceValue(func() []byte { return compress(f.kind, content) })
	return f
}

// compress returns the content in gzip, nil for types that are compressed already.
func compress(kind string, content []byte) []byte {
	if strings.HasPrefix(kind, "font/") || len(content) < 512 {
		return nil
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(content)                               // a buffer accepts everything
	_ = z.Close()
	if b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

// serve answers with the file in the best coding that the client accepts, or with 304
// if the client has it.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	body, etag := f.content, `"`+f.etag+`"`
	h.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		if z := f.gzipped(); z != nil {
			body, etag = z, `"`+f.etag+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", etag)
	if hasETag(r.Header.Get("If-None-Match"), f.etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.kind)
	write(w, r, body)
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
