package embedded_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/vectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener opens the indexes of a folder.
func opener(t *testing.T, opts embedded.Options) func(*testing.T, string) index.Index {
	folder := t.TempDir()
	return func(_ *testing.T, name string) index.Index {
		one := opts
		one.Path = filepath.Join(folder, "indexes", name+".db")
		return embedded.Open(one)
	}
}

func TestIndex_Contract(t *testing.T) {
	for name, opts := range map[string]embedded.Options{
		"float32":         {Vectors: true, Dimensions: indextest.Dimensions, Stemming: "english"},
		"int8":            {Vectors: true, Encoding: vectors.Int8},
		"little memory":   {Vectors: true, Encoding: vectors.Int8, MemoryLimit: 1},
		"words in fields": {Fields: true},
		"stems":           {Fields: true, Stemming: "auto"},
	} {
		t.Run(name, func(t *testing.T) {
			indextest.Run(t, indextest.Store{Open: opener(t, opts), Vectors: opts.Vectors, Text: true, Hybrid: opts.Vectors,
				Fields: opts.Fields, Highlights: true})
		})
	}
}
