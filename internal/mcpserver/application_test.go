package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// versions are a protocol version with sessions and one without.
func versions() []string { return []string{"2025-11-25", "2026-07-28"} }

// inVersions runs a test with each version of the protocol.
func inVersions(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

type object = map[string]any

func TestApplication_Tools(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", version, nil)
		all, err := s.ListTools(t.Context(), nil)
		testkit.Must(t, err)
		got := map[string]string{}
		for _, tool := range all.Tools {
			in, _ := json.Marshal(tool.InputSchema)
			out, _ := json.Marshal(tool.OutputSchema)
			got[tool.Name] = string(in) + " → " + string(out)
		}
		text, number := `{"type":"string"}`, `{"type":"integer"}`
		want := map[string]string{
			"talk": `{"additionalProperties":false,"properties":{"message":` + text + `,"session":` + text + `},"required":["message"],"type":"object"} → ` +
				`{"additionalProperties":false,"properties":{"answer":` + text + `,"session":` + text + `},"required":["answer","session"],"type":"object"}`,
			"pay_back": `{"additionalProperties":false,"properties":{"order":` + number + `},"required":["order"],"type":"object"} → ` +
				`{"additionalProperties":false,"properties":{"receipt":` + text + `},"required":["receipt"],"type":"object"}`,
		}
		for name, schemas := range want {
			if got[name] != schemas {
				t.Errorf("%s:\ngot  %s\nwant %s", name, got[name], schemas)
			}
		}
		if len(got) != 6 {
			t.Errorf("got %d tools: %v", len(got), got)
		}
	})
}

func TestApplication_Results(t *testing.T) {
	line := object{"sku": "a", "quantity": 2.0}
	tests := []struct {
		name string
		args any
		want result
	}{
		{"pay_back", object{"order": 8812}, result{Text: "R 8812", Structured: object{"receipt": "R 8812"}}},
		{"pay_back", object{"order": "8812"}, result{Text: "R 8812", Structured: object{"receipt": "R 8812"}}},
		{"split", object{"lines": []any{line, line}}, result{
			Text:       `{"rows":[{"line":{"sku":"a","quantity":2}},{"line":{"sku":"a","quantity":2}}]}`,
			Structured: object{"rows": []any{object{"line": line}, object{"line": line}}}}},
		{"split", object{"lines": []any{}}, result{Text: `{"rows":[]}`, Structured: object{"rows": []any{}}}},
		{"photo", object{"picture": "/9j/"}, result{Text: `{"picture":"/9j/"}`, Structured: object{"picture": "/9j/"}}},
		{"photo", object{"picture": "data:image/jpeg;base64,/9j/"}, result{Text: `{"picture":"/9j/"}`, Structured: object{"picture": "/9j/"}}},

		{"pay_back", nil, result{Text: "input order (int) is missing", IsError: true}},
		{"pay_back", object{"order": "x"}, result{Text: `input order: expected int, got "x"`, IsError: true}},
		{"pay_back", object{"ordr": 1}, result{Text: `there is no argument "ordr"; did you mean "order"?`, IsError: true}},
		{"split", object{"lines": []any{object{"sku": 1}}}, result{Text: `input lines: [0].sku: expected text, got 1`, IsError: true}},
		{"photo", object{"picture": "http://localhost/x.jpg"}, result{Text: "the argument picture: a file is passed as base64 text", IsError: true}},
		{"letter", object{"order": 1, "tone": "break"}, result{Text: "step write: model clerk: [mock] the model is broken", IsError: true}},
		{"talk", object{"message": "hi", "session": 5}, result{Text: "the argument session must be a text, not 5", IsError: true}},
		{"talk", object{"message": "hi", "session": "a\x00b"}, result{Text: "the argument session has control characters", IsError: true}},
	}
	inVersions(t, func(t *testing.T, version string) {
		s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", version, nil)
		for _, test := range tests {
			if diff := cmp.Diff(test.want, callTool(t, s, test.name, test.args)); diff != "" {
				t.Errorf("%s(%v): -want +got\n%s", test.name, test.args, diff)
			}
		}
	})
}

// A conversation continues with the session of a result, and belongs to its caller.
func TestApplication_Sessions(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		url := serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{}))
		ada, bob := connect(t, url, "ada", version, nil), connect(t, url, "bob", version, nil)
		first := callTool(t, ada, "talk", object{"message": "I am Ada."})
		id, _ := first.Structured.(object)["session"].(string)
		if id == "" || first.Text != first.Structured.(object)["answer"] {
			t.Fatalf("got %+v", first)
		}
		second := callTool(t, ada, "talk", object{"message": "Who am I?", "session": id})
		if !strings.HasPrefix(second.Text, "[mock] I received 3 messages") {
			t.Errorf("with the session the model receives %q", second.Text)
		}
		if other := callTool(t, bob, "talk", object{"message": "Who am I?", "session": id}); !strings.HasPrefix(other.Text, "[mock] I received 1 message") {
			t.Errorf("another caller's session of the same id has %q", other.Text)
		}
		if again := callTool(t, ada, "talk", object{"message": "Hello"}); !strings.HasPrefix(again.Text, "[mock] I received 1 message") {
			t.Errorf("without a session the model receives %q", again.Text)
		}
	})
}

// Progress arrives while the text does: the deltas of the text, then the rows.
func TestApplication_Progress(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		notes := make(chan *sdk.ProgressNotificationParams, 100)
		opts := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) { notes <- req.Params }}
		s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", version, opts)
		params := &sdk.CallToolParams{Name: "talk", Arguments: object{"message": "one two three"}}
		params.SetProgressToken("p")
		r, err := s.CallTool(t.Context(), params)
		testkit.Must(t, err)
		var text string
		var last float64
		for n := <-notes; n.Meta["qtype/event"] != "row"; n = <-notes {
			if n.Meta["qtype/event"] != "text" || n.Meta["qtype/step"] != "help" || n.Progress <= last || n.ProgressToken != "p" {
				t.Errorf("got %+v", n)
			}
			text, last = text+n.Message, n.Progress
		}
		if want := resultOf(r).Text; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	})
}

// The end of a call ends its run.
func TestApplication_Cancel(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		started, ended := make(chan struct{}), make(chan struct{})
		blocking := qtype.WithClientTool("decide", func(ctx context.Context, _ tool.Request) (any, error) {
			close(started)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		})
		s := connect(t, serveHTTP(t, serveApp(t, openApp(t, blocking), mcpserver.ApplicationOptions{AppHandlers: true})), "", version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "complaint", Arguments: object{"order": 1}}); err == nil {
			t.Error("the call returned a result")
		}
		<-ended
	})
}

// A caller sees and calls only what it is allowed to.
func TestApplication_Allowed(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		allowed := func(ctx context.Context, f *spec.Flow) bool {
			return access.PrincipalOf(ctx).Name == "ada" || f.ID == "talk"
		}
		url := serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{Allowed: allowed}))
		for name, want := range map[string]int{"ada": 6, "bob": 1} {
			s := connect(t, url, name, version, nil)
			tools, err := s.ListTools(t.Context(), nil)
			testkit.Must(t, err)
			if len(tools.Tools) != want {
				t.Errorf("%s sees %d tools, want %d", name, len(tools.Tools), want)
			}
			_, err = s.CallTool(t.Context(), &sdk.CallToolParams{Name: "pay_back", Arguments: object{"order": 1}})
			_, promptErr := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "pay_back", Arguments: map[string]string{"order": "1"}})
			if allowed := name == "ada"; (err == nil) != allowed || (promptErr == nil) != allowed {
				t.Errorf("%s: got %v and %v", name, err, promptErr)
			}
		}
	})
}

// Without the option, the document decides: the key allow of a flow.
func TestApplication_AllowOfDocument(t *testing.T) {
	echo := "variables: [{id: x, type: text}], inputs: [x], outputs: [x], steps: [{type: Echo, id: %s, inputs: [x], outputs: [x]}]}\n"
	document := "id: shop\nflows:\n  - {id: open, " + fmt.Sprintf(echo, "a") + "  - {id: closed, allow: [ada], " + fmt.Sprintf(echo, "b")
	app, err := qtype.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", document))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	url := serveHTTP(t, serveApp(t, app, mcpserver.ApplicationOptions{}))
	for name, want := range map[string]int{"ada": 2, "bob": 1, "": 1} {
		all, err := connect(t, url, name, "2026-07-28", nil).ListTools(t.Context(), nil)
		testkit.Must(t, err)
		if len(all.Tools) != want {
			t.Errorf("%q sees %d tools, want %d", name, len(all.Tools), want)
		}
	}
}

func TestApplication_Prompts(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", version, nil)
		all, err := s.ListPrompts(t.Context(), nil)
		testkit.Must(t, err)
		var got []string
		for _, p := range all.Prompts {
			raw, _ := json.Marshal(p)
			got = append(got, string(raw))
		}
		want := []string{
			`{"arguments":[{"name":"order","description":"int","required":true},{"name":"tone","description":"text?"}],"description":"Writes a letter about an order.","name":"letter"}`,
			`{"arguments":[{"name":"order","description":"int","required":true}],"description":"Books a refund.","name":"pay_back"}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, test := range []struct {
			args      map[string]string
			want, err string
		}{
			{args: map[string]string{"order": "7", "tone": "kind"}, want: "Write a kind letter about order 7."},
			{args: map[string]string{"order": "7"}, want: "Write a  letter about order 7."},
			{args: map[string]string{"order": "seven"}, err: `input order: expected int, got "seven"`},
			{err: "input order (int) is missing"},
			{args: map[string]string{"order": "7", "color": "red"}, err: `the prompt has no argument "color"`},
		} {
			r, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "letter", Arguments: test.args})
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v: got error %v, want %s", test.args, err, test.err)
				}
			case err != nil:
				t.Errorf("%v: %v", test.args, err)
			default:
				if got := r.Messages[0].Content.(*sdk.TextContent).Text; got != test.want || r.Messages[0].Role != "user" {
					t.Errorf("%v: got %q, want %q", test.args, got, test.want)
				}
			}
		}
	})
}

func TestApplication_Resources(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		url := serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{}))
		ada, bob := connect(t, url, "ada", version, nil), connect(t, url, "bob", version, nil)
		callTool(t, ada, "talk", object{"message": "I am Ada.", "session": "a/b %"})
		for s, want := range map[*sdk.ClientSession]int{ada: 1, bob: 0} {
			all, err := s.ListResources(t.Context(), nil)
			testkit.Must(t, err)
			if len(all.Resources) != want {
				t.Errorf("got %d resources, want %d", len(all.Resources), want)
			}
		}
		for _, test := range []struct {
			session *sdk.ClientSession
			name    string
			value   string
			want    []string
		}{{ada, "memory", "de", []string{"desk"}}, {ada, "memory", "x", []string{}}, {ada, "session", "", []string{"a/b %"}}, {bob, "session", "", []string{}}} {
			r, err := test.session.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "qtype://memory/{memory}/{session}"},
				Argument: sdk.CompleteParamsArgument{Name: test.name, Value: test.value}, Context: &sdk.CompleteContext{Arguments: map[string]string{"memory": "desk"}}})
			testkit.Must(t, err)
			if diff := cmp.Diff(test.want, r.Completion.Values); diff != "" {
				t.Errorf("%s %q: -want +got\n%s", test.name, test.value, diff)
			}
		}
		uri := "qtype://memory/desk/a%2Fb%20%25"
		all, err := ada.ListResources(t.Context(), nil)
		testkit.Must(t, err)
		if got := all.Resources[0].URI; got != uri {
			t.Errorf("got address %s, want %s", got, uri)
		}
		r, err := ada.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		testkit.Must(t, err)
		var content struct {
			Memory, Session, Policy string
			Window                  struct {
				Used, Limit int
				Unit        string
				Messages    []object
			}
			History []struct {
				Seq     int
				Status  string
				Message object
			}
		}
		testkit.Must(t, json.Unmarshal([]byte(r.Contents[0].Text), &content))
		if content.Session != "a/b %" || content.Policy != "message_window" || content.Window.Limit != 30 || content.Window.Unit != "messages" ||
			len(content.Window.Messages) != 2 || len(content.History) != 2 || content.History[1].Status != "in window" || content.History[0].Message["role"] != "user" {
			t.Errorf("got %s", r.Contents[0].Text)
		}
		for _, other := range []string{uri, "qtype://memory/desk/none", "qtype://memory/none/none", "qtype://memory/desk/ada%2Fa%2Fb%20%25", "file:///etc/passwd", "qtype://memory/desk/%zz"} {
			if r, err := bob.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: other}); err == nil {
				t.Errorf("another caller reads %s: %v", other, r)
			}
		}
	})
}

// failingStore is a store that fails, with a text for the operator.
type failingStore struct{ memory.Store }

func (failingStore) Head(context.Context, store.Key) (store.Head, error) {
	return store.Head{}, errors.New("dial postgres://db.internal: refused")
}

// An error of the server has the code of internal errors, and no text for the operator.
func TestApplication_InternalError(t *testing.T) {
	app, err := qtype.Open(t.Context(), "testdata/app.qtype.yaml", qtype.WithStore(failingStore{memory.NewInProcess()}))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	address := serveHTTP(t, serveApp(t, app, mcpserver.ApplicationOptions{}))
	inVersions(t, func(t *testing.T, version string) {
		s := connect(t, address, "ada", version, nil)
		_, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "qtype://memory/desk/s"})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInternalError || strings.Contains(e.Message, "db.internal") {
			t.Errorf("error %v", err)
		}
		_, err = s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "qtype://memory/none/s"})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("an unknown resource: %v", err)
		}
		_, err = s.CallTool(t.Context(), &sdk.CallToolParams{Name: "none"})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("an unknown tool: %v", err)
		}
	})
}

// Reasoning is progress of another kind, and not part of the result.
func TestApplication_ReasoningProgress(t *testing.T) {
	notes := make(chan *sdk.ProgressNotificationParams, 100)
	opts := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) { notes <- req.Params }}
	s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", "", opts)
	params := &sdk.CallToolParams{Name: "talk", Arguments: object{"message": "ponder"}}
	params.SetProgressToken("p")
	r, err := s.CallTool(t.Context(), params)
	testkit.Must(t, err)
	texts := map[any]string{}
	for n := <-notes; n.Meta["qtype/event"] != "row"; n = <-notes {
		texts[n.Meta["qtype/event"]] += n.Message
	}
	if texts["reasoning"] != "Let me see." || texts["text"] != "Seen." || resultOf(r).Text != "Seen." {
		t.Errorf("got %q and the result %q", texts, resultOf(r).Text)
	}
}
