package wire_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestTools_ObjectSchemas checks the schemas that servers get of tools whose schemas lack
// what providers require.
func TestTools_ObjectSchemas(t *testing.T) {
	const complete = `{"type":"object","required":["x"],"properties":{"x":{"type":"string"}}}`
	for name := range clients {
		var body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			body = string(raw)
			http.Error(w, "{}", http.StatusBadRequest)
		}))
		m, err := clients[name](wire.Config{Info: model.Info{ID: "m", Name: "m"}, BaseURL: server.URL, Key: "k", HTTP: server.Client()})
		if err != nil {
			t.Fatal(err)
		}
		for schema, want := range map[string]string{
			"": wire.EmptySchema, "null": wire.EmptySchema, "{}": wire.EmptySchema, "true": wire.EmptySchema,
			`{"type":"object"}`:                    `{"properties":{},"type":"object"}`,
			`{"properties":{"x":{}},"type":null}`:  `{"properties":{"x":{}},"type":"object"}`,
			`{"type":["object","null"]}`:           `{"properties":{},"type":"object"}`,
			`{"type":"object","properties":null}`:  `{"properties":{},"type":"object"}`,
			`{"$ref":"#/$defs/P","$defs":{"P":1}}`: `{"$defs":{"P":1},"$ref":"#/$defs/P","properties":{},"type":"object"}`,
			complete:                               complete,
		} {
			req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "hi")}, Tools: []model.Tool{{Name: "t", Parameters: json.RawMessage(schema)}}}
			_, _ = model.Call(t.Context(), m, req, nil)
			if !strings.Contains(body, want) {
				t.Errorf("%s: schema %s\ngot  %s\nwant %s", name, schema, body, want)
			}
		}
		server.Close()
	}
}
