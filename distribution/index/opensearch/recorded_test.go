package opensearch_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// request is a request to OpenSearch; the body of a bulk request is a list of its lines.
type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body"`
}

// recorded returns the requests of DocumentSearch and IndexUpsert of QType (Python) 0.1.18.
func recorded(t *testing.T) []request {
	t.Helper()
	return decode[request](t, testkit.ReadFile(t, "testdata/recorded.jsonl"))
}

// decode returns the JSON values of a text.
func decode[V any](t *testing.T, text string) []V {
	t.Helper()
	var all []V
	for decoder := json.NewDecoder(strings.NewReader(text)); decoder.More(); {
		var v V
		testkit.Must(t, decoder.Decode(&v))
		all = append(all, v)
	}
	return all
}

// send repeats the recorded calls and returns the requests. The server has no mapping, if
// mapping is empty.
func send(t *testing.T, mapping, hash string) []request {
	t.Helper()
	var sent []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		one := request{Method: r.Method, Path: r.URL.RequestURI()}
		if lines := decode[any](t, string(data)); r.URL.Path == "/_bulk" {
			one.Body = lines
		} else if len(lines) > 0 {
			one.Body = lines[0]
		}
		sent = append(sent, one)
		switch {
		case !strings.HasSuffix(r.URL.Path, "/_mapping"):
			_, _ = io.WriteString(w, `{}`)
		case mapping == "":
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = io.WriteString(w, mapping)
		}
	}))
	defer server.Close()
	x := opentest.Open(t, opentest.Documents(server.URL, "books", nil, nil))
	defer func() { _ = x.Close() }()
	search := func(q index.Query) {
		q.Mode, q.Text = index.ByText, "go"
		_, err := x.Search(t.Context(), q)
		testkit.Must(t, err)
	}
	put := func(titles ...string) {
		var entries []index.Entry
		for i := 0; i < len(titles); i += 2 {
			entries = append(entries, index.Entry{ID: titles[i], Text: titles[i+1], Hash: hash, Metadata: map[string]any{"isbn": titles[i], "title": titles[i+1]}})
		}
		testkit.Must(t, x.Put(t.Context(), entries))
	}
	search(index.Query{Limit: 3, Filter: filter.Compare{Field: "lang", Op: filter.Equal, Value: "en"}})
	search(index.Query{Limit: 10, Args: map[string]any{"fields": []string{"title"}}})
	search(index.Query{Limit: 10})
	put("a1", "Go in Action", "a2", "Python Tricks")
	put("a3", "Rust Book")
	search(index.Query{Limit: 10})
	return sent
}

// without returns the requests except those for paths that end with one of these.
func without(all []request, paths ...string) []request {
	var kept []request
next:
	for _, r := range all {
		for _, path := range paths {
			if strings.HasSuffix(r.Path, path) {
				continue next
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// TestRecorded compares the requests with those of QType (Python). In addition, the mapping
// is read for filters, and what was written is made visible to searches.
func TestRecorded(t *testing.T) {
	if d := cmp.Diff(recorded(t), without(send(t, "", ""), "/_mapping", "/_refresh")); d != "" {
		t.Errorf("(-recorded +sent):\n%s", d)
	}
}

// TestRecorded_Additions checks what else differs on purpose: a filter on a text compares
// its exact value, and each document has the hash by which unchanged ones are recognized,
// in a field whose mapping keeps it out of searches.
func TestRecorded_Additions(t *testing.T) {
	const mapping = `{"books":{"mappings":{"properties":{"lang":{"type":"text","fields":{"keyword":{"type":"keyword","ignore_above":256}}}}}}}`
	want := recorded(t)
	combined := want[0].Body.(map[string]any)["query"].(map[string]any)["bool"].(map[string]any)
	combined["filter"] = []any{map[string]any{"term": map[string]any{"lang.keyword": "en"}}}
	for _, r := range want {
		if lines, ok := r.Body.([]any); ok {
			for i := 1; i < len(lines); i += 2 {
				lines[i].(map[string]any)["_qtype"] = map[string]any{"hash": "0a1b"}
			}
		}
	}
	sent := send(t, mapping, "0a1b")
	if d := cmp.Diff(want, without(sent, "/_mapping", "/_refresh", "/books")); d != "" {
		t.Errorf("(-recorded +sent):\n%s", d)
	}
	created := 0
	for _, r := range sent {
		if r.Method == http.MethodPut && r.Path == "/books" {
			created++
			properties := r.Body.(map[string]any)["mappings"].(map[string]any)["properties"]
			if d := cmp.Diff(map[string]any{"_qtype": map[string]any{"type": "object", "enabled": false}}, properties); d != "" {
				t.Errorf("mapping (-want +sent):\n%s", d)
			}
		}
	}
	if created != 1 {
		t.Errorf("the index was created %d times", created)
	}
}
