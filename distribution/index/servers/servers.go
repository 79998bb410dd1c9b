// Package servers opens the indexes of servers: Chroma, Elasticsearch, OpenSearch, pgvector, Qdrant, Redis and
// Weaviate, which are no part of the core.
package servers

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/distribution/index/chroma"
	"github.com/qtype-dev/qtype/distribution/index/pgvector"
	"github.com/qtype-dev/qtype/distribution/index/qdrant"
	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/distribution/index/weaviate"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/spec"
)

// Builders returns the table of the stores of the core and of servers. The caller may change it.
func Builders() store.Builders {
	all := store.Core()
	maps.Copy(all, store.Builders{
		"chroma":        store.Typed(newChroma),
		"elasticsearch": store.Typed(newElasticsearch),
		"opensearch":    newOpenSearch,
		"pgvector":      store.Typed(newPGVector),
		"qdrant":        store.Typed(newQdrant),
		"redis":         newRedis,
		"weaviate":      store.Typed(newWeaviate),
	})
	return all
}

// remoteConfig returns the settings of a client that all stores share.
func remoteConfig(r store.Request, url string, timeout float64, retries *int) remote.Config {
	return remote.Config{URL: url, HTTP: r.HTTP, Header: http.Header{}, Secrets: []string{r.Credential.Key},
		Timeout: time.Duration(timeout * float64(time.Second)), MaxRetries: retries}
}

// addHeaders adds headers of a document to each request. Their values may be secrets.
func addHeaders(c *remote.Config, headers map[string]string) {
	for name, value := range headers {
		c.Header.Set(name, value)
		c.Secrets = append(c.Secrets, value)
	}
}

func newQdrant(_ context.Context, r store.Request, a *spec.QdrantArguments) (index.Index, error) {
	if r.Credential.Kind == "" {
		r.Credential = store.Credential{Kind: "api_key", Key: a.APIKey}
	}
	address, err := qdrant.Address(a, r.Credential.Key != "")
	if err != nil {
		return nil, err
	}
	c := remoteConfig(r, address, a.Timeout, a.MaxRetries)
	c.Store = "Qdrant"
	switch {
	case r.Credential.Key == "":
	case r.Credential.Kind == "bearer_token":
		c.Header.Set("Authorization", "Bearer "+r.Credential.Key)
	default:
		c.Header.Set("Api-Key", r.Credential.Key)
	}
	client, err := remote.NewClient(c)
	if err != nil {
		return nil, err
	}
	return qdrant.New(qdrant.Config{Client: client, Collection: r.NameOr(a.CollectionName), Dimensions: r.Dimensions,
		BatchSize: a.BatchSize, TextKey: a.TextKey, VectorName: a.DenseVectorName}), nil
}

func newPGVector(_ context.Context, r store.Request, a *spec.PGVectorArguments) (index.Index, error) {
	if err := r.Policy.Database(cmp.Or(a.ConnectionString, "postgresql://"+cmp.Or(a.Host, "localhost"))); err != nil {
		return nil, err
	}
	return pgvector.New(pgvector.Config{Arguments: a, Name: r.Entity.Common().Name, Dimensions: r.Dimensions, User: r.Credential.User, Password: r.Credential.Key})
}

func newChroma(_ context.Context, r store.Request, a *spec.ChromaArguments) (index.Index, error) {
	address := "http://"
	if a.SSL {
		address = "https://"
	}
	c := remoteConfig(r, address+net.JoinHostPort(a.Host, strconv.Itoa(a.Port)), 0, nil)
	c.Store, c.Temporary = "Chroma", chroma.IsTemporary
	addHeaders(&c, a.Headers)
	switch r.Credential.Kind {
	case "api_key":
		c.Header.Set("X-Chroma-Token", r.Credential.Key)
	case "bearer_token":
		c.Header.Set("Authorization", "Bearer "+r.Credential.Key)
	case "basic":
		c.Header.Set("Authorization", remote.Basic(r.Credential.User, r.Credential.Key))
	}
	client, err := remote.NewClient(c)
	if err != nil {
		return nil, err
	}
	return chroma.New(chroma.Config{Client: client, Tenant: a.Tenant, Database: a.Database, Collection: r.NameOr(a.CollectionName), Space: a.Space, Dimensions: r.Dimensions}), nil
}

func newWeaviate(_ context.Context, r store.Request, a *spec.WeaviateArguments) (index.Index, error) {
	c := remoteConfig(r, a.URL, a.Timeout, a.MaxRetries)
	c.Store, c.Temporary = "Weaviate", weaviate.IsTemporary
	addHeaders(&c, a.Headers)
	if r.Credential.Key != "" { // Weaviate has the same header for keys and tokens
		c.Header.Set("Authorization", "Bearer "+r.Credential.Key)
	}
	client, err := remote.NewClient(c)
	if err != nil {
		return nil, err
	}
	return weaviate.New(weaviate.Config{Client: client, Collection: weaviate.CollectionName(r.NameOr(a.IndexName)), TextKey: a.TextKey,
		Distance: a.Distance, Dimensions: r.Dimensions}), nil
}
