// Package weaviate is the index in a collection of a Weaviate server, over its REST and
// GraphQL APIs. Objects have the form that LlamaIndex writes, so that both programs can use
// one collection.
package weaviate

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// Limits of requests.
const (
	batchSize  = 200    // objects that one request writes, reads or deletes
	pageSize   = 1000   // objects of a page of a listing
	maxResults = 10_000 // objects that the server returns for one search
)

// Config describes a collection.
type Config struct {
	Client     *remote.Client // sends requests to the server
	Collection string         // the name of the collection, see CollectionName
	TextKey    string         // the property with the text
	Distance   string         // of a new collection: cosine, dot or l2-squared
	Dimensions int            // length of the vectors
}

// Index is a collection of a Weaviate server. It is safe for concurrent use.
type Index struct {
	Config

	mu      sync.Mutex
	negates *bool // the server has the operator Not; nil if that is not known yet
}

// New returns the index of a collection, which the first Put creates.
func New(c Config) *Index { return &Index{Config: c} }

// CollectionName returns the name of the collection of an index: Weaviate accepts only
// letters and digits of ASCII and _, with a capital letter at the beginning.
func CollectionName(name string) string {
	valid := strings.Map(func(c rune) rune {
		if c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, name)
	if valid == "" || valid[0] == '_' || valid[0] >= '0' && valid[0] <= '9' {
		valid = "C" + valid
	}
	return strings.ToUpper(valid[:1]) + valid[1:]
}

// Put inserts or replaces entries.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	return remote.Writes[collection]{Dimensions: x.Dimensions, BatchSize: batchSize, Create: x.create, Write: x.insert}.Put(ctx, entries)
}

// insert writes objects. An object replaces the one with the same id.
func (x *Index) insert(ctx context.Context, c *collection, entries []index.Entry, rejected remote.Rejected) error {
	objects := make([]object, 0, len(entries))
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		properties, err := x.properties(ctx, c, e)
		if err != nil {
			rejected[e.ID] = err
			continue
		}
		ids = append(ids, e.ID)
		objects = append(objects, object{"class": x.Collection, "id": remote.UUID(e.ID), "properties": properties, "vector": e.Vector})
	}
	if len(objects) == 0 {
		return nil
	}
	var answer []batchResult
	err := whenReady(ctx, func() error {
		answer = nil
		if err := x.Client.Do(ctx, http.MethodPost, "/v1/batch/objects", object{"objects": objects}, &answer); err != nil {
			return err
		}
		return notReady(answer)
	})
	if err != nil {
		return err
	}
	if len(answer) != len(objects) {
		return fmt.Errorf("the answer of Weaviate has %d results for %d objects", len(answer), len(objects))
	}
	for i, a := range answer {
		if message := a.message(); message != "" {
			rejected[ids[i]] = serverError(message)
		}
	}
	return nil
}

// batchResult is the result of writing one object.
type batchResult struct {
	Result struct {
		Errors *struct {
			Error []struct {
				Message string `json:"message"`
			} `json:"error"`
		} `json:"errors"`
	} `json:"result"`
}

// message returns the messages of the result, empty for none.
func (r batchResult) message() string {
	if r.Result.Errors == nil {
		return ""
	}
	var texts []string
	for _, e := range r.Result.Errors.Error {
		texts = append(texts, remote.OneLine(e.Message))
	}
	return strings.Join(texts, "; ")
}

// notReady returns a notReadyError if an object was not written because the collection is
// not ready.
func notReady(results []batchResult) error {
	for _, r := range results {
		if message := r.message(); isNotReady(message) {
			return &notReadyError{message}
		}
	}
	return nil
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return err
	}
	for batch := range slices.Chunk(ids, batchSize) {
		where := object{"path": []string{"id"}, "operator": "ContainsAny", "valueTextArray": remote.UUIDs(batch)}
		body := object{"match": object{"class": x.Collection, "where": where}, "output": "minimal"}
		if err := x.Client.Do(ctx, http.MethodDelete, "/v1/batch/objects", body, nil); err != nil {
			return err
		}
	}
	return nil
}

// Entries lists entries.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	var c *collection
	return remote.Listing(p, func() (ids []string, err error) {
		if c, err = x.find(ctx); c == nil || err != nil {
			return nil, err
		}
		condition, err := x.condition(ctx, c, p.Filter)
		if err != nil {
			return nil, err
		}
		if condition.Found {
			found, err := x.get(ctx, c.only(remote.KeyID), argument("limit", maxResults), argument("where", condition.Query))
			if err != nil {
				return nil, err
			}
			if len(found) < maxResults {
				return idsOf(found), nil
			}
		}
		return x.allIDs(ctx, c)
	}, func(ids []string) ([]index.Entry, error) {
		found, err := x.byID(ctx, c, ids)
		entries := make([]index.Entry, len(found))
		for i, o := range found {
			entries[i] = x.entry(o)
		}
		return entries, err
	})
}

// allIDs returns the ids of all entries.
func (x *Index) allIDs(ctx context.Context, c *collection) (ids []string, err error) {
	after := ""
	for {
		page, err := x.get(ctx, c.only(remote.KeyID), argument("limit", pageSize), argument("after", quote(after)))
		if err != nil {
			return nil, err
		}
		ids = append(ids, idsOf(page)...)
		if len(page) < pageSize {
			return ids, nil
		}
		after = page[len(page)-1].Additional.ID
	}
}

func idsOf(objects []found) []string {
	ids := make([]string, len(objects))
	for i, o := range objects {
		ids[i] = o.id()
	}
	return ids
}

// byID returns the objects of some entries.
func (x *Index) byID(ctx context.Context, c *collection, ids []string) (all []found, err error) {
	for batch := range slices.Chunk(ids, batchSize) {
		part, err := x.get(ctx, c, argument("limit", len(batch)), argument("where", containsAny("id", remote.UUIDs(batch)...)))
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// Hashes returns the hashes of entries.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	hashes := map[string]string{}
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return hashes, err
	}
	objects, err := x.byID(ctx, c.only(remote.KeyHash, remote.KeyID), ids)
	for _, o := range objects {
		hashes[o.id()], _ = o.Properties[remote.KeyHash].(string)
	}
	return hashes, err
}

// Stats describes the collection.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	s := index.Stats{Documents: -1, Bytes: -1, Dimensions: x.Dimensions, Detail: "Weaviate collection " + x.Collection}
	c, err := x.find(ctx)
	if c == nil || err != nil {
		return s, err
	}
	var answer struct {
		Aggregate map[string][]struct {
			Meta struct {
				Count int64 `json:"count"`
			} `json:"meta"`
		}
	}
	if err := x.query(ctx, "{ Aggregate { "+x.Collection+" { meta { count } } } }", &answer); err != nil {
		return s, err
	}
	for _, part := range answer.Aggregate[x.Collection] {
		s.Entries += part.Meta.Count
	}
	return s, nil
}

// Clear removes the collection.
func (x *Index) Clear(ctx context.Context) error {
	err := x.Client.Do(ctx, http.MethodDelete, x.schemaPath(), nil, nil)
	if remote.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// Close releases connections.
func (x *Index) Close() error { return x.Client.Close() }
