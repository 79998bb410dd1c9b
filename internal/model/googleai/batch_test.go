package googleai_test

import (
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
)

// TestBatches_Addresses: files go to the server that the document names, below its path, whatever address the answer
// to an upload has.
func TestBatches_Addresses(t *testing.T) {
	for base, want := range map[string]string{
		"":           "POST /upload/v1beta/files, POST /upload/v1beta/files?upload_id=u, POST /v1beta/models/gemini:batchGenerateContent, GET /v1beta/batches/b, GET /download/v1beta/files/f:download?alt=media",
		"/proxy/v1/": "POST /proxy/upload/v1/files, POST /proxy/upload/v1/files?upload_id=u, POST /proxy/v1/models/gemini:batchGenerateContent, GET /proxy/v1/batches/b, GET /proxy/download/v1/files/f:download?alt=media",
	} {
		var got []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Method+" "+r.URL.RequestURI())
			w.Header().Set("X-Goog-Upload-Url", "https://other.example/upload/files?upload_id=u")
			_, _ = w.Write([]byte(`{"name":"batches/b","file":{"name":"files/in"},"response":{"responsesFile":"files/f"}}`)) // the client has gone otherwise
		}))
		made, err := googleai.NewBatches(googleai.Config{Info: model.Info{ID: "m", Name: "gemini"}, BaseURL: server.URL + base, Key: "k", HTTP: server.Client()})
		testkit.Must(t, err)
		id, err := made.Create(t.Context(), &wire.Batch{Name: "n", Method: "generateContent", Count: 1, Calls: func() iter.Seq2[wire.BatchCall, error] {
			return func(yield func(wire.BatchCall, error) bool) { yield(wire.BatchCall{ID: "c", Body: []byte("{}")}, nil) }
		}})
		testkit.Must(t, err)
		testkit.Must(t, made.Results(t.Context(), id, func(wire.BatchResult) error { return nil }))
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Error(diff)
		}
		server.Close()
	}
}

// TestBatches_States reads batches as Google and its SDKs name them.
func TestBatches_States(t *testing.T) {
	for answer, want := range map[string]wire.BatchState{
		`{"metadata":{"state":"BATCH_STATE_PENDING"}}`:                                                                        {Word: "pending"},
		`{"metadata":{"state":"JOB_STATE_RUNNING","batchStats":{"successfulRequestCount":"3"}}}`:                              {Word: "running"},
		`{"metadata":{"state":"BATCH_STATE_SUCCEEDED","batchStats":{"successfulRequestCount":"3","failedRequestCount":"1"}}}`: {Word: "succeeded", Ended: true, Made: 4},
		`{"metadata":{"state":"BATCH_STATE_EXPIRED","batchStats":{"successfulRequestCount":"3"}}}`:                            {Word: "expired", Ended: true},
		`{"metadata":{"state":"JOB_STATE_CANCELLED"}}`:                                                                        {Word: "cancelled", Ended: true, Canceled: true},
		`{"metadata":{"state":"BATCH_STATE_FAILED"},"done":true,"error":{"code":3,"message":"bad file"}}`:                     {Word: "failed", Ended: true, Failed: &wire.BatchFailed{Message: "bad file"}},
		`{"metadata":{"state":"BATCH_STATE_FAILED"},"done":true,"error":{"code":8,"message":"quota"}}`:                        {Word: "failed", Ended: true, Failed: &wire.BatchFailed{Message: "quota", Full: true}},
		`{"metadata":{"state":"BATCH_STATE_FAILED","output":{"responsesFile":"files/f"}}}`:                                    {Word: "failed", Ended: true},
		`{"done":true}`: {Ended: true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })) // the client has gone otherwise
		made, err := googleai.NewBatches(googleai.Config{Info: model.Info{ID: "m", Name: "gemini"}, BaseURL: server.URL, HTTP: server.Client()})
		testkit.Must(t, err)
		got, err := made.State(t.Context(), "batches/b")
		testkit.Must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", answer, diff)
		}
		server.Close()
	}
}
