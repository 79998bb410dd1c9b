package server

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
)

// maxKey is the longest Idempotency-Key.
const maxKey = 255

// checkKey returns a problem for an Idempotency-Key that a client must not choose.
func checkKey(key string) error {
	switch {
	case len(key) > maxKey:
		return headerProblem("Idempotency-Key", "the key is longer than 255 bytes")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return headerProblem("Idempotency-Key", "the key has other characters than visible ASCII")
	}
	return nil
}

// headerProblem returns the problem of a wrong header.
func headerProblem(name, detail string) error {
	p := problem.New(http.StatusBadRequest, "invalid_header", "%s", detail)
	p.Errors = []problem.Field{{Pointer: "header " + name, Detail: detail}}
	return p
}

func unsupportedMedia(expected string) error {
	return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the Content-Type must be %s", expected)
}

// sessionID returns the session that a request names by header, empty for none. The
// header session_id is that of QType (Python); proxies often drop it.
func sessionID(r *http.Request) (string, error) {
	for _, name := range []string{"X-Session-Id", "session_id"} {
		if id := headerValue(r, name); id != "" {
			return id, host.CheckSession("header "+name, id)
		}
	}
	return "", nil
}

// headerValue returns a header, also one whose name is not in the canonical form.
func headerValue(r *http.Request, name string) string {
	if v := r.Header.Get(name); v != "" {
		return v
	}
	for key, values := range r.Header {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// runIDOf returns the id of the run of an idempotency key: the same key of another
// caller or for another flow is another run.
func runIDOf(p access.Principal, flow, key string) string {
	h := sha256.New()
	for _, part := range []string{p.Name, flow, key} {
		_, _ = io.WriteString(h, part+"\x00") // a hash does not fail
	}
	return "run_" + strings.ToUpper(hex.EncodeToString(h.Sum(nil)[:16]))
}

// digest identifies the content of a request.
func digest(body []byte, session string) string {
	h := sha256.New()
	h.Write(body)
	_, _ = io.WriteString(h, "\x00"+session)
	return hex.EncodeToString(h.Sum(nil))
}

// prefersAsync reports whether the client wants the run instead of its result.
func prefersAsync(r *http.Request) bool {
	for _, v := range r.Header.Values("Prefer") {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), "respond-async") {
				return true
			}
		}
	}
	return false
}
