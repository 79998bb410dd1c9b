package runtime

import (
	"net/http"
	"sync"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/internal/secrets"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// models are the models of an App.
type models struct {
	chat      pool[model.Chat]
	embedders pool[model.Embedder]
	forms     model.SchemaForms // what the servers of the App have accepted
	traffic   model.Traffic     // the limits of the App's calls
}

// toolFactory is a *factory.Factory. Its type would be compiled in each package that uses an App.
type toolFactory interface {
	Tool(t spec.Tool) (tool.Tool, error) // makes a tool
	Source(t spec.Tool) string           // the file that a tool runs; empty for none
	Close()                              // ends what the tools have started
}

// databases has the connections of the application's SQLSource steps. The zero
// value is empty. It is safe for concurrent use.
type databases struct {
	mu   sync.Mutex
	open map[*spec.SQLSource]*sqldb.Source
}

// indexes are the indexes of an App by their ids, opened at first use. An index that could
// not be opened is tried again at the next use.
type indexes struct {
	mu   sync.Mutex
	open map[string]index.Index
}

// rankers has what the application's rerankers share: one ranker for each step, which all
// runs use, and the connections to services. The zero value is empty. It is safe for
// concurrent use.
type rankers struct {
	mu   sync.Mutex
	made map[spec.Step]rerank.Ranker
	http *http.Client // made when the first ranker is
}

// caches are the caches of an App by their folders, opened at first use, and the cache in the
// shared store.
type caches struct {
	mu     sync.Mutex
	open   map[string]*stepcache.Cache
	shared *stepcache.Cache // nil before its first use
}

// secretManager is the reader of the application's secrets, made at the first use.
type secretManager struct {
	once   sync.Once
	reader *secrets.Reader
	err    error
}

// pool has the models of one kind, each made when it is first used.
type pool[M any] struct {
	single map[*spec.Model]func() (M, error) // each by itself: steps and fallbacks share it with its rate limit
	whole  map[*spec.Model]func() (M, error) // with fallbacks
}

func newModels() *models {
	return &models{chat: newPool[model.Chat](), embedders: newPool[model.Embedder]()}
}

func newPool[M any]() pool[M] {
	return pool[M]{single: map[*spec.Model]func() (M, error){}, whole: map[*spec.Model]func() (M, error){}}
}
