// Package secrets reads secrets from the secret manager of a document.
package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/accesstoken"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Options are the environment of a secret manager.
type Options struct {
	Getenv func(name string) string // the environment; nil means os.Getenv
	Policy *trust.Policy            // what the document may reach; nil allows everything
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
