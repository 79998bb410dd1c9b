package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"

	"github.com/philippgille/chromem-go"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/vectors"
)

const (
	dimensions = 384
	topics     = 5_000
	batch      = 5_000 // entries of one Put
)

// source makes synthetic vectors: a random topic and noise, so that vectors of a topic
// have a cosine of about 0.6, as those of related sentences.
type source struct{ topics [][]float32 }

func newSource() *source {
	r := rand.New(rand.NewPCG(1, 1))
	s := &source{}
	for range topics {
		s.topics = append(s.topics, gaussian(r, 1))
	}
	return s
}

// gaussian returns a vector whose length is about the given one.
func gaussian(r *rand.Rand, length float64) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64() * length / math.Sqrt(dimensions))
	}
	return v
}

// vector returns the i-th vector.
func (s *source) vector(i int) []float32 {
	r := rand.New(rand.NewPCG(2, uint64(i)))
	v := gaussian(r, 0.8)
	for j, x := range s.topics[r.IntN(topics)] {
		v[j] += x
	}
	vectors.Normalize(v)
	return v
}

// query returns the i-th query, which no vector equals.
func (s *source) query(i int) []float32 { return s.vector(1<<40 + i) }

func compareVectors(ctx context.Context, folder string, n, queries int, built bool) {
	src := newSource()
	fmt.Printf("\n%d vectors of %d dimensions, %d queries\n\n", n, dimensions, queries)
	int8 := embedded.Options{Encoding: vectors.Int8, Path: filepath.Join(folder, "int8.db")}
	exactInt8, float32s := int8, embedded.Options{Approximate: embedded.Never, Path: filepath.Join(folder, "float32.db")}
	exactInt8.Approximate = embedded.Never
	if n < 500_000 {
		int8.Approximate, int8.Path = embedded.Always, filepath.Join(folder, "approximate.db")
		run([]*system{
			embeddedSystem(ctx, "qtype, float32, exact", src, n, float32s),
			embeddedSystem(ctx, "qtype, int8, exact", src, n, exactInt8),
			embeddedSystem(ctx, "qtype, int8, approximate", src, n, int8),
			chromemSystem(ctx, src, n),
		}, queries)
		return
	}
	toBuild := n
	if built {
		toBuild = 0
	}
	run([]*system{ // one file for both searches of int8, as the defaults make it
		chromemSystem(ctx, src, n),
		embeddedSystem(ctx, "qtype, float32, exact", src, toBuild, float32s),
		embeddedSystem(ctx, "qtype, int8, approximate", src, toBuild, int8),
		embeddedSystem(ctx, "qtype, int8, exact, the same file", src, 0, exactInt8),
	}, queries)
}

// embeddedSystem is the index of this project.
func embeddedSystem(ctx context.Context, name string, src *source, n int, opts embedded.Options) *system {
	opts.Vectors, opts.Dimensions = true, dimensions
	x := embedded.Open(opts)
	return &system{
		name: name,
		build: func() {
			for from := 0; from < n; from += batch {
				var entries []index.Entry
				for i := from; i < min(n, from+batch); i++ {
					entries = append(entries, index.Entry{ID: strconv.Itoa(i), Vector: src.vector(i)})
				}
				must(x.Put(ctx, entries))
			}
		},
		search: func(q int) (ids []string) {
			matches, err := x.Search(ctx, index.Query{Mode: index.ByVector, Vector: src.query(q), Limit: 10})
			must(err)
			for _, m := range matches {
				ids = append(ids, m.ID)
			}
			return ids
		},
		bytes: func() int64 {
			s, err := x.Stats(ctx)
			must(err)
			return s.Bytes
		},
	}
}

// chromemSystem keeps its vectors in memory.
func chromemSystem(ctx context.Context, src *source, n int) *system {
	c, err := chromem.NewDB().CreateCollection("c", nil, nil)
	must(err)
	return &system{
		name: "chromem-go 0.7.0, in memory",
		build: func() {
			for i := range n {
				must(c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(i), Content: "x", Embedding: src.vector(i)}))
			}
		},
		search: func(q int) (ids []string) {
			found, err := c.QueryEmbedding(ctx, src.query(q), 10, nil, nil)
			must(err)
			for _, f := range found {
				ids = append(ids, f.ID)
			}
			return ids
		},
		bytes: func() int64 { return 0 },
	}
}
