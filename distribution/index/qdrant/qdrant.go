// Package qdrant is the index of a Qdrant server, over its REST API. Points have the
// payload that LlamaIndex writes, so that both programs can use one collection.
package qdrant

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// Config describes a collection.
type Config struct {
	Client     *remote.Client // sends requests to the server
	Collection string         // the name of the collection
	Dimensions int            // length of the vectors
	BatchSize  int            // points in one request
	TextKey    string         // the key of the payload with the text of points that LlamaIndex did not write
	VectorName string         // the vector in a collection with several; empty for the only one, or LlamaIndex's
}

// readBatch is how many points a request reads.
const readBatch = 500

// llamaVector is the name of LlamaIndex's vector in a collection with named vectors.
const llamaVector = "text-dense"

// Index is a collection of a Qdrant server. It is safe for concurrent use.
type Index struct {
	Config

	mu         sync.Mutex
	collection *collection // nil until it is known to exist
}

// collection is what a request must know of a collection.
type collection struct {
	vector   string // the name of the vector; empty for the unnamed one
	size     int
	distance string
}

// New returns the index of a collection, which the first Put creates.
func New(c Config) *Index { return &Index{Config: c} }

// path returns the path of a request to the collection.
func (x *Index) path(rest string) string {
	return "/collections/" + url.PathEscape(x.Collection) + rest
}

// description is Qdrant's answer about a collection.
type description struct {
	Result struct {
		PointsCount int64 `json:"points_count"`
		Config      struct {
			Params struct {
				Vectors vectorParams `json:"vectors"`
			} `json:"params"`
		} `json:"config"`
	} `json:"result"`
}

// vectorParams are the settings of the only vector of a collection, or of named ones.
type vectorParams struct {
	size     int
	distance string
	named    map[string]vectorParams
}

// UnmarshalJSON reads either form.
func (v *vectorParams) UnmarshalJSON(data []byte) error {
	var one struct {
		Size     *int   `json:"size"`
		Distance string `json:"distance"`
	}
	if err := remote.DecodeJSON(data, &one); err == nil && one.Size != nil {
		v.size, v.distance = *one.Size, one.Distance
		return nil
	}
	return remote.DecodeJSON(data, &v.named)
}

// find returns the collection, nil if it does not exist.
func (x *Index) find(ctx context.Context) (*collection, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.collection != nil {
		return x.collection, nil
	}
	var d description
	if err := x.Client.Do(ctx, http.MethodGet, x.path(""), nil, &d); err != nil {
		if remote.IsStatus(err, http.StatusNotFound) {
			return nil, nil
		}
		return nil, err
	}
	found, err := x.selectVector(d.Result.Config.Params.Vectors)
	if err != nil {
		return nil, err
	}
	x.collection = found
	return found, nil
}

// selectVector returns the vector to use.
func (x *Index) selectVector(v vectorParams) (*collection, error) {
	c := &collection{size: v.size, distance: v.distance}
	if v.named != nil {
		names := make([]string, 0, len(v.named))
		for name := range v.named {
			names = append(names, name)
		}
		slices.Sort(names)
		switch {
		case x.VectorName != "":
			c.vector = x.VectorName
		case len(names) == 1:
			c.vector = names[0]
		default:
			c.vector = llamaVector
		}
		one, ok := v.named[c.vector]
		if !ok {
			return nil, fmt.Errorf("collection %s has no vector %q: set dense_vector_name to one of %v", x.Collection, c.vector, names)
		}
		c.size, c.distance = one.size, one.distance
	}
	if c.size != x.Dimensions {
		return nil, fmt.Errorf("collection %s has vectors of %d numbers, the embedding model %d", x.Collection, c.size, x.Dimensions)
	}
	return c, nil
}

// create returns the collection, which it creates if it does not exist.
func (x *Index) create(ctx context.Context) (*collection, error) {
	c, err := x.find(ctx)
	if c != nil || err != nil {
		return c, err
	}
	one := map[string]any{"size": x.Dimensions, "distance": "Cosine"}
	vectors := any(one)
	if x.VectorName != "" {
		vectors = map[string]any{x.VectorName: one}
	}
	err = x.Client.Do(ctx, http.MethodPut, x.path(""), map[string]any{"vectors": vectors}, nil)
	// Another process may have created it meanwhile.
	if err != nil && !remote.IsStatus(err, http.StatusConflict) && !remote.IsStatus(err, http.StatusBadRequest) {
		return nil, err
	}
	made, findErr := x.find(ctx)
	if made == nil {
		return nil, errors.Join(err, findErr)
	}
	field := map[string]any{"field_name": remote.KeyDocument, "field_schema": "keyword"}
	return made, x.Client.Do(ctx, http.MethodPut, x.path("/index?wait=true"), field, nil)
}

// Put inserts or replaces entries.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	return remote.Writes[collection]{Dimensions: x.Dimensions, BatchSize: x.BatchSize, Create: x.create, Write: x.upsert}.Put(ctx, entries)
}

// upsert writes points.
func (x *Index) upsert(ctx context.Context, c *collection, entries []index.Entry, _ remote.Rejected) error {
	points := make([]any, len(entries))
	for i, e := range entries {
		var err error
		if points[i], err = point(e, c); err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	return x.Client.Do(ctx, http.MethodPut, x.path("/points?wait=true"), map[string]any{"points": points}, nil)
}

// point returns the point of an entry.
func point(e index.Entry, c *collection) (any, error) {
	payload, err := remote.Metadata(e, true)
	if err != nil {
		return nil, err
	}
	id := remote.UUID(e.ID)
	if id != e.ID {
		payload[remote.KeyID] = e.ID
	}
	return map[string]any{"id": id, "vector": map[string]any{c.vector: e.Vector}, "payload": payload}, nil
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	for batch := range slices.Chunk(ids, readBatch) {
		err := x.Client.Do(ctx, http.MethodPost, x.path("/points/delete?wait=true"), map[string]any{"points": remote.UUIDs(batch)}, nil)
		if err != nil && !remote.IsStatus(err, http.StatusNotFound) {
			return err
		}
	}
	return nil
}

// record is a point of an answer.
type record struct {
	ID      any            `json:"id"`
	Score   float64        `json:"score"`
	Payload map[string]any `json:"payload"`
}

// entryID returns the id of the entry of a point.
func (r record) entryID() string {
	if id, ok := r.Payload[remote.KeyID].(string); ok {
		return id
	}
	return fmt.Sprint(r.ID)
}

// entry returns the entry of a point.
func (x *Index) entry(r record) index.Entry {
	text := ""
	if _, written := r.Payload[remote.KeyContent]; !written {
		text, _ = r.Payload[x.TextKey].(string)
	}
	return remote.Entry(r.entryID(), text, r.Payload)
}

// Entries lists entries.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	return remote.Listing(p, func() ([]string, error) { return x.ids(ctx, p) }, func(ids []string) ([]index.Entry, error) {
		records, err := x.read(ctx, ids, true)
		entries := make([]index.Entry, len(records))
		for i, r := range records {
			entries[i] = x.entry(r)
		}
		return entries, err
	})
}

// ids returns the ids of the entries that may satisfy the filter of a page.
func (x *Index) ids(ctx context.Context, p index.Page) ([]string, error) {
	var all []string
	request := map[string]any{"limit": 2 * readBatch, "with_payload": []string{remote.KeyID}, "with_vector": false}
	if condition := remote.Translate(p.Filter, dialect{}); condition.Found {
		request["filter"] = topLevel(condition.Query)
	}
	for {
		var answer struct {
			Result struct {
				Points []record `json:"points"`
				Next   any      `json:"next_page_offset"`
			} `json:"result"`
		}
		if err := x.Client.Do(ctx, http.MethodPost, x.path("/points/scroll"), request, &answer); err != nil {
			if remote.IsStatus(err, http.StatusNotFound) {
				return nil, nil
			}
			return nil, err
		}
		for _, r := range answer.Result.Points {
			all = append(all, r.entryID())
		}
		if answer.Result.Next == nil {
			return all, nil
		}
		request["offset"] = answer.Result.Next
	}
}

// read returns the points of entries, with the whole payload or only what identifies it.
func (x *Index) read(ctx context.Context, ids []string, whole bool) ([]record, error) {
	var all []record
	for batch := range slices.Chunk(ids, readBatch) {
		var answer struct {
			Result []record `json:"result"`
		}
		request := map[string]any{"ids": points(batch), "with_payload": true, "with_vector": false}
		if !whole {
			request["with_payload"] = []string{remote.KeyID, remote.KeyHash}
		}
		if err := x.Client.Do(ctx, http.MethodPost, x.path("/points"), request, &answer); err != nil {
			if remote.IsStatus(err, http.StatusNotFound) {
				return nil, nil
			}
			return nil, err
		}
		all = append(all, answer.Result...)
	}
	return all, nil
}

// points returns the ids of points: those of this module, and for ids that are numbers also
// the points of other programs.
func points(ids []string) []any {
	var all []any
	for _, id := range ids {
		all = append(all, remote.UUID(id))
		if n, err := strconv.ParseUint(id, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Hashes returns the hashes of entries.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	records, err := x.read(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	hashes := make(map[string]string, len(records))
	for _, r := range records {
		hashes[r.entryID()], _ = r.Payload[remote.KeyHash].(string)
	}
	return hashes, nil
}

// Stats describes the collection.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	s := index.Stats{Documents: -1, Bytes: -1, Dimensions: x.Dimensions}
	var d description
	if err := x.Client.Do(ctx, http.MethodGet, x.path(""), nil, &d); err != nil {
		if remote.IsStatus(err, http.StatusNotFound) {
			return index.Stats{Bytes: -1, Dimensions: x.Dimensions, Detail: "no collection " + x.Collection}, nil
		}
		return index.Stats{}, err
	}
	s.Entries, s.Detail = d.Result.PointsCount, "Qdrant collection "+x.Collection
	var facets struct {
		Result struct {
			Hits []struct {
				Value string `json:"value"`
			} `json:"hits"`
		} `json:"result"`
	}
	const maxDocuments = 100_000
	request := map[string]any{"key": remote.KeyDocument, "limit": maxDocuments, "exact": true}
	// Older servers have no facets, and collections of other programs may have no index of the field.
	if err := x.Client.Do(ctx, http.MethodPost, x.path("/facet"), request, &facets); err == nil && len(facets.Result.Hits) < maxDocuments {
		s.Documents = 0
		for _, hit := range facets.Result.Hits {
			if hit.Value != remote.NoDocument {
				s.Documents++
			}
		}
	}
	return s, nil
}

// Clear removes the collection.
func (x *Index) Clear(ctx context.Context) error {
	x.mu.Lock()
	x.collection = nil
	x.mu.Unlock()
	return x.Client.Remove(ctx, x.path(""))
}

// Close releases connections.
func (x *Index) Close() error { return x.Client.Close() }
