package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// versioned returns the document with a version as its description.
func versioned(version string) string {
	return fmt.Sprintf(`id: shop
description: %q
models: [{type: Model, id: mock, provider: mock}]
flows:
  - {id: ask, variables: [{id: q, type: text}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{id: s, type: LLMInference, model: mock, inputs: [q], outputs: [a]}]}
`, version)
}

// loaderOf reads a document as qtype serve --reload does, and counts the reads.
func loaderOf(path string, reads *atomic.Int64) server.Loader {
	return func(ctx context.Context) (*runtime.App, []string, *server.ReloadError) {
		reads.Add(1)
		p, list := qtype.Check(ctx, path)
		if list.Err() != nil {
			return nil, []string{path}, &server.ReloadError{Message: "it has errors", Diagnostics: list}
		}
		app, err := qtype.New(p, qtype.WithEphemeral())
		if err != nil {
			return nil, nil, &server.ReloadError{Message: err.Error()}
		}
		return app, []string{path}, nil
	}
}

// served is the part of GET /app about the document.
type served struct {
	Description string
	ReloadError *struct {
		Message     string
		Diagnostics []struct{ Code string }
	} `json:"reload_error"`
}

func describe(t *testing.T, s *server.Server) (d served) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/app", nil))
	testkit.Must(t, json.Unmarshal(w.Body.Bytes(), &d))
	return d
}

// A changed document is served; one with errors is reported, and the former one is served.
func TestServer_Watch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := testkit.WriteFile(t, "app.qtype.yaml", versioned("one"))
		var reads atomic.Int64
		load := loaderOf(path, &reads)
		app, files, _ := load(t.Context())
		s := server.New(app, server.Options{})
		var reports []string
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			s.Watch(ctx, files, load, func(rejected *server.ReloadError) {
				if rejected != nil {
					reports = append(reports, rejected.Message)
				} else {
					reports = append(reports, "reloaded")
				}
			})
		})
		settle := func() {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		settle()
		if got := describe(t, s); got.Description != "one" || got.ReloadError != nil || reads.Load() != 1 {
			t.Errorf("before a change: %+v after %d reads", got, reads.Load())
		}
		testkit.Must(t, os.WriteFile(path, []byte(versioned("second")), 0o600))
		settle()
		if got := describe(t, s); got.Description != "second" || reads.Load() != 2 {
			t.Errorf("after a change: %+v after %d reads", got, reads.Load())
		}
		testkit.Must(t, os.WriteFile(path, []byte("flows: 7"), 0o600))
		settle()
		if got := describe(t, s); got.Description != "second" || got.ReloadError == nil || got.ReloadError.Message != "it has errors" || len(got.ReloadError.Diagnostics) == 0 {
			t.Errorf("after a change with errors: %+v", got)
		}
		testkit.Must(t, os.Remove(path))
		settle()
		testkit.Must(t, os.WriteFile(path, []byte(versioned("the third")), 0o600))
		settle()
		if got := describe(t, s); got.Description != "the third" || got.ReloadError != nil {
			t.Errorf("after the correction: %+v", got)
		}
		cancel()
		watching.Wait()
		if got := strings.Join(reports, ", "); got != "reloaded, it has errors, it has errors, reloaded" {
			t.Errorf("reports: %s", got)
		}
		testkit.Must(t, s.Shutdown(t.Context()))
		testkit.Must(t, s.App().Close(t.Context()))
		synctest.Wait()
	})
}
