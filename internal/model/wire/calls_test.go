package wire_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// inventedCalls are calls that providers reject in the next request, with what is sent.
var inventedCalls = map[chat.ToolCall]chat.ToolCall{
	{ID: "c", Name: "multi_tool_use.parallel", Arguments: "{}"}: {ID: "c", Name: "multi_tool_use_parallel", Arguments: "{}"},
	{ID: "c", Name: "", Arguments: "{}"}:                        {ID: "c", Name: "unnamed", Arguments: "{}"},
	{ID: "c", Name: "a b/ö", Arguments: "{}"}:                   {ID: "c", Name: "a_b__", Arguments: "{}"},
	{ID: "c", Name: strings.Repeat("x", 70), Arguments: "{}"}:   {ID: "c", Name: strings.Repeat("x", 64), Arguments: "{}"},
	{ID: "c", Name: "add", Arguments: `{"a":`}:                  {ID: "c", Name: "add", Arguments: `{"arguments":"{\"a\":"}`},
	{ID: "c", Name: "server.find", Arguments: `{"a": 1}`}:       {ID: "c", Name: "server.find", Arguments: `{"a": 1}`},
}

// TestWithPlainCalls: calls have names and arguments that providers accept; names of offered tools
// stay, and the messages of the conversation do not change.
func TestWithPlainCalls(t *testing.T) {
	offered := []model.Tool{{Name: "server.find"}}
	for call, want := range inventedCalls {
		given := conversationWith(call)
		got := wire.WithPlainCalls(given, offered)
		if d := cmp.Diff([]chat.ToolCall{want}, got[1].Calls()); d != "" {
			t.Errorf("%q: %s", call.Name, d)
		}
		if call.Name != "" && got[2].Name != want.Name {
			t.Errorf("the result of %q is of %q", call.Name, got[2].Name)
		}
		if given[1].Calls()[0] != call || given[2].Name != call.Name {
			t.Errorf("%q was changed in the conversation", call.Name)
		}
	}
	given := conversationWith(chat.ToolCall{ID: "c", Name: "a.b", Arguments: "{}"})
	for item, stays := range map[string]bool{`{"name":"a.b"}`: false, `{"thought":"c2ln"}`: true} {
		given[1].Blocks[0].Item = &chat.Item{Field: "signature", JSON: item}
		if got := wire.WithPlainCalls(given, nil)[1].Blocks[0].Item; (got != nil) != stays {
			t.Errorf("%s: %v", item, got)
		}
	}
}

// conversationWith returns a conversation with one call.
func conversationWith(call chat.ToolCall) []chat.Message {
	return []chat.Message{chat.Text(chat.User, "q"), {Role: chat.Assistant, Blocks: []chat.Block{chat.CallBlock(call)}},
		{Role: chat.Tool, Name: call.Name, ToolCallID: call.ID, Blocks: []chat.Block{{Type: "text", Text: "no such tool"}}}}
}

// TestClients_InventedCalls: no client sends a name that providers reject, or arguments that are not
// JSON.
func TestClients_InventedCalls(t *testing.T) {
	for name, newClient := range clients {
		var body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			body = string(raw)
			w.WriteHeader(http.StatusBadRequest)
		}))
		m, err := newClient(wire.Config{Info: model.Info{ID: "m", Name: "m"}, BaseURL: server.URL, Key: "k", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		if err != nil {
			t.Fatal(err)
		}
		for call := range inventedCalls {
			_, err := model.Call(t.Context(), m, model.Request{Messages: conversationWith(call)}, nil)
			if err == nil || strings.Contains(body, "multi_tool_use.parallel") || strings.Contains(body, `"name":""`) || strings.Contains(body, `"a b/ö"`) || strings.Contains(body, `"arguments":"{\"a\":"`) && name == "openai" {
				t.Errorf("%s: %s: %v", name, body, err)
			}
		}
		server.Close()
	}
}
