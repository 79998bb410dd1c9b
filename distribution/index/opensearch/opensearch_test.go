package opensearch_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/servertest"
)

// mixed is why the metadata of the suite is rejected.
var mixed = map[string]string{"metadata": "the server gives each field one type and rejects lists of several types"}

var server = servertest.Shared{Start: servertest.OpenSearch}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

func TestDocuments(t *testing.T) {
	url := "http://" + server.Get(t).Address()
	indextest.Run(t, indextest.Store{Text: true, Fields: true, Highlights: true, Skip: mixed, Open: func(t *testing.T, name string) index.Index {
		return opentest.Open(t, opentest.Documents(url, "text"+name, nil, nil))
	}})
}

func TestVectors_Exact(t *testing.T) { testVectors(t, "exact", map[string]any{"exact": true}) }

func TestVectors_KNN(t *testing.T) { testVectors(t, "knn", map[string]any{"engine": "lucene"}) }

func testVectors(t *testing.T, prefix string, args map[string]any) {
	args["endpoint"] = "http://" + server.Get(t).Address()
	indextest.Run(t, indextest.Store{Vectors: true, Text: true, Hybrid: true, Highlights: true, Skip: mixed, Open: func(t *testing.T, name string) index.Index {
		return opentest.Open(t, opentest.Vectors("opensearch", prefix+name, args, nil))
	}})
}
