// Package redact replaces secrets in what a program writes. A Redactor learns the secrets of
// a document when they are resolved, and finds them in any of the forms in which servers,
// models and programs repeat them: in another case, in base64, URL-encoded, escaped in JSON or
// HTML, in hexadecimal digits, with white space between the characters, and cut off.
//
// Texts that ordinary words may contain are not replaced: see Add.
package redact

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Mask replaces a secret. Its length does not depend on the secret.
const Mask = "***"

// Redactor replaces secrets in texts. It is safe for concurrent use. A nil Redactor and one
// without secrets change nothing.
type Redactor struct {
	mu    sync.Mutex
	known map[string]bool
	found atomic.Pointer[patterns] // of known; nil: to be made, if stale
	stale atomic.Bool
}

// New returns a Redactor that knows no secrets.
func New() *Redactor { return &Redactor{known: map[string]bool{}} }

// add adds one text that is a secret as a whole.
func (r *Redactor) add(text string) {
	if !isDistinct(text) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known[text] {
		r.known[text] = true
		r.stale.Store(true)
	}
}

// patterns returns what is searched for; nil if there are no secrets.
func (r *Redactor) patterns() *patterns {
	if r == nil {
		return nil
	}
	if !r.stale.Load() {
		return r.found.Load()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stale.Load() {
		r.found.Store(newPatterns(r.known))
		r.stale.Store(false)
	}
	return r.found.Load()
}

// Empty reports whether no secret is known.
func (r *Redactor) Empty() bool { return r.patterns() == nil }

// String returns a text with its secrets replaced.
func (r *Redactor) String(text string) string {
	p := r.patterns()
	if p == nil || nextStart(p, text, 0) == len(text) {
		return text
	}
	out, _ := p.replace(nil, []byte(text), true)
	if len(out) == len(text) && string(out) == text {
		return text
	}
	return string(out)
}

// Bytes returns a text with its secrets replaced. The argument is not modified.
func (r *Redactor) Bytes(text []byte) []byte {
	p := r.patterns()
	if p == nil || len(text) == 0 {
		return text
	}
	out, _ := p.replace(make([]byte, 0, len(text)), text, true)
	return out
}

// Error returns an error whose text has no secrets; errors.Is and errors.As find the original.
func (r *Redactor) Error(err error) error {
	if err == nil || r.patterns() == nil {
		return err
	}
	text := err.Error()
	if shown := r.String(text); shown != text {
		return &redactedError{shown, err}
	}
	return err
}

// redactedError is an error with another text.
type redactedError struct {
	text string
	err  error
}

// Error returns the text without secrets.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error, for its type.
func (e *redactedError) Unwrap() error { return e.err }

// Panic returns a panic's value with its secrets replaced; a value without secrets is returned unchanged.
func (r *Redactor) Panic(p any) any {
	text := fmt.Sprint(p)
	if shown := r.String(text); shown != text {
		return shown
	}
	return p
}

// PanicText describes a panic where the secrets that its value may have are not known: errors of
// the Go runtime, such as an index out of range, have none, and other values are not shown.
func PanicText(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return "internal error: " + err.Error()
	}
	return "internal error"
}

// Value returns a JSON value with the secrets of its texts and keys replaced. Other values
// are returned unchanged. The argument is not modified.
func (r *Redactor) Value(v any) any {
	if r.patterns() == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return r.String(v)
	case []byte:
		return r.Bytes(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = r.Value(item)
		}
		return list
	case []string:
		list := make([]string, len(v))
		for i, item := range v {
			list[i] = r.String(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[r.String(key)] = r.Value(item)
		}
		return object
	}
	return v
}

type contextKey struct{}

// With returns a context whose documents add their secrets to r.
func With(ctx context.Context, r *Redactor) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// From returns the Redactor of a context, nil for none.
func From(ctx context.Context) *Redactor {
	r, _ := ctx.Value(contextKey{}).(*Redactor)
	return r
}

// Ensure returns the Redactor of a context, or a context with a new one.
func Ensure(ctx context.Context) (context.Context, *Redactor) {
	if r := From(ctx); r != nil {
		return ctx, r
	}
	r := New()
	return With(ctx, r), r
}

// NamesSecret reports whether the value of a key is usually a secret: api_key,
// client_secret, X-API-Key, DB_PASSWORD, Authorization.
func NamesSecret(key string) bool {
	if lower := strings.ToLower(key); strings.HasSuffix(lower, "-key") && lower != "idempotency-key" {
		return true // a header such as X-Shop-Key
	}
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	if strings.HasPrefix(key, "max_") || strings.HasPrefix(key, "min_") {
		return false // a limit, such as max_token
	}
	for _, end := range []string{"api_key", "apikey", "access_key", "access_key_id", "private_key", "token", "secret", "password", "passwd", "authorization", "cookie"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return false
}

// PublicError is an error whose text callers of a server may read: it names what is wrong with
// their values or with the answer of a model, and nothing about servers, files or credentials.
type PublicError struct{ Err error }

// Error returns the text of the error.
func (e *PublicError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *PublicError) Unwrap() error { return e.Err }
