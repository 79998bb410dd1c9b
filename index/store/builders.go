package store

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/chroma"
	"github.com/qtype-dev/qtype/index/internal/remote"
	"github.com/qtype-dev/qtype/index/pgvector"
	"github.com/qtype-dev/qtype/index/qdrant"
	"github.com/qtype-dev/qtype/index/weaviate"
	"github.com/qtype-dev/qtype/spec"
)

// Core returns the table of the stores of the core. The caller may add others.
func Core() Builders {
	return Builders{
		"chroma":        typed(newChroma),
		"elasticsearch": typed(newElasticsearch),
		"embedded":      typed(openEmbedded),
		"opensearch":    newOpenSearch,
		"pgvector":      typed(newPGVector),
		"qdrant":        typed(newQdrant),
		"redis":         newRedis,
		"weaviate":      typed(newWeaviate),
	}
}

// core is used by Options without a table.
var core = sync.OnceValue(Core)

// typed adapts a builder that knows the struct of its arguments.
func typed[A any](build func(context.Context, Request, A) (index.Index, error)) Builder {
	return func(ctx context.Context, r Request) (index.Index, error) { return build(ctx, r, r.args.(A)) }
}

// remoteConfig returns the settings of a client that all stores share.
func (r Request) remoteConfig(url string, timeout float64, retries *int) remote.Config {
	return remote.Config{URL: url, HTTP: r.HTTP, Header: http.Header{}, Secrets: []string{r.credential.key},
		Timeout: time.Duration(timeout * float64(time.Second)), MaxRetries: retries}
}

// addHeaders adds headers of a document to each request. Their values may be secrets.
func addHeaders(c *remote.Config, headers map[string]string) {
	for name, value := range headers {
		c.Header.Set(name, value)
		c.Secrets = append(c.Secrets, value)
	}
}

func newQdrant(_ context.Context, r Request, a *spec.QdrantArguments) (index.Index, error) {
	if r.credential.kind == "" {
		r.credential = credential{kind: "api_key", key: a.APIKey}
	}
	address, err := qdrant.Address(a, r.credential.key != "")
	if err != nil {
		return nil, err
	}
	c := r.remoteConfig(address, a.Timeout, a.MaxRetries)
	c.Store = "Qdrant"
	switch {
	case r.credential.key == "":
	case r.credential.kind == "bearer_token":
		c.Header.Set("Authorization", "Bearer "+r.credential.key)
	default:
		c.Header.Set("Api-Key", r.credential.key)
	}
	client, err := remote.NewClient(c)
	if err != nil {
		return nil, err
	}
	return qdrant.New(qdrant.Config{Client: client, Collection: r.nameOr(a.CollectionName), Dimensions: r.dimensions,
		BatchSize: a.BatchSize, TextKey: a.TextKey, VectorName: a.DenseVectorName}), nil
}

func newPGVector(_ context.Context, r Request, a *spec.PGVectorArguments) (index.Index, error) {
	if err := r.Policy.Database(cmp.Or(a.ConnectionString, "postgresql://"+cmp.Or(a.Host, "localhost"))); err != nil {
		return nil, err
	}
	return pgvector.New(pgvector.Config{Arguments: a, Name: r.entity.Common().Name, Dimensions: r.dimensions, User: r.credential.user, Password: r.credential.key})
}

func newChroma(_ context.Context, r Request, a *spec.ChromaArguments) (index.Index, error) {
	address := "http://"
	if a.SSL {
		address = "https://"
	}
	c := r.remoteConfig(address+net.JoinHostPort(a.Host, strconv.Itoa(a.Port)), 0, nil)
	c.Store, c.Temporary = "Chroma", chroma.IsTemporary
	addHeaders(&c, a.Headers)
	switch r.credential.kind {
	case "api_key":
		c.Header.Set("X-Chroma-Token", r.credential.key)
	case "bearer_token":
		c.Header.Set("Authorization", "Bearer "+r.credential.key)
	case "basic":
		c.Header.Set("Authorization", remote.Basic(r.credential.user, r.credential.key))
	}
	client, err := remote.NewClient(c)
	if err != nil {
		return nil, err
	}
	return chroma.New(chroma.Config{Client: client, Tenant: a.Tenant, Database: a.Database, Collection: r.nameOr(a.CollectionName), Space: a.Space, Dimensions: r.dimensions}), nil
}

func newWeaviate(_ context.Context, r Request, a *spec.WeaviateArguments) (index.Index, error) {
	c := r.remoteConfig(a.URL, a.Timeout, a.MaxRetries)
	c.Store, c.Temporary = "Weaviate", weaviate.IsTemporary
	addHeaders(&c, a.Headers)
	if r.credential.key != "" { // Weaviate has the same header for keys and tokens
		c.Header.Set("Authorization", "Bearer "+r.credential.key)
	}
	client, err := remote.NewClient(c)
	if err != nil {
		return nil, err
	}
	return weaviate.New(weaviate.Config{Client: client, Collection: weaviate.CollectionName(r.nameOr(a.IndexName)), TextKey: a.TextKey,
		Distance: a.Distance, Dimensions: r.dimensions}), nil
}
