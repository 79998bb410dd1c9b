package openai_test

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
)

// TestBatches_Silent: a server that does not answer, or stops in the middle of a file, is an error that passes.
func TestBatches_Silent(t *testing.T) {
	body := append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 32<<20)...), `"}`...)
	batch := &wire.Batch{Name: "b", Method: "/v1/responses", Count: 1, Calls: func() iter.Seq2[wire.BatchCall, error] {
		return func(yield func(wire.BatchCall, error) bool) { yield(wire.BatchCall{ID: "c", Body: body}, nil) }
	}}
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request) // before the server is silent
		call   func(b wire.Batches) error
	}{
		"no answer": {
			answer: func(http.ResponseWriter, *http.Request) {},
			call:   func(b wire.Batches) error { _, err := b.State(t.Context(), "b"); return err },
		},
		"upload": {
			answer: func(_ http.ResponseWriter, r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, 100) },
			call:   func(b wire.Batches) error { _, err := b.Create(t.Context(), batch); return err },
		},
		"download": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				_, err := io.WriteString(w, "{\"custom_id\":\"c\"}\n")
				if err := errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
					t.Error(err)
				}
			},
			call: func(b wire.Batches) error {
				return b.Results(t.Context(), "b", func(wire.BatchResult) error { return nil })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if name == "download" && strings.HasPrefix(r.URL.Path, "/v1/batches") {
					_, _ = io.WriteString(w, `{"output_file_id":"f"}`)
					return
				}
				test.answer(w, r)
				<-over
			}))
			defer server.Close()
			defer close(over)
			made, err := openai.NewBatches(openai.Config{Info: model.Info{ID: "m"}, BaseURL: server.URL + "/v1", HTTP: server.Client(), Idle: 100 * time.Millisecond})
			testkit.Must(t, err)
			err = test.call(made)
			failure, ok := errors.AsType[*model.Error](err)
			if !ok || !failure.Temporary || !strings.Contains(failure.Message, "no answer in time") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestBatches_Refused: a connection that is refused is an error that passes, after which no batch is searched.
func TestBatches_Refused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	made, err := openai.NewBatches(openai.Config{Info: model.Info{ID: "m"}, BaseURL: server.URL, HTTP: server.Client()})
	testkit.Must(t, err)
	_, err = made.State(t.Context(), "b")
	if failure, ok := errors.AsType[*model.Error](err); !ok || !failure.Temporary || !wire.IsUnsent(err) {
		t.Errorf("got %v", err)
	}
}
