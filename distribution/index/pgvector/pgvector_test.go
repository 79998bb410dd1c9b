package pgvector_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/servertest"
)

var server = servertest.Shared{Start: servertest.PGVector}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

// address returns the URL of the database. The connections of the server share their
// prepared statements, so that there must be none.
func address(t *testing.T) string {
	return "postgresql+psycopg2://postgres:secret@" + server.Get(t).Address() + "/postgres?sslmode=disable&default_query_exec_mode=simple_protocol"
}

func TestIndex(t *testing.T) {
	url := address(t)
	indextest.Run(t, indextest.Store{Vectors: true, Text: true, Hybrid: true, Highlights: true, Open: func(t *testing.T, name string) index.Index {
		args := map[string]any{"connection_string": url, "hybrid_search": true, "use_jsonb": true, "schema_name": "my schema"}
		return opentest.Open(t, opentest.Vectors("pgvector", name, args, nil))
	}})
}
