// Package chroma is the index in a collection of a Chroma server, over its API of version
// 2. Records have the form that LlamaIndex writes, so that both programs can use one
// collection.
package chroma

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// batchSize is how many records one request writes or reads.
const batchSize = 300

// Config describes a collection.
type Config struct {
	Client     *remote.Client // sends requests to the server
	Tenant     string         // the tenant that owns the database
	Database   string         // the database with the collection
	Collection string         // the name of the collection
	Space      string         // the distance of a new collection: cosine, l2 or ip
	Dimensions int            // length of the vectors
}

// Index is a collection of a Chroma server. It is safe for concurrent use.
type Index struct{ Config }

// New returns the index of a collection, which the first Put creates.
func New(c Config) *Index { return &Index{c} }

type object = map[string]any

// IsTemporary reports the failure of a search while Chroma writes the first segment of a
// collection.
func IsTemporary(err *remote.StatusError) bool {
	return err.Status == http.StatusInternalServerError && strings.Contains(err.Message, "Nothing found on disk")
}

// collection is Chroma's description of a collection.
type collection struct {
	ID            string `json:"id"`
	Dimension     *int   `json:"dimension"`
	Configuration struct {
		HNSW *struct {
			Space string `json:"space"`
		} `json:"hnsw"`
		SPANN *struct {
			Space string `json:"space"`
		} `json:"spann"`
	} `json:"configuration_json"`
}

// space returns the distance of the collection.
func (c *collection) space() string {
	switch {
	case c.Configuration.HNSW != nil:
		return c.Configuration.HNSW.Space
	case c.Configuration.SPANN != nil:
		return c.Configuration.SPANN.Space
	}
	return "l2"
}

func (x *Index) collections() string {
	return "/api/v2/tenants/" + url.PathEscape(x.Tenant) + "/databases/" + url.PathEscape(x.Database) + "/collections"
}

// find returns the collection, nil if it does not exist. The id is not kept: another
// program may replace the collection by one of the same name.
func (x *Index) find(ctx context.Context) (*collection, error) {
	var c collection
	err := x.Client.Do(ctx, http.MethodGet, x.collections()+"/"+url.PathEscape(x.Collection), nil, &c)
	if remote.IsStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Dimension != nil && *c.Dimension != x.Dimensions {
		return nil, fmt.Errorf("collection %s has vectors of %d numbers, the embedding model %d", x.Collection, *c.Dimension, x.Dimensions)
	}
	return &c, nil
}

// create returns the collection, which it creates if it does not exist.
func (x *Index) create(ctx context.Context) (*collection, error) {
	c, err := x.find(ctx)
	if c != nil || err != nil {
		return c, err
	}
	body := object{"name": x.Collection, "get_or_create": true, "configuration": object{"hnsw": object{"space": x.Space}}}
	c = &collection{}
	return c, x.Client.Do(ctx, http.MethodPost, x.collections(), body, c)
}

// do sends a request about the records of a collection.
func (x *Index) do(ctx context.Context, c *collection, action string, body, into any) error {
	return x.Client.Do(ctx, http.MethodPost, x.collections()+"/"+url.PathEscape(c.ID)+"/"+action, body, into)
}

// Put inserts or replaces entries.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	return remote.Writes[collection]{Dimensions: x.Dimensions, BatchSize: batchSize, Create: x.create, Write: x.upsert}.Put(ctx, entries)
}

// upsert writes records. Chroma keeps the old keys of metadata, so they are set to null.
func (x *Index) upsert(ctx context.Context, c *collection, entries []index.Entry, rejected remote.Rejected) error {
	var ids, documents []string
	var vectors [][]float32
	var metadata []object
	for _, e := range entries {
		m, err := metadataOf(e)
		if err == nil && e.ID == "" {
			err = errors.New("its id is empty")
		}
		if err != nil {
			rejected[e.ID] = err
			continue
		}
		ids, documents, vectors, metadata = append(ids, e.ID), append(documents, e.Text), append(vectors, e.Vector), append(metadata, m)
	}
	if len(ids) == 0 {
		return nil
	}
	var old records
	if err := x.do(ctx, c, "get", object{"ids": ids, "include": []string{"metadatas"}}, &old); err != nil {
		return err
	}
	for i, id := range old.IDs {
		at := slices.Index(ids, id)
		for key := range item(old.Metadata, i) {
			if at < 0 {
				break // the server returned another record than the requested ones
			}
			if _, kept := metadata[at][key]; !kept {
				metadata[at][key] = nil
			}
		}
	}
	return x.do(ctx, c, "upsert", object{"ids": ids, "documents": documents, "embeddings": vectors, "metadatas": metadata}, nil)
}

// records are the records of an answer.
type records struct {
	IDs       []string         `json:"ids"`
	Documents []*string        `json:"documents"`
	Metadata  []map[string]any `json:"metadatas"`
}

// item returns an item of a list of an answer, the zero value for none.
func item[T any](list []T, i int) (v T) {
	if i < len(list) {
		v = list[i]
	}
	return v
}

// entry returns the entry of a record.
func (r records) entry(i int) index.Entry {
	text := ""
	if d := item(r.Documents, i); d != nil {
		text = *d
	}
	e := remote.Entry(r.IDs[i], text, item(r.Metadata, i))
	e.ID, e.Text = r.IDs[i], text
	return e
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return err
	}
	for batch := range slices.Chunk(ids, batchSize) {
		if err := x.do(ctx, c, "delete", object{"ids": batch}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Search returns the nearest entries.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	if err := remote.CheckVectorQuery("chroma", q, x.Dimensions); err != nil {
		return nil, err
	}
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return nil, err
	}
	condition := remote.Translate(q.Filter, dialect{})
	return remote.Search(q.Limit, q.Filter, condition.Exact, func(n int) ([]index.Match, error) {
		body := object{"query_embeddings": [][]float32{q.Vector}, "n_results": n, "include": []string{"metadatas", "documents", "distances"}}
		if condition.Found {
			body["where"] = condition.Query
		}
		var answer struct {
			IDs       [][]string         `json:"ids"`
			Documents [][]*string        `json:"documents"`
			Metadata  [][]map[string]any `json:"metadatas"`
			Distances [][]float64        `json:"distances"`
		}
		if err := x.do(ctx, c, "query", body, &answer); err != nil || len(answer.IDs) == 0 {
			return nil, err
		}
		found, distances := records{answer.IDs[0], item(answer.Documents, 0), item(answer.Metadata, 0)}, item(answer.Distances, 0)
		if len(distances) != len(found.IDs) {
			return nil, fmt.Errorf("the answer of Chroma has %d ids and %d distances", len(found.IDs), len(distances))
		}
		matches := make([]index.Match, len(found.IDs))
		for i := range matches {
			matches[i] = index.Match{Entry: found.entry(i), Score: score(c.space(), distances[i])}
		}
		return matches, nil
	})
}

// score converts a distance. The greater score is the better one.
func score(space string, distance float64) float64 {
	if space == "l2" {
		return -distance
	}
	return 1 - distance
}

// Entries lists entries.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	var c *collection
	return remote.Listing(p, func() (ids []string, err error) {
		if c, err = x.find(ctx); c == nil || err != nil {
			return nil, err
		}
		const page = 1000
		body := object{"include": []string{}, "limit": page}
		if condition := remote.Translate(p.Filter, dialect{}); condition.Found {
			body["where"] = condition.Query
		}
		for {
			body["offset"] = len(ids)
			var r records
			if err := x.do(ctx, c, "get", body, &r); err != nil {
				return nil, err
			}
			ids = append(ids, r.IDs...)
			if len(r.IDs) < page {
				return ids, nil
			}
		}
	}, func(ids []string) ([]index.Entry, error) {
		var r records
		err := x.do(ctx, c, "get", object{"ids": ids, "include": []string{"metadatas", "documents"}}, &r)
		entries := make([]index.Entry, len(r.IDs))
		for i := range entries {
			entries[i] = r.entry(i)
		}
		return entries, err
	})
}

// Hashes returns the hashes of entries.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	hashes := map[string]string{}
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return hashes, err
	}
	for batch := range slices.Chunk(ids, batchSize) {
		var r records
		if err := x.do(ctx, c, "get", object{"ids": batch, "include": []string{"metadatas"}}, &r); err != nil {
			return nil, err
		}
		for i, id := range r.IDs {
			hashes[id], _ = item(r.Metadata, i)[remote.KeyHash].(string)
		}
	}
	return hashes, nil
}

// Stats describes the collection.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	s := index.Stats{Documents: -1, Bytes: -1, Dimensions: x.Dimensions, Detail: "Chroma collection " + x.Collection}
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return s, err
	}
	return s, x.Client.Do(ctx, http.MethodGet, x.collections()+"/"+url.PathEscape(c.ID)+"/count", nil, &s.Entries)
}

// Clear removes the collection.
func (x *Index) Clear(ctx context.Context) error {
	err := x.Client.Do(ctx, http.MethodDelete, x.collections()+"/"+url.PathEscape(x.Collection), nil, nil)
	if remote.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// Close releases connections.
func (x *Index) Close() error { return x.Client.Close() }
