package mcpserver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/tool"
)

// answering returns the options of a client whose user gives one answer to everything,
// and the questions that the user got.
func answering(answer *sdk.ElicitResult) (opts *sdk.ClientOptions, asked chan string) {
	asked = make(chan string, 10)
	return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked <- req.Params.Message
		return answer, nil
	}}, asked
}

// The user of the client approves calls of tools.
func TestApprove(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		for _, test := range []struct {
			name, want string
			answer     *sdk.ElicitResult
		}{
			{"yes", "The refund was handled.", &sdk.ElicitResult{Action: "accept", Content: object{"approve": true}}},
			{"no", "The refund was handled.", &sdk.ElicitResult{Action: "accept", Content: object{"approve": false, "reason": "too late"}}},
			{"declined", "The refund was handled.", &sdk.ElicitResult{Action: "decline"}},
			{"dismissed", "The refund was handled.", &sdk.ElicitResult{Action: "cancel"}},
		} {
			t.Run(test.name, func(t *testing.T) {
				opts, asked := answering(test.answer)
				app := openApp(t)
				s := connect(t, serveHTTP(t, serveApp(t, app, mcpserver.ApplicationOptions{})), "", version, opts)
				got := callTool(t, s, "talk", object{"message": "Refund order 8812", "session": "me"})
				if got.Text != test.want || got.IsError {
					t.Fatalf("got %+v, want %s", got, test.want)
				}
				if want := "May the tool refund be called? Pays an order back.\nArguments: {\"order\":8812}"; <-asked != want {
					t.Errorf("the question differs from %q", want)
				}
				var results []string
				for e, err := range app.Memory("desk").History(t.Context(), "me") {
					testkit.Must(t, err)
					if e.Message.Role == "tool" {
						results = append(results, e.Message.Text())
					}
				}
				outcome := map[string]string{"yes": "R 8812", "no": "the user rejected the call: too late", "declined": "the user rejected the call", "dismissed": "dismissed"}
				if len(results) != 1 || !strings.Contains(results[0], outcome[test.name]) {
					t.Errorf("the model got %q", results)
				}
			})
		}
	})
}

// The user of the client answers for client tools; lists and records are JSON.
func TestHandleClientTool(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		for _, test := range []struct {
			answer *sdk.ElicitResult
			want   result
		}{
			{&sdk.ElicitResult{Action: "accept", Content: object{"pay": true, "note": "fine", "lines": `[{"sku": "a", "quantity": 1}]`}}, result{
				Text:       `{"order":1,"pay":true,"note":"fine","lines":[{"sku":"a","quantity":1}]}`,
				Structured: object{"order": 1.0, "pay": true, "note": "fine", "lines": []any{object{"sku": "a", "quantity": 1.0}}}}},
			{&sdk.ElicitResult{Action: "accept", Content: object{"pay": false}}, result{
				Text: `{"order":1,"pay":false}`, Structured: object{"order": 1.0, "pay": false}}},
			{&sdk.ElicitResult{Action: "decline"}, result{Text: "step ask: tool decide: the user declined to answer", IsError: true}},
			{&sdk.ElicitResult{Action: "accept", Content: object{"pay": true, "lines": "["}}, result{
				Text: "step ask: tool decide: the answer lines: it is not JSON: 1:2: unexpected end", IsError: true}},
		} {
			opts, _ := answering(test.answer)
			s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", version, opts)
			got := callTool(t, s, "complaint", object{"order": 1})
			if test.want.IsError && strings.HasPrefix(got.Text, test.want.Text[:40]) {
				test.want.Text = got.Text // the end is the wording of other packages
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
	})
}

// A client without elicitation gets an error that names what is missing: a result, or the error of protocol 2026-07-28.
func TestHandleClientTool_Unsupported(t *testing.T) {
	inVersions(t, func(t *testing.T, version string) {
		s := connect(t, serveHTTP(t, serveApp(t, openApp(t), mcpserver.ApplicationOptions{})), "", version, nil)
		if version >= "2026-07-28" {
			_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "complaint", Arguments: object{"order": 1}})
			got := new(jsonrpc.Error)
			if !errors.As(err, &got) || got.Code != -32021 || string(got.Data) != `{"requiredCapabilities":{"elicitation":{"form":{}}}}` ||
				!strings.HasPrefix(got.Message, "the MCP client does not support elicitation") {
				t.Errorf("got %v with data %s", err, got.Data)
			}
			return
		}
		got := callTool(t, s, "complaint", object{"order": 1})
		if !got.IsError || !strings.Contains(got.Text, "the MCP client does not support elicitation") {
			t.Errorf("got %+v", got)
		}
	})
}

// A run that waits for an answer belongs to its caller, is answered once, and ends
// after the timeout or with the server.
func TestApplication_Parked(t *testing.T) {
	app := openApp(t)
	server := serveApp(t, app, mcpserver.ApplicationOptions{AnswerTimeout: time.Hour})
	url := serveHTTP(t, server)
	manual := func(name string) *sdk.ClientSession {
		opts, _ := answering(nil)
		opts.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
		return connect(t, url, name, "2026-07-28", opts)
	}
	ada, bob := manual("ada"), manual("bob")
	ask := func() string {
		r, err := ada.CallTool(t.Context(), &sdk.CallToolParams{Name: "complaint", Arguments: object{"order": 1}})
		testkit.Must(t, err)
		if !r.NeedsInput() || r.RequestState == "" {
			t.Fatalf("got %+v", resultOf(r))
		}
		return r.RequestState
	}
	answer := func(s *sdk.ClientSession, tool, state, key string) (*sdk.CallToolResult, error) {
		return s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: object{"order": 1}, RequestState: state,
			InputResponses: sdk.InputResponseMap{key: &sdk.ElicitResult{Action: "accept", Content: object{"pay": true}}}})
	}
	refused := func(s *sdk.ClientSession, tool, state string) {
		t.Helper()
		_, err := answer(s, tool, state, "answer")
		if got := new(jsonrpc.Error); !errors.As(err, &got) || got.Code != jsonrpc.CodeInvalidParams || !strings.HasPrefix(got.Message, "no run waits for this answer") {
			t.Errorf("got %v", err)
		}
	}
	state := ask()
	refused(bob, "complaint", state)
	refused(ada, "pay_back", state)
	refused(ada, "complaint", state+"x")
	again, err := answer(ada, "complaint", state, "other")
	testkit.Must(t, err)
	if !again.NeedsInput() || again.RequestState == "" || again.RequestState == state {
		t.Errorf("a request without the answer: got %+v, want the question again", resultOf(again))
	}
	got, err := answer(ada, "complaint", again.RequestState, "answer")
	testkit.Must(t, err)
	if got.IsError || got.NeedsInput() {
		t.Errorf("got %+v", resultOf(got))
	}
	refused(ada, "complaint", again.RequestState) // a second time
	ask()                                         // ends with the server: the test checks that no goroutine is left
}

// A run that gets no answer in time ends.
func TestApplication_AnswerTimeout(t *testing.T) {
	ended := make(chan error, 1)
	watched := qtype.WithClientTool("decide", func(ctx context.Context, call tool.Request) (any, error) {
		answer, err := mcpserver.HandleClientTool(ctx, call)
		ended <- err
		return answer, err
	})
	server := serveApp(t, openApp(t, watched), mcpserver.ApplicationOptions{AnswerTimeout: time.Millisecond, AppHandlers: true})
	opts, _ := answering(nil)
	opts.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
	s := connect(t, serveHTTP(t, server), "", "2026-07-28", opts)
	params := &sdk.CallToolParams{Name: "complaint", Arguments: object{"order": 1}}
	r, err := s.CallTool(t.Context(), params)
	testkit.Must(t, err)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	params.RequestState = r.RequestState
	if _, err = s.CallTool(t.Context(), params); err == nil || !strings.Contains(err.Error(), "no run waits for this answer") {
		t.Errorf("got %v", err)
	}
}

// Without a run of an MCP client there is no user to answer.
func TestHandleClientTool_NoClient(t *testing.T) {
	in := slices.Values([]runtime.Input{runtime.Row(object{"order": 1})})
	for row, err := range openApp(t, qtype.WithClientTool("", mcpserver.HandleClientTool)).Run(t.Context(), "complaint", in) {
		testkit.Must(t, err)
		if row.Err == nil || !strings.Contains(row.Err.Error(), "the run was not started by an MCP client") {
			t.Errorf("got %v", row.Err)
		}
	}
}

// A call that a role decides fails for a client without the role, which cannot wait for others.
func TestApprove_ByRole(t *testing.T) {
	call := tool.Request{Tool: tool.Info{Name: "refund"}, Args: []byte("{}"), By: []string{"role:desk"}}
	for role, want := range map[string]string{"guest": "a call of refund is decided by role:desk", "desk": "the run was not started by an MCP client"} {
		ctx := access.WithPrincipal(t.Context(), access.Principal{Name: "ada", Roles: []string{role}})
		if yes, _, err := mcpserver.Approve(ctx, call); yes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", role, yes, err)
		}
	}
}
