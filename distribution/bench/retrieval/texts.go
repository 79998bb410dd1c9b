package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/blevesearch/bleve/v2"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/index/embedded"
)

const (
	wordsPerDocument = 80
	wordsPerQuery    = 5
	vocabulary       = 50_000
)

// words returns words of a vocabulary with Zipf's distribution.
func words(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(3, seed))
	zipf := rand.NewZipf(r, 1.1, 2, vocabulary-1)
	list := make([]string, n)
	for i := range list {
		list[i] = "w" + strconv.FormatUint(zipf.Uint64(), 36)
	}
	return strings.Join(list, " ")
}

func compareTexts(ctx context.Context, folder string, n, queries int) {
	fmt.Printf("\n%d documents of %d words, %d queries of %d words\n\n", n, wordsPerDocument, queries, wordsPerQuery)
	run([]*system{textSystem(ctx, folder, n), bleveSystem(ctx, folder, n)}, queries)
}

// query returns the i-th query.
func query(i int) string { return words(1<<40+uint64(i), wordsPerQuery) }

func textSystem(ctx context.Context, folder string, n int) *system {
	x := embedded.Open(embedded.Options{Path: filepath.Join(folder, "words.db")})
	return &system{
		name: "qtype, full text",
		build: func() {
			for from := 0; from < n; from += batch {
				var entries []index.Entry
				for i := from; i < min(n, from+batch); i++ {
					entries = append(entries, index.Entry{ID: strconv.Itoa(i), Text: words(uint64(i), wordsPerDocument)})
				}
				must(x.Put(ctx, entries))
			}
		},
		search: func(q int) (ids []string) {
			matches, err := x.Search(ctx, index.Query{Mode: index.ByText, Text: query(q), Limit: 10})
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

func bleveSystem(ctx context.Context, folder string, n int) *system {
	path := filepath.Join(folder, "bleve")
	mapping := bleve.NewIndexMapping()
	mapping.ScoringModel = "bm25"
	b, err := bleve.New(path, mapping)
	must(err)
	return &system{
		name: "bleve 2.6.1, bm25",
		build: func() {
			for from := 0; from < n; from += batch {
				changes := b.NewBatch()
				for i := from; i < min(n, from+batch); i++ {
					must(changes.Index(strconv.Itoa(i), map[string]any{"text": words(uint64(i), wordsPerDocument)}))
				}
				must(b.Batch(changes))
			}
		},
		search: func(q int) (ids []string) {
			found, err := b.SearchInContext(ctx, bleve.NewSearchRequestOptions(bleve.NewMatchQuery(query(q)), 10, 0, false))
			must(err)
			for _, hit := range found.Hits {
				ids = append(ids, hit.ID)
			}
			return ids
		},
		bytes: func() (total int64) {
			must(filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				if err == nil {
					total += info.Size()
				}
				return err
			}))
			return total
		},
	}
}
