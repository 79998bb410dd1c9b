package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	memoryservers "github.com/qtype-dev/qtype/internal/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// TestRateLimit_Shared: two applications with one store on a server have one limit; each
// one with another store has another limit.
func TestRateLimit_Shared(t *testing.T) {
	server, err := servertest.Redis()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close()) })
	memoryservers.Quiet()
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
			s := startModelServer(t, func(int, request) string { return assistantMessage("fine") })
			for _, address := range tt.stores {
				store, err := storeurl.Open(address, storeurl.Among(memoryservers.Openers()))
				testkit.Must(t, err)
				path := writeFile(t, fmt.Sprintf(`
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
			if n := len(s.received()); n != tt.want {
				t.Errorf("%d calls, want %d", n, tt.want)
			}
		})
	}
}

// callUntilLimit runs rows until one has to wait longer than a call can take.
func callUntilLimit(t *testing.T, app *runtime.App) {
	for range 5 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errWaiting)
		for res, err := range app.Run(ctx, "talk", singleInput("", map[string]any{"message": "hi"})) {
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
