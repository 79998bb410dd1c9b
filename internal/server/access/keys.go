package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec"
)

const (
	minKeyLength = 16     // characters of an API key
	maxKeys      = 10_000 // each request is compared with all of them
	hashName     = "sha256"
	keyPrefix    = "qtype_" // of generated keys, so that scanners for secrets find them
)

// apiKey is an API key by its hash.
type apiKey struct {
	name string
	hash [sha256.Size]byte
}

// keyring is an immutable set of API keys.
type keyring []apiKey

// find returns the name of a key. It compares hashes, always all of them and each in
// constant time, so the duration depends neither on the key nor on its position.
func (k keyring) find(key string) (name string, ok bool) {
	hash := sha256.Sum256([]byte(key))
	found := -1
	for i := range k {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], k[i].hash[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return k[found].name, true
}

// add appends a key, unless its name or the key is already used.
func (k keyring) add(key apiKey) (keyring, error) {
	if len(k) == maxKeys {
		return nil, fmt.Errorf("there are more than %d API keys", maxKeys)
	}
	for _, other := range k {
		if other.name == key.name {
			return nil, fmt.Errorf("two API keys have the name %q", key.name)
		}
		if other.hash == key.hash {
			return nil, fmt.Errorf("the API keys %q and %q are equal", other.name, key.name)
		}
	}
	return append(k, key), nil
}

// parseKeys reads "name:key,name:key". Errors do not contain keys.
func parseKeys(text string) (keyring, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var keys keyring
	for i, entry := range strings.Split(text, ",") {
		name, key, ok := strings.Cut(strings.TrimSpace(entry), ":")
		switch {
		case !ok:
			return nil, fmt.Errorf("API key %d is not name:key", i+1)
		case !spec.IsKeyName(name):
			return nil, fmt.Errorf("the name of API key %d may contain only letters, digits, '.', '_' and '-'", i+1)
		case len(key) < minKeyLength:
			return nil, fmt.Errorf("the API key %q is shorter than %d characters", name, minKeyLength)
		case !isHeaderText(key):
			return nil, fmt.Errorf("the API key %q has characters that a header cannot contain", name)
		}
		var err error
		if keys, err = keys.add(apiKey{name, sha256.Sum256([]byte(key))}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// isHeaderText reports whether a text is visible ASCII without blanks.
func isHeaderText(text string) bool {
	for _, b := range []byte(text) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// parseKeyFile reads lines of the form name:sha256:HEX, blank lines and comments that
// begin with #.
func parseKeyFile(text string) (keyring, error) {
	var keys keyring
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, err := parseKeyLine(line)
		if err == nil {
			keys, err = keys.add(key)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no API key")
	}
	return keys, nil
}

func parseKeyLine(line string) (apiKey, error) {
	name, rest, _ := strings.Cut(line, ":")
	method, digits, ok := strings.Cut(rest, ":")
	if !ok || method != hashName {
		return apiKey{}, errors.New("not name:sha256:HEX; create a line with qtype serve --hash-key NAME")
	}
	if !spec.IsKeyName(name) {
		return apiKey{}, errors.New("the name may contain only letters, digits, '.', '_' and '-'")
	}
	hash, err := hex.DecodeString(digits)
	if err != nil || len(hash) != sha256.Size {
		return apiKey{}, fmt.Errorf("the hash of %q is not %d hexadecimal digits", name, 2*sha256.Size)
	}
	return apiKey{name, [sha256.Size]byte(hash)}, nil
}

// HashKey creates a random API key of 256 bits, and its line for a key file.
func HashKey(name string) (key, line string, err error) {
	if !spec.IsKeyName(name) {
		return "", "", fmt.Errorf("the name %q may contain only letters, digits, '.', '_' and '-'", name)
	}
	random := make([]byte, sha256.Size)
	_, _ = rand.Read(random) // never fails
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(random)
	hash := sha256.Sum256([]byte(key))
	return key, name + ":" + hashName + ":" + hex.EncodeToString(hash[:]), nil
}

// PrintHashKey creates an API key (qtype serve --hash-key NAME). It writes the line for
// the key file to stdout, so that it can be appended to the file, and the key, which is
// stored nowhere, to stderr.
func PrintHashKey(stdout, stderr io.Writer, name string) error {
	key, line, err := HashKey(name)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(stdout, line); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stderr, "API key of %s, shown only now: %s\n", name, key)
	return err
}

const (
	maxKeyFile  = 4 << 20     // bytes
	checkEvery  = time.Second // between checks whether a file changed
	openToOther = 0o026       // permissions that a key file must not have
)

// keySource has the API keys of the server: those of the environment, and those of a
// file that may change. It is safe for concurrent use.
type keySource struct {
	fixed   keyring // from the environment
	file    watchedFile
	current atomic.Pointer[keyring]
	logger  *slog.Logger
}

// newKeySource reads the keys. A nil source means that there are none.
func newKeySource(cfg Config, logger *slog.Logger) (*keySource, error) {
	fixed, err := parseKeys(cfg.Keys)
	if err != nil {
		return nil, err
	}
	if len(fixed) == 0 && cfg.KeyFile == "" {
		return nil, nil
	}
	s := &keySource{fixed: fixed, file: watchedFile{path: cfg.KeyFile}, logger: logger}
	s.current.Store(&s.fixed)
	if cfg.KeyFile == "" {
		return s, nil
	}
	s.file.changed()
	return s, s.load()
}

// load reads the key file.
func (s *keySource) load() error {
	text, err := readPrivate(s.file.path)
	if err != nil {
		return fmt.Errorf("the file of API keys: %w", err)
	}
	keys, err := parseKeyFile(text)
	if err != nil {
		return fmt.Errorf("the file of API keys %s: %w", s.file.path, err)
	}
	all := append(keyring(nil), s.fixed...)
	for _, k := range keys {
		if all, err = all.add(k); err != nil {
			return fmt.Errorf("the file of API keys %s: %w", s.file.path, err)
		}
	}
	s.current.Store(&all)
	return nil
}

// find returns the name of a key. If the file changed, it is read before; an invalid
// file is logged, and the previous keys stay valid.
func (s *keySource) find(key string) (name string, ok bool) {
	if s.file.path != "" && s.file.changed() {
		if err := s.load(); err != nil {
			s.logger.Error("API keys not reloaded, the previous ones stay valid", "error", err.Error())
		} else {
			s.logger.Info("API keys reloaded", "keys", len(*s.current.Load()))
		}
	}
	return s.current.Load().find(key)
}

// readPrivate reads a file that other users can neither read nor change.
func readPrivate(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", &fs.PathError{Op: "read", Path: path, Err: errors.New("is a folder")}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&openToOther != 0 {
		return "", fmt.Errorf("%s has the permissions %o; remove those of other users: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxKeyFile)
	}
	return string(text), err
}

// watchedFile notices changes of a file without a goroutine: by its size, time and
// identity, at most once a second.
type watchedFile struct {
	path string

	mu   sync.Mutex
	next time.Time   // of the next check
	last os.FileInfo // nil if the file was missing
}

// changed reports whether the file differs from that of the last call. The check is
// left out if the last one was less than a second ago.
func (w *watchedFile) changed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.next) {
		return false
	}
	w.next = now.Add(checkEvery)
	info, err := os.Stat(w.path)
	if err != nil {
		info = nil
	}
	last := w.last
	w.last = info
	if info == nil || last == nil {
		return (info == nil) != (last == nil)
	}
	return !os.SameFile(info, last) || !info.ModTime().Equal(last.ModTime()) || info.Size() != last.Size() || info.Mode() != last.Mode()
}

const (
	keyHeader     = "X-Api-Key"
	maxCredential = 16 << 10 // bytes
)

// credential is what a request proves its caller with. It is never logged.
type credential struct {
	secret string
	keys   bool // only a key is accepted, not a token
	cookie bool // from the sign-in page: sent by the browser with every request
}

// String hides the secret, if a credential is printed by accident.
func (credential) String() string { return "***" }

// GoString hides the secret.
func (credential) GoString() string { return "***" }

// refusal is why a credential is refused: a fixed text without parts of it.
type refusal struct {
	reason string
	signed bool // the provider signed the token, so the caller may know the reason
}

func (r *refusal) Error() string { return r.reason }

var (
	errNoCredential   = &refusal{reason: "no credential"}
	errTwoCredentials = &refusal{reason: "several credentials", signed: true}
	errUnknownKey     = &refusal{reason: "unknown key"}
	errTokensOff      = errors.New("the keys of the OpenID issuer are not available")
)

// readCredential returns the credential of a request. secure means that the client used
// TLS.
func readCredential(r *http.Request, secure bool) (credential, error) {
	bearers, keys := r.Header["Authorization"], r.Header[keyHeader]
	switch {
	case len(bearers)+len(keys) > 1:
		return credential{}, errTwoCredentials
	case len(keys) == 1:
		return validCredential(credential{secret: keys[0], keys: true})
	case len(bearers) == 1:
		scheme, secret, _ := strings.Cut(bearers[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return credential{}, &refusal{reason: "unsupported scheme of authorization", signed: true}
		}
		return validCredential(credential{secret: strings.TrimLeft(secret, " ")})
	}
	if secret := signInCookie(r, secure); secret != "" {
		return validCredential(credential{secret: secret, cookie: true})
	}
	return credential{}, errNoCredential
}

// validCredential refuses what no key and no token can be.
func validCredential(c credential) (credential, error) {
	if c.secret == "" || len(c.secret) > maxCredential || !isHeaderText(c.secret) {
		return credential{}, &refusal{reason: "malformed credential"}
	}
	return c, nil
}

// identify returns the caller that a credential belongs to.
func (c *Control) identify(ctx context.Context, cred credential) (Principal, error) {
	if c.keys != nil {
		if name, ok := c.keys.find(cred.secret); ok {
			return Principal{Name: name}, nil
		}
	}
	if c.tokens != nil && !cred.keys && strings.Count(cred.secret, ".") == 2 {
		return c.tokens.verify(ctx, cred.secret)
	}
	return Principal{}, errUnknownKey
}

// authenticate returns the caller of a request, and whether the browser sent the
// credential by itself. Errors are problems; reason is for the log.
func (c *Control) authenticate(r *http.Request, address string) (p Principal, ambient bool, reason string, err error) {
	if !c.Authenticated() {
		return Principal{}, true, "", nil
	}
	cred, err := readCredential(r, c.proxies.secure(r))
	if err == nil {
		p, err = c.identify(r.Context(), cred)
	}
	if err == nil {
		return p, cred.cookie, "", nil
	}
	if errors.Is(err, errTokensOff) {
		return p, false, err.Error(), problem.New(http.StatusServiceUnavailable, "authentication_unavailable", "%s", err)
	}
	refused, _ := errors.AsType[*refusal](err)
	if refused == errNoCredential || refused != nil && refused.signed { // not a guess
		return p, false, err.Error(), unauthorized(err)
	}
	// Valid credentials pass even now: clients behind one proxy share an address.
	wait, ok := c.failures.take(address)
	if ok {
		return p, false, err.Error(), unauthorized(err)
	}
	limited := problem.New(http.StatusTooManyRequests, "too_many_failures", "too many requests with invalid credentials")
	limited.RetryAfter = wait
	return p, false, err.Error(), limited
}

// unauthorized returns the problem of a refused credential. Only a caller with a token
// of the provider learns why it is refused.
func unauthorized(err error) *problem.Problem {
	refused, ok := errors.AsType[*refusal](err)
	switch {
	case errors.Is(err, errNoCredential):
		return problem.New(http.StatusUnauthorized, "unauthorized", "send an API key or token as Authorization: Bearer, or a key as X-API-Key")
	case ok && refused.signed:
		return problem.New(http.StatusUnauthorized, "invalid_credential", "%s", refused.reason)
	}
	return problem.New(http.StatusUnauthorized, "invalid_credential", "the API key or token is not valid")
}

// challenge is the value of WWW-Authenticate (RFC 6750, RFC 9728).
func (c *Control) challenge(r *http.Request, p *problem.Problem) string {
	text := `Bearer realm="qtype"`
	if address := c.metadataOf(r); address != "" {
		text += `, resource_metadata="` + address + `"`
	}
	if p.Code == "unauthorized" {
		return text
	}
	return text + `, error="invalid_token", error_description="` + p.Detail + `"`
}
