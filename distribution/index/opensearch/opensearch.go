// Package opensearch is the index of an OpenSearch or Elasticsearch server. The documents
// of a full-text index are those that QType (Python) writes; the chunks of a vector index
// have the form of LlamaIndex.
package opensearch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// Config describes an index of a server.
type Config struct {
	Client      *remote.Client // sends requests to the server
	Name        string         // the index in the server
	Dimensions  int            // length of the vectors; 0 for a full-text index
	TextField   string         // of a vector index
	VectorField string         // of a vector index
	Vectors     Vectors        // the field of vectors of a new index
	Serverless  bool           // OpenSearch Serverless of AWS: without refresh
}

// The limits of one bulk request.
const (
	bulkEntries = 500
	bulkBytes   = 8 << 20
)

// Index is an index of a server. It is safe for concurrent use.
type Index struct {
	Config

	mu     sync.Mutex
	exists bool // the index is known to exist, with the settings of this module
}

// New returns an index, which the first Put creates.
func New(c Config) *Index { return &Index{Config: c} }

func (x *Index) path(rest string) string { return "/" + url.PathEscape(x.Name) + rest }

// isText reports whether the index has documents instead of chunks with vectors.
func (x *Index) isText() bool { return x.Dimensions == 0 }

// create makes sure that the index exists. Documents need no settings: only the field of
// this module is declared, so that it is not searched.
func (x *Index) create(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.exists {
		return nil
	}
	body := x.settings()
	err := x.Client.Do(ctx, http.MethodPut, x.path(""), body, nil)
	if remote.IsStatus(err, http.StatusBadRequest) { // mostly because it exists
		var head map[string]any
		if findErr := x.Client.Do(ctx, http.MethodGet, x.path("/_mapping"), nil, &head); findErr != nil {
			return errors.Join(err, findErr)
		}
		err = x.Client.Do(ctx, http.MethodPut, x.path("/_mapping"), object{"properties": body["mappings"].(map[string]any)["properties"]}, nil)
		if remote.IsStatus(err, http.StatusBadRequest) && !x.isText() {
			return fmt.Errorf("the index %s has other settings than this application needs: %w", x.Name, err)
		}
	}
	x.exists = err == nil
	return err
}

// settings returns the settings and the mapping of a new index.
func (x *Index) settings() map[string]any {
	if x.isText() {
		return object{"mappings": object{"properties": object{ownField: object{"type": "object", "enabled": false}},
			"date_detection": false, "dynamic_templates": numbersAsFloat64("*")}}
	}
	settings, vector := x.Vectors.Mapping(x.Dimensions)
	properties := map[string]any{
		x.TextField: object{"type": "text"},
		"metadata":  object{"properties": metadataMapping()},
	}
	for name, field := range vector {
		if name == "" {
			name = x.VectorField
		}
		properties[name] = field
	}
	body := object{"mappings": object{"properties": properties, "date_detection": false, "dynamic_templates": numbersAsFloat64("metadata.*")}}
	if settings != nil {
		body["settings"] = settings
	}
	return body
}

// numbersAsFloat64 makes fields of whole numbers accept fractions too.
func numbersAsFloat64(path string) []any {
	return []any{object{"whole": object{"match_mapping_type": "long", "path_match": path, "mapping": object{"type": "double"}}},
		object{"fractions": object{"match_mapping_type": "double", "path_match": path, "mapping": object{"type": "double"}}}}
}

// metadataMapping keeps the JSON of a chunk out of the index, and makes the id of its
// document and the hash exact.
func metadataMapping() map[string]any {
	keyword := object{"type": "keyword"}
	return map[string]any{
		remote.KeyContent: object{"type": "text", "index": false},
		remote.KeyHash:    keyword,
		"ref_doc_id":      object{"type": "text", "fields": object{"keyword": object{"type": "keyword", "ignore_above": 256}}},
	}
}

// Put inserts or replaces entries.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	entries = remote.Last(entries)
	rejected := remote.Rejected{}
	if !x.isText() {
		entries, rejected = remote.CheckVectors(entries, x.Dimensions)
	}
	sources := make([]any, 0, len(entries))
	kept := make([]string, 0, len(entries))
	needsMapping := !x.isText()
	for _, e := range entries {
		source, err := x.source(e)
		if len(e.ID) > maxID {
			err = fmt.Errorf("its id has more than %d bytes", maxID)
		}
		if err != nil {
			rejected[e.ID] = err
			continue
		}
		_, own := source[ownField]
		needsMapping = needsMapping || own
		sources, kept = append(sources, source), append(kept, e.ID)
	}
	if len(kept) > 0 && needsMapping {
		if err := x.create(ctx); err != nil {
			return err
		}
	}
	if err := x.bulk(ctx, kept, sources, rejected); err != nil {
		return err
	}
	return rejected.Err()
}

// maxID is the number of bytes that an id of a server may have.
const maxID = 512

// bulk writes documents in requests of limited size. A nil source removes a document.
func (x *Index) bulk(ctx context.Context, ids []string, sources []any, rejected remote.Rejected) error {
	var body bytes.Buffer
	var pending []string
	send := func() error {
		if len(pending) == 0 {
			return nil
		}
		err := x.sendBulk(ctx, body.Bytes(), pending, rejected)
		body.Reset()
		pending = pending[:0]
		return err
	}
	for i, id := range ids {
		line, err := action(x.Name, id, sources[i])
		if err != nil {
			rejected[id] = err
			continue
		}
		if len(pending) > 0 && (len(pending) == bulkEntries || body.Len()+len(line) > bulkBytes) {
			if err := send(); err != nil {
				return err
			}
		}
		body.Write(line)
		pending = append(pending, id)
	}
	if err := send(); err != nil {
		return err
	}
	if len(ids) == 0 || x.Serverless {
		return nil
	}
	err := x.Client.Do(ctx, http.MethodPost, x.path("/_refresh"), nil, nil)
	if remote.IsStatus(err, http.StatusNotFound) {
		return nil // all entries were rejected, or removed from an index that does not exist
	}
	return err
}

// target is the document of an action.
type target struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// action returns the lines of a bulk request for one document.
func action(name, id string, source any) ([]byte, error) {
	head := map[string]target{"index": {Index: name, ID: id}}
	if source == nil {
		head = map[string]target{"delete": {Index: name, ID: id}}
	}
	lines, err := remote.EncodeJSON(head)
	if err != nil {
		return nil, err
	}
	lines = append(lines, '\n')
	if source == nil {
		return lines, nil
	}
	data, err := remote.EncodeJSON(source)
	return append(append(lines, data...), '\n'), err
}

// sendBulk sends a bulk request and collects the documents that the server rejects.
func (x *Index) sendBulk(ctx context.Context, body []byte, ids []string, rejected remote.Rejected) error {
	var answer struct {
		Errors bool `json:"errors"`
		Items  []map[string]struct {
			Status int `json:"status"`
			Error  struct {
				Reason string `json:"reason"`
				Cause  struct {
					Reason string `json:"reason"`
				} `json:"caused_by"`
			} `json:"error"`
		} `json:"items"`
	}
	if err := x.Client.Do(ctx, http.MethodPost, "/_bulk", body, &answer); err != nil {
		return err
	}
	if !answer.Errors {
		return nil
	}
	for i, item := range answer.Items {
		for kind, result := range item {
			if i < len(ids) && result.Status > 299 && (kind != "delete" || result.Status != http.StatusNotFound) {
				rejected[ids[i]] = errors.New(remote.OneLine(result.Error.Reason + ": " + result.Error.Cause.Reason))
			}
		}
	}
	return nil
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return len(id) > maxID || id == "" })
	if len(ids) == 0 {
		return nil
	}
	// A bulk request would create an index that does not exist.
	if err := x.Client.Do(ctx, http.MethodGet, x.path("/_mapping"), nil, nil); err != nil {
		if remote.IsStatus(err, http.StatusNotFound) {
			return nil
		}
		return err
	}
	rejected := remote.Rejected{}
	if err := x.bulk(ctx, ids, make([]any, len(ids)), rejected); err != nil {
		return err
	}
	return rejected.Err()
}

// Clear removes the index.
func (x *Index) Clear(ctx context.Context) error {
	x.mu.Lock()
	x.exists = false
	x.mu.Unlock()
	return x.Client.Remove(ctx, x.path(""))
}

// Close releases connections.
func (x *Index) Close() error { return x.Client.Close() }
