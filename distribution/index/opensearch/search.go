package opensearch

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// answer is the result of a search.
type answer struct {
	Hits struct {
		Hits []hit `json:"hits"`
	} `json:"hits"`
	Aggregations struct {
		Documents struct {
			Value int64 `json:"value"`
		} `json:"documents"`
	} `json:"aggregations"`
}

// Search returns the best matches.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	if err := remote.CheckQuery(q, x.Dimensions); err != nil {
		return nil, err
	}
	return remote.ByMode(q, func(q index.Query) ([]index.Match, error) { return x.byVector(ctx, q) },
		func(q index.Query) ([]index.Match, error) { return x.byText(ctx, q) })
}

// translated is a condition for the filter of a query.
type translated = remote.Translated[any]

func (x *Index) translate(ctx context.Context, q index.Query) (translated, error) {
	d, err := x.dialect(ctx, q.Filter)
	if err != nil {
		return translated{}, err
	}
	t := remote.Translate(q.Filter, d)
	if !t.Found {
		t.Query = nil
	}
	return t, nil
}

// byVector returns the nearest entries.
func (x *Index) byVector(ctx context.Context, q index.Query) ([]index.Match, error) {
	t, err := x.translate(ctx, q)
	if err != nil {
		return nil, err
	}
	return remote.Search(q.Limit, q.Filter, t.Exact, func(n int) ([]index.Match, error) {
		n = size(n)
		body := x.Vectors.Query(x.VectorField, q.Vector, n, t.Query)
		body["size"] = n
		body["_source"] = object{"excludes": []string{x.VectorField, bytesField}}
		return x.matches(ctx, body)
	})
}

// byText returns the entries with the best scores of a multi_match.
func (x *Index) byText(ctx context.Context, q index.Query) ([]index.Match, error) {
	t, err := x.translate(ctx, q)
	if err != nil {
		return nil, err
	}
	fetch := func(n int) ([]index.Match, error) {
		body := object{"query": x.textQuery(q, t), "size": size(n)}
		if !x.isText() {
			body["_source"] = object{"excludes": []string{x.VectorField, bytesField}}
		}
		if !q.Highlight {
			return x.matches(ctx, body)
		}
		body["highlight"] = object{"pre_tags": []string{"**"}, "post_tags": []string{"**"}, "number_of_fragments": 3,
			"require_field_match": false, "fields": object{"*": object{}}}
		found, err := x.matches(ctx, body)
		if remote.IsStatus(err, http.StatusBadRequest) { // the server limits the length of texts
			delete(body, "highlight")
			return x.matches(ctx, body)
		}
		return found, err
	}
	if t.Exact {
		return fetch(q.Limit)
	}
	return remote.Search(q.Limit, q.Filter, false, fetch)
}

// textQuery returns the query for a text: that of QType (Python), with its form of filters.
func (x *Index) textQuery(q index.Query, t translated) any {
	match := object{"type": "best_fields", "fields": []string{"*"}}
	if !x.isText() {
		match = object{"type": "best_fields", "fields": []string{x.TextField}}
	}
	if len(q.Args) > 0 {
		match = maps.Clone(q.Args)
	}
	match["query"] = limitWords(q.Text)
	multi := object{"multi_match": match}
	if !t.Found {
		return multi
	}
	filters := []any{t.Query}
	if combined, ok := t.Query.(object)["bool"].(object); ok && combined["filter"] != nil {
		filters = combined["filter"].([]any)
	}
	return object{"bool": object{"must": []any{multi}, "filter": filters}}
}

// Servers limit the number of words of a query, and the length of each.
const (
	maxWords = 200
	maxWord  = 1000
)

// limitWords returns the first words of a text.
func limitWords(text string) string {
	if len(text) <= maxWord && strings.Count(text, " ") < maxWords {
		return text
	}
	words := strings.Fields(text)
	words = words[:min(len(words), maxWords)]
	for i, w := range words {
		if len(w) > maxWord {
			words[i] = strings.ToValidUTF8(w[:maxWord], "")
		}
	}
	return strings.Join(words, " ")
}

// matches sends a search. An index that does not exist has no matches.
func (x *Index) matches(ctx context.Context, body object) ([]index.Match, error) {
	var a answer
	if err := x.Client.Do(ctx, http.MethodPost, x.path("/_search"), body, &a); err != nil {
		if remote.IsStatus(err, http.StatusNotFound) {
			return nil, nil
		}
		return nil, err
	}
	found := make([]index.Match, len(a.Hits.Hits))
	for i, h := range a.Hits.Hits {
		found[i] = index.Match{Entry: x.entry(h), Score: h.Score, Highlights: passages(h.Highlight)}
	}
	remote.Sort(found)
	return found, nil
}

// passages returns the passages of all fields, each once.
func passages(byField map[string][]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(byField)) {
		for _, passage := range byField[name] {
			if !slices.Contains(all, passage) {
				all = append(all, passage)
			}
		}
	}
	return all
}

// pageSize is how many entries a listing reads at once.
const pageSize = 500

// Entries lists entries.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		t, err := x.translate(ctx, index.Query{Filter: p.Filter})
		if err != nil {
			yield(index.Entry{}, err)
			return
		}
		body := object{"size": pageSize, "sort": []any{object{"_id": "asc"}}, "_source": object{"excludes": []string{x.VectorField, bytesField}}}
		if t.Found {
			body["query"] = object{"bool": object{"filter": []any{t.Query}}}
		}
		for after, left := p.After, p.Limit; ; {
			if after != "" {
				body["search_after"] = []string{after}
			}
			found, err := x.matches(ctx, body)
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			for _, m := range found {
				if p.Filter != nil && !p.Filter.Match(m.Metadata) {
					continue
				}
				if !yield(m.Entry, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(found) < pageSize {
				return
			}
			after = found[len(found)-1].ID
		}
	}
}

// Hashes returns the hashes of entries.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	hashes := map[string]string{}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return len(id) > maxID || id == "" })
	for batch := range slices.Chunk(ids, 2*pageSize) {
		var a struct {
			Docs []struct {
				hit
				Found bool `json:"found"`
			} `json:"docs"`
		}
		path := x.path("/_mget?_source_includes=" + ownField + ",metadata." + remote.KeyHash)
		if err := x.Client.Do(ctx, http.MethodPost, path, object{"ids": batch}, &a); err != nil {
			if remote.IsStatus(err, http.StatusNotFound) {
				return hashes, nil
			}
			return nil, err
		}
		for _, d := range a.Docs {
			if d.Found {
				hashes[d.ID] = x.entry(d.hit).Hash
			}
		}
	}
	return hashes, nil
}

// Stats describes the index.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	s := index.Stats{Documents: -1, Bytes: -1, Dimensions: x.Dimensions, Detail: "index " + x.Name}
	var count struct {
		Count int64 `json:"count"`
	}
	if err := x.Client.Do(ctx, http.MethodGet, x.path("/_count"), nil, &count); err != nil {
		if remote.IsStatus(err, http.StatusNotFound) {
			return s, nil
		}
		return s, err
	}
	s.Entries = count.Count
	var sizes struct {
		All struct {
			Primaries struct {
				Store struct {
					Size int64 `json:"size_in_bytes"`
				} `json:"store"`
			} `json:"primaries"`
		} `json:"_all"`
	}
	if err := x.Client.Do(ctx, http.MethodGet, x.path("/_stats/store"), nil, &sizes); err == nil { // OpenSearch Serverless has none
		s.Bytes = sizes.All.Primaries.Store.Size
	}
	if x.isText() {
		return s, nil
	}
	var a answer
	body := object{"size": 0, "query": object{"bool": object{"must_not": []any{object{"term": object{"metadata.ref_doc_id.keyword": remote.NoDocument}}}}},
		"aggs": object{"documents": object{"cardinality": object{"field": "metadata.ref_doc_id.keyword", "precision_threshold": 40_000}}}}
	if err := x.Client.Do(ctx, http.MethodPost, x.path("/_search"), body, &a); err != nil {
		return s, err
	}
	s.Documents = a.Aggregations.Documents.Value
	return s, nil
}
