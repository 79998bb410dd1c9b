// Package secrets reads secrets from the secret manager of a document.
package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/accesstoken"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Options are the environment of a secret manager.
type Options struct {
	Getenv func(name string) string // the environment; nil means os.Getenv
	Policy *trust.Policy            // what the document may reach; nil allows everything
	AWS    awsauth.Builder          // signs with AWS identities; nil in a program without this part
	HTTP   *http.Client             // for the services; nil means a client that follows no redirects
}

// keep is how long the secrets of a service are kept, so that a rotated one is used soon.
const keep = 5 * time.Minute

// readTimeout limits one read, with the request of a token.
const readTimeout = 30 * time.Second

// Reader reads the secrets of one secret manager. It is safe for concurrent use.
type Reader struct {
	source source

	mu    sync.Mutex
	found map[string]cached // by the names of secrets
}

type cached struct {
	text string
	at   time.Time
}

// source is where secrets are.
type source struct {
	read  func(ctx context.Context, name string) (string, error) // its errors never include the text
	local bool                                                   // whether secrets are read again for each use
}

// builder makes the source of one type of secret manager. It calls nothing.
type builder func(m spec.SecretManager, opts Options) (source, error)

// builders is the table of the types of secret managers.
var builders = sync.OnceValue(func() map[reflect.Type]builder {
	table := map[reflect.Type]builder{}
	add(table, newEnvironment)
	add(table, newFiles)
	add(table, newAWS)
	add(table, newGoogle)
	add(table, newAzure)
	add(table, newVault)
	return table
})

func add[M spec.SecretManager](table map[reflect.Type]builder, build func(M, Options) (source, error)) {
	table[reflect.TypeFor[M]()] = func(m spec.SecretManager, opts Options) (source, error) { return build(m.(M), opts) }
}

// New makes the Reader of a secret manager. It calls no server.
func New(m spec.SecretManager, opts Options) (*Reader, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.HTTP == nil {
		opts.HTTP = accesstoken.Client()
	}
	if missing := spec.CheckAvailable(m); missing != nil {
		return nil, missing.At(m)
	}
	from, err := builders()[reflect.TypeOf(m)](m, opts)
	if err != nil {
		return nil, fmt.Errorf("secret manager %s: %w", m.EntityID(), err)
	}
	return &Reader{source: from, found: map[string]cached{}}, nil
}

// Read returns the text of a secret, or of one key of a secret that is a JSON object. The
// secrets of services are kept for 5 minutes. Errors never include the text.
func (r *Reader) Read(ctx context.Context, ref spec.SecretReference) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock() // one request for callers of the same secret
	c, ok := r.found[ref.SecretName]
	if !ok || time.Since(c.at) > keep {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		text, err := r.source.read(ctx, ref.SecretName)
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", ref.SecretName, err)
		}
		c = cached{text, time.Now()}
		if !r.source.local {
			r.found[ref.SecretName] = c
		}
	}
	if ref.Key == "" {
		return c.text, nil
	}
	return jsonField(c.text, ref)
}

// jsonField returns one text of a secret that is a JSON object.
func jsonField(text string, ref spec.SecretReference) (string, error) {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", fmt.Errorf("secret %s is not a JSON object, so it has no key %s", ref.SecretName, ref.Key)
	}
	switch v := object[ref.Key].(type) {
	case string:
		return v, nil
	case nil:
		return "", fmt.Errorf("secret %s has no key %s", ref.SecretName, ref.Key)
	}
	return "", fmt.Errorf("key %s of secret %s is not a string", ref.Key, ref.SecretName)
}

// maxSecret is the maximum size of a secret in bytes.
const maxSecret = 64 << 10

// newEnvironment reads variables of the environment.
func newEnvironment(m *spec.EnvSecretManager, opts Options) (source, error) {
	return source{local: true, read: func(_ context.Context, name string) (string, error) {
		if err := opts.Policy.Env(m.Prefix + name); err != nil {
			return "", err
		}
		if text := opts.Getenv(m.Prefix + name); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the environment variable %s is not set", m.Prefix+name)
	}}, nil
}

// newFiles reads the files of a folder.
func newFiles(m *spec.FileSecretManager, opts Options) (source, error) {
	return source{local: true, read: func(_ context.Context, name string) (string, error) {
		if err := opts.Policy.Read(filepath.Join(m.Directory, name)); err != nil {
			return "", err
		}
		return readFile(m.Directory, name)
	}}, nil
}

// readFile reads a secret's file, without line ends at the end, which editors add.
func readFile(directory, name string) (string, error) {
	path := filepath.Join(directory, name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("the name must be that of a file in %s", directory)
	}
	file, err := os.OpenInRoot(directory, name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, textfmt.WithoutPath(err))
	}
	defer func() { _ = file.Close() }() // only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, textfmt.WithoutPath(err))
	case len(text) > maxSecret:
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxSecret)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

const (
	maxAnswer  = 1 << 20                // bytes of a response that are read
	attempts   = 3                      // of a request whose failure may pass
	firstPause = 200 * time.Millisecond // before the second attempt; then twice as long
)

// errMissing reports a secret that a service does not have.
var errMissing = errors.New("the secret manager has no such secret, or the identity must not read it")

// call sends the request that next makes and decodes the JSON response to answer. A server
// that cannot be reached or is overloaded is asked again. Errors have the message of the
// service, never a secret.
func call(client *http.Client, next func() (*http.Request, error), answer any) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		req, err := next()
		if err != nil {
			return err
		}
		again, err := send(client, req, answer)
		if err == nil || !again || attempt == attempts {
			return err
		}
		select {
		case <-req.Context().Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// send sends one request. again reports whether a later one may succeed.
func send(client *http.Client, req *http.Request, answer any) (again bool, err error) {
	server := httpx.Server(req.URL)
	resp, err := client.Do(req)
	if err != nil {
		return true, fmt.Errorf("cannot reach %s: %s", server, httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return true, fmt.Errorf("lost the connection to %s: %s", server, httpx.Reason(err))
	case resp.StatusCode == http.StatusNotFound:
		return false, fmt.Errorf("%s: %w", server, errMissing)
	case resp.StatusCode != http.StatusOK:
		again = resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests
		return again, fmt.Errorf("%s: HTTP %d: %s", server, resp.StatusCode, httpx.SingleLine(serviceMessage(raw), 300))
	case json.Unmarshal(raw, answer) != nil:
		return false, fmt.Errorf("%s: the response is not that of a secret manager", server)
	}
	return false, nil
}

// serviceMessage returns the message of an error response: of AWS, of Google and Azure, or
// of Vault.
func serviceMessage(raw []byte) string {
	var e struct {
		Type    string          `json:"__type"`
		Message string          `json:"message"` // or Message: names are compared without case
		Error   json.RawMessage `json:"error"`
		Errors  []string        `json:"errors"`
	}
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(raw, &e) != nil:
		return "no reason was given"
	case json.Unmarshal(e.Error, &object) == nil && object.Message != "":
		return object.Message
	case len(e.Errors) > 0:
		return e.Errors[0]
	case e.Type != "" && e.Message != "":
		return e.Type + ": " + e.Message
	case e.Type != "" || e.Message != "":
		return e.Type + e.Message
	}
	return "no reason was given"
}
