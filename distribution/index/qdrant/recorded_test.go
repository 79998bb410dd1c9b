package qdrant_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// request is a request to Qdrant.
type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body"`
}

// recorded returns the requests that QType (Python) 0.1.18 sends for an example that writes
// two chunks of files and searches, and at the end the search of older clients of Qdrant.
func recorded(t *testing.T) []request {
	t.Helper()
	var all []request
	decoder := json.NewDecoder(strings.NewReader(testkit.ReadFile(t, "testdata/recorded.jsonl")))
	for decoder.More() {
		var r request
		testkit.Must(t, decoder.Decode(&r))
		all = append(all, r)
	}
	return all
}

// collectionServer answers as Qdrant with one collection, and keeps the requests.
type collectionServer struct {
	older bool // without /points/query

	mu   sync.Mutex
	made bool
	sent []request
}

func (s *collectionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, _ := io.ReadAll(r.Body)
	var body any
	_ = json.Unmarshal(data, &body) // nil without a body
	s.sent = append(s.sent, request{r.Method, r.URL.RequestURI(), body})
	switch {
	case r.Method == http.MethodPut && !s.made:
		s.made = true
	case !s.made, s.older && strings.HasSuffix(r.URL.Path, "/query"):
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"result":{"points_count":0,"config":{"params":{"vectors":{"size":8,"distance":"Cosine"}}}}}`)
		return
	case strings.HasSuffix(r.URL.Path, "/search"):
		_, _ = io.WriteString(w, `{"result":[]}`)
		return
	}
	_, _ = io.WriteString(w, `{"result":{}}`)
}

// send writes the recorded chunks and searches, and returns the requests.
func send(t *testing.T, older bool, change func(*index.Entry)) []request {
	t.Helper()
	s := &collectionServer{older: older}
	server := httptest.NewServer(s)
	defer server.Close()
	x := opentest.Open(t, opentest.Vectors("qdrant", "index", map[string]any{"url": server.URL, "collection_name": "chowdown_recipes", "api_key": ""}, nil))
	defer func() { _ = x.Close() }()
	var entries []index.Entry
	for _, p := range points(recorded(t)) {
		node := nodeContent(t, p)
		e := index.Entry{ID: p["id"].(string), Text: node["text"].(string), Metadata: node["metadata"].(map[string]any)}
		for _, n := range p["vector"].(map[string]any)[""].([]any) {
			e.Vector = append(e.Vector, float32(n.(float64)))
		}
		change(&e)
		entries = append(entries, e)
	}
	testkit.Must(t, x.Put(t.Context(), entries))
	_, err := x.Search(t.Context(), index.Query{Vector: []float32{1, 0, 1, 1, 0, 0, 0, 0}, Limit: 2})
	testkit.Must(t, err)
	return s.sent
}

// points returns the points that requests write.
func points(requests []request) []map[string]any {
	var all []map[string]any
	for _, r := range requests {
		if body, ok := r.Body.(map[string]any); ok && body["points"] != nil {
			for _, p := range body["points"].([]any) {
				all = append(all, p.(map[string]any))
			}
		}
	}
	return all
}

// nodeContent returns the chunk that a point has as JSON.
func nodeContent(t *testing.T, point map[string]any) map[string]any {
	t.Helper()
	var node map[string]any
	testkit.Must(t, json.Unmarshal([]byte(point["payload"].(map[string]any)["_node_content"].(string)), &node))
	return node
}

// forComparison returns requests without what differs on purpose: QType (Python) requests the
// version of the server and whether the collection exists; here the description of the
// collection is read. The JSON of a chunk is compared as JSON.
func forComparison(t *testing.T, requests []request) []request {
	t.Helper()
	for _, p := range points(requests) {
		p["payload"].(map[string]any)["_node_content"] = nodeContent(t, p)
	}
	var all []request
	for _, r := range requests {
		if r.Method != http.MethodGet {
			all = append(all, r)
		}
	}
	return all
}

// search changes the recorded search to the one that is sent here: a vector instead of
// {"nearest": vector}, no name for the only vector, and one more result than requested,
// which shows whether entries with the score of the last one are missing.
func search(t *testing.T, r request) request {
	t.Helper()
	body := r.Body.(map[string]any)
	if body["limit"] != 2.0 {
		t.Errorf("limit %v", body["limit"])
	}
	body["limit"] = 3.0
	if nearest, ok := body["query"].(map[string]any); ok {
		body["query"] = nearest["nearest"]
		delete(body, "using")
	}
	return r
}

// TestRecorded compares the requests with those of QType (Python), for chunks without what
// this module adds.
func TestRecorded(t *testing.T) {
	want := forComparison(t, recorded(t))
	if len(want) != 5 {
		t.Fatalf("%d requests", len(want))
	}
	newer, older := search(t, want[3]), search(t, want[4])
	got := forComparison(t, send(t, false, func(*index.Entry) {}))
	if d := diff.Diff(append(want[:3:3], newer), got); d != "" {
		t.Errorf("(-recorded +sent):\n%s", d)
	}
	got = forComparison(t, send(t, true, func(*index.Entry) {}))
	if d := diff.Diff(append(want[:3:3], newer, older), got); d != "" {
		t.Errorf("older server (-recorded +sent):\n%s", d)
	}
}

// TestRecorded_Additions checks what is added to the points of QType (Python): the hash, and
// the id of the document, which is None there.
func TestRecorded_Additions(t *testing.T) {
	want := points(forComparison(t, recorded(t)))
	got := points(forComparison(t, send(t, false, func(e *index.Entry) {
		e.Hash, e.Document = "0a1b", e.Metadata["file_path"].(string)
	})))
	for i, p := range want {
		payload := p["payload"].(map[string]any)
		file := payload["file_path"]
		payload["_qtype_hash"] = "0a1b"
		for _, key := range []string{"doc_id", "document_id", "ref_doc_id"} {
			if payload[key] != "None" {
				t.Errorf("recorded %s %v", key, payload[key])
			}
			payload[key] = file
		}
		payload["_node_content"].(map[string]any)["relationships"] = map[string]any{
			"1": map[string]any{"node_id": file, "node_type": nil, "metadata": map[string]any{}, "hash": nil, "class_name": "RelatedNodeInfo"}}
		if d := diff.Diff(p, got[i]); d != "" {
			t.Errorf("(-recorded +sent):\n%s", d)
		}
	}
}
