package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
)

// FuzzServer sends bodies of any kind to every route that reads one: the answer is never
// an error of the server.
func FuzzServer(f *testing.F) {
	app, err := qtype.Open(context.Background(), "testdata/app.qtype.yaml", qtype.WithEphemeral())
	if err != nil {
		f.Fatal(err)
	}
	s := server.New(app, server.Options{NoUI: true})
	f.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		_ = app.Close(context.Background())
	})
	paths := []string{"/flows/typed", "/flows/talk", "/flows/words", "/flows/talk/stream", "/flows/complete/stream", "/flows/greet/stream", "/runs/x/answer", "/feedback", "/sessions/import?flow=talk", "/mcp"}
	for i, body := range []string{
		`{"name":"x","count":1,"photo":{"base64":"AA=="},"order":{"number":1}}`, `{"message":{"role":"user","blocks":[{"type":"text","content":"hi"}]}}`,
		`{"texts":["a",null]}`, `{"id":"c","messages":[{"role":"user","parts":[{"type":"file","url":"data:image/png;base64,AA=="}]}]}`, `{"prompt":"x"}`,
		`{"id":"c","language":"x","messages":[{"role":"assistant","parts":[{"state":"output-available","toolCallId":"x","output":null}]}]}`,
		`{"id":"x","approved":true}`, `{"feedback":{"type":"thumbs","value":true}}`, "{\"role\":\"user\",\"content\":\"x\"}\n", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`[{"message":"a"},[]]`, `{"rows":[1]}`, "\x00\xff", "{", `{"messages":[{"role":"user","parts":[{"type":"text","text":"\ud800"}]}]}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		if strings.Contains(string(body), "refund") || strings.Contains(string(body), "where am I") {
			t.Skip("the run would wait")
		}
		r := httptest.NewRequest(http.MethodPost, paths[int(route)%len(paths)], strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s %q: %d %s", r.URL.Path, body, w.Code, w.Body)
		}
	})
}
