package servers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/runtime"
)

// TestRateLimit_Shared: two applications with one store on a server have one limit; each
// one with another store has another limit.
func TestRateLimit_Shared(t *testing.T) {
	server, err := servertest.Redis()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close()) })
	shared := "redis://" + server.Address()
	for name, tt := range map[string]struct {
		stores [2]string
		want   int
	}{
		"one store":     {[2]string{shared, shared}, 3},
		"other store":   {[2]string{shared + "/1", shared + "/2"}, 6},
		"no server":     {[2]string{"memory:", "memory:"}, 6},
		"not reachable": {[2]string{"redis://" + servertest.Refused(t) + "?timeout=1ms", "memory:"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := httptest.NewServer(modeltest.OpenAI(func([]modeltest.Message) (string, int) { calls.Add(1); return "fine", 0 }))
			t.Cleanup(s.Close)
			for _, address := range tt.stores {
				store, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
				testkit.Must(t, err)
				path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(`
id: chat
models: [{type: Model, id: m, provider: openai, base_url: "%s/v1", auth: key, rate_limit: {requests_per_minute: 3}}]
auths: [{type: api_key, id: key, api_key: x}]
flows:
  - id: talk
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: answer, model: m, inputs: [message], outputs: [reply]}
`, s.URL))
				app, err := qtype.Open(t.Context(), path, qtype.WithStore(store))
				testkit.Must(t, err)
				callUntilLimit(t, app)
				testkit.Must(t, app.Close(t.Context()))
			}
			if n := calls.Load(); n != int64(tt.want) {
				t.Errorf("%d calls, want %d", n, tt.want)
			}
		})
	}
}

// callUntilLimit runs rows until one has to wait longer than a call can take.
func callUntilLimit(t *testing.T, app *runtime.App) {
	for range 5 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errWaiting)
		for res, err := range app.Run(ctx, "talk", slices.Values([]runtime.Input{runtime.Row(map[string]any{"message": "hi"})})) {
			switch {
			case errors.Is(err, errWaiting), err == nil && res.Err != nil && ctx.Err() != nil:
				cancel()
				return
			case err != nil:
				t.Error(err)
			case res.Err != nil:
				t.Log(res.Err)
			}
		}
		cancel()
	}
}

var errWaiting = errors.New("the call waits")
