package redis_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/index/redis/redistest"
	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// backend has the hashes of the tests.
var backend = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Redis() }}

func TestMain(m *testing.M) { goleak.VerifyTestMain(backend.Around(m)) }

// start starts a server with search commands.
func start(t *testing.T) *redistest.Server {
	t.Helper()
	s, err := redistest.Start(backend.Get(t).Address())
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

// eachServer runs a test with the server for tests, and with RediSearch 2.10 in Redis 8.2.
func eachServer(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("test server", func(t *testing.T) { test(t, start(t).Address()) })
	t.Run("RediSearch", func(t *testing.T) {
		s, err := servertest.RedisStack()
		servertest.Need(t, err)
		t.Cleanup(func() { testkit.Must(t, s.Close()) })
		test(t, s.Address())
	})
}

func TestVectors(t *testing.T) { eachServer(t, checkVectors) }

func checkVectors(t *testing.T, address string) {
	url := "redis://" + address + "/0"
	for _, c := range []struct {
		name string
		args map[string]any
	}{{"flat", nil}, {"hnsw", map[string]any{"algorithm": "hnsw", "m": 64, "ef_construction": 500, "ef_runtime": 1000, "prefix": "odd*[p]{r}? ", "key_separator": ":"}}} {
		t.Run(c.name, func(t *testing.T) {
			indextest.Run(t, indextest.Store{Vectors: true, Text: true, Hybrid: true, Highlights: true, Open: func(t *testing.T, name string) index.Index {
				args := map[string]any{"redis_url": url}
				for key, v := range c.args {
					args[key] = v
				}
				if prefix, ok := args["prefix"].(string); ok {
					args["prefix"] = prefix + name + "/"
				}
				return opentest.Open(t, opentest.Vectors("redis", c.name+name, args, nil))
			}})
		})
	}
}

func TestDocuments(t *testing.T) {
	eachServer(t, func(t *testing.T, address string) { checkDocuments(t, address, "text") })
}

// TestDocuments_OldScorers checks a server without BM25STD.
func TestDocuments_OldScorers(t *testing.T) {
	s := start(t)
	s.OldScorers = true
	checkDocuments(t, s.Address(), "old")
}

func checkDocuments(t *testing.T, address, prefix string) {
	indextest.Run(t, indextest.Store{Text: true, Highlights: true, Open: func(t *testing.T, name string) index.Index {
		return opentest.Open(t, opentest.Documents("redis://"+address, prefix+name, nil, nil))
	}})
}

// TestDocuments_Fields checks that the words of all fields are found.
func TestDocuments_Fields(t *testing.T) { eachServer(t, checkFields) }

func checkFields(t *testing.T, address string) {
	x := opentest.Open(t, opentest.Documents("redis://"+address, "fields", nil, nil))
	defer func() { testkit.Must(t, x.Close()) }()
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "1", Metadata: map[string]any{"title": "apples", "meta": map[string]any{"by": []any{"Ada"}}}}, {ID: "2", Metadata: map[string]any{"title": "pears"}}}))
	for _, word := range []string{"Apples", "ada"} {
		found, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: word, Limit: 5, Highlight: true})
		if err != nil || len(found) != 1 || found[0].ID != "1" || len(found[0].Highlights) != 1 || found[0].Text != "" {
			t.Errorf("%s: %+v, %v", word, found, err)
		}
	}
}

// TestLlamaIndex checks that LlamaIndex and this module use an index that LlamaIndex created.
func TestLlamaIndex(t *testing.T) { eachServer(t, checkLlamaIndex) }

func checkLlamaIndex(t *testing.T, address string) {
	url := "redis://" + address
	opentest.SharedWithLlamaIndex(t, opentest.Vectors("redis", "shared", map[string]any{"redis_url": url}, nil), url, "")
}

// TestErrors checks messages about servers that cannot be used.
func TestErrors(t *testing.T) {
	plain := backend.Get(t).Address()
	closed, err := servertest.Redis("--requirepass", "another")
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, closed.Close()) })
	basic := &spec.BasicAuth{AuthBase: spec.AuthBase{ID: "login"}, Username: "default", Password: spec.NewSecret("a-secret")}
	for _, c := range []struct {
		url  string
		auth spec.Auth
		want string
	}{
		{"redis://" + plain, nil, "it has no search commands: use Redis 8"},
		{"redis://" + closed.Address(), basic, "WRONGPASS"},
		{"redis://" + closed.Address(), nil, "NOAUTH"},
		{"redis://" + servertest.Refused(t), nil, "connection refused"},
	} {
		x := opentest.Open(t, opentest.Vectors("redis", "errors", map[string]any{"redis_url": c.url, "max_retries": 0, "timeout": 5.0}, c.auth))
		_, err := x.Stats(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "a-secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.want, err)
		}
		testkit.Must(t, x.Close())
	}
}
