package a2a_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

// connect returns the client of the Go SDK for the agent at an address. key may be empty.
func connect(t *testing.T, address, key string) *a2aclient.Client {
	t.Helper()
	httpClient := &http.Client{Transport: withKey{key}}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	card, err := agentcard.NewResolver(httpClient).Resolve(t.Context(), address)
	testkit.Must(t, err)
	c, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithJSONRPCTransport(httpClient))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = c.Destroy() })
	return c
}

// withKey sends an API key with each request.
type withKey struct{ key string }

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-API-Key", k.key)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func say(text string) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))}
}

// with sets the skill, context or task of a message.
func with(req *sdk.SendMessageRequest, change func(*sdk.Message)) *sdk.SendMessageRequest {
	change(req.Message)
	return req
}

func skill(id string) func(*sdk.Message) {
	return func(m *sdk.Message) { m.SetMeta("skill", id) }
}

func send(t *testing.T, c *a2aclient.Client, req *sdk.SendMessageRequest) *sdk.Task {
	t.Helper()
	res, err := c.SendMessage(t.Context(), req)
	testkit.Must(t, err)
	task, ok := res.(*sdk.Task)
	if !ok {
		t.Fatalf("result %T", res)
	}
	return task
}

func answer(task *sdk.Task) string {
	var b strings.Builder
	for _, a := range task.Artifacts {
		if a.ID != "answer" {
			continue
		}
		for _, p := range a.Parts {
			b.WriteString(p.Text())
		}
	}
	return b.String()
}

func TestGoClient_Turns(t *testing.T) {
	_, address := serve(t, memory.NewInProcess(), nil)
	c := connect(t, address, "")
	context := ""
	for range 3 {
		task := send(t, c, with(say("hello"), func(m *sdk.Message) { m.ContextID = context }))
		if task.Status.State != sdk.TaskStateCompleted || !strings.Contains(answer(task), "hello") {
			t.Fatalf("task %+v: %q", task.Status, answer(task))
		}
		if context != "" && task.ContextID != context {
			t.Errorf("context %q, want %q", task.ContextID, context)
		}
		context = task.ContextID
	}
	list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: context})
	testkit.Must(t, err)
	if list.TotalSize != 3 || len(list.Tasks) != 3 {
		t.Errorf("listed %+v", list)
	}
	first, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: context, PageSize: 2})
	testkit.Must(t, err)
	send(t, c, with(say("hello"), func(m *sdk.Message) { m.ContextID = context })) // moves the others back
	rest, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: context, PageSize: 2, PageToken: first.NextPageToken})
	testkit.Must(t, err)
	if len(rest.Tasks) != 1 || rest.Tasks[0].ID != list.Tasks[2].ID || rest.NextPageToken != "" {
		t.Errorf("the second page: %+v", rest)
	}
}

func TestGoClient_Stream(t *testing.T) {
	_, address := serve(t, memory.NewInProcess(), nil)
	c := connect(t, address, "")
	var states []sdk.TaskState
	var text strings.Builder
	for ev, err := range c.SendStreamingMessage(t.Context(), say("think")) {
		testkit.Must(t, err)
		switch e := ev.(type) {
		case *sdk.Task:
			states = append(states, e.Status.State)
		case *sdk.TaskStatusUpdateEvent:
			states = append(states, e.Status.State)
		case *sdk.TaskArtifactUpdateEvent:
			text.WriteString(e.Artifact.Parts[0].Text())
		}
	}
	if text.String() != "Thought about it." || len(states) != 3 || states[2] != sdk.TaskStateCompleted {
		t.Errorf("%q %v", text.String(), states)
	}
}

// A task that waits when the server shuts down is continued by the next server.
func TestTask_SurvivesRestart(t *testing.T) {
	store := memory.NewInProcess()
	first, address := serve(t, store, nil)
	task := send(t, connect(t, address, ""), with(say("refund order 8812"), skill("help")))
	if task.Status.State != sdk.TaskStateInputRequired {
		t.Fatalf("state %s", task.Status.State)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	testkit.Must(t, first.Shutdown(ctx))

	second, address := serve(t, store, nil)
	c := connect(t, address, "")
	stored, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID})
	testkit.Must(t, err)
	if stored.Status.State != sdk.TaskStateInputRequired || stored.ContextID != task.ContextID {
		t.Fatalf("stored task %+v", stored)
	}
	if n, err := second.Resume(t.Context()); n != 1 || err != nil {
		t.Fatalf("resumed %d, %v", n, err)
	}
	waitFor(t, c, task.ID, sdk.TaskStateInputRequired)
	done := send(t, c, with(say("approve"), func(m *sdk.Message) { m.TaskID = task.ID }))
	if done.Status.State != sdk.TaskStateCompleted || !strings.Contains(answer(done), "R8812") {
		t.Errorf("task %+v: %q", done.Status, answer(done))
	}
}

// waitFor follows a task until it has a state.
func waitFor(t *testing.T, c *a2aclient.Client, id sdk.TaskID, state sdk.TaskState) {
	t.Helper()
	for ev, err := range c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: id}) {
		testkit.Must(t, err)
		if task, ok := ev.(*sdk.Task); ok && task.Status.State == state {
			return
		}
		if update, ok := ev.(*sdk.TaskStatusUpdateEvent); ok && update.Status.State == state {
			return
		}
	}
	t.Fatalf("task %s never was %s", id, state)
}

// Two servers over one store: one continues what the other has started.
func TestTask_OtherServer(t *testing.T) {
	store := memory.NewInProcess()
	_, one := serve(t, store, nil)
	_, two := serve(t, store, nil)
	task := send(t, connect(t, one, ""), with(say("refund order 7"), skill("help")))
	other := connect(t, two, "")
	done := send(t, other, with(say("approve"), func(m *sdk.Message) { m.TaskID = task.ID }))
	if done.Status.State != sdk.TaskStateCompleted || !strings.Contains(answer(done), "R7") {
		t.Errorf("task %+v: %q", done.Status, answer(done))
	}
	task = send(t, connect(t, one, ""), with(say("refund order 8"), skill("help")))
	cancelled, err := other.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID})
	testkit.Must(t, err)
	if cancelled.Status.State != sdk.TaskStateCanceled {
		t.Errorf("state %s", cancelled.Status.State)
	}
}

func keys(t *testing.T) *access.Control {
	t.Helper()
	c, err := access.New(access.Config{Keys: "ada:" + strings.Repeat("a", 32) + ",eve:" + strings.Repeat("e", 32)})
	testkit.Must(t, err)
	return c
}

// A caller sees only its own tasks and contexts, whichever ids it sends.
func TestTask_Isolation(t *testing.T) {
	_, address := serve(t, memory.NewInProcess(), keys(t))
	ada, eve := connect(t, address, strings.Repeat("a", 32)), connect(t, address, strings.Repeat("e", 32))
	task := send(t, ada, with(say("refund order 1"), func(m *sdk.Message) { m.SetMeta("skill", "help"); m.ContextID = "c" }))
	if _, err := eve.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := eve.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("cancel: %v", err)
	}
	if _, err := eve.SendMessage(t.Context(), with(say("approve"), func(m *sdk.Message) { m.TaskID = task.ID })); !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("send: %v", err)
	}
	for _, err := range eve.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: task.ID}) {
		if !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("subscribe: %v", err)
		}
	}
	list, err := eve.ListTasks(t.Context(), &sdk.ListTasksRequest{})
	testkit.Must(t, err)
	if list.TotalSize != 0 {
		t.Errorf("eve sees %+v", list)
	}
	mine := send(t, eve, with(say("hello"), func(m *sdk.Message) { m.SetMeta("skill", "talk"); m.ContextID = "c" }))
	if !strings.Contains(answer(mine), "1 message") {
		t.Errorf("eve's context has %q", answer(mine))
	}
}

func TestCard_Authentication(t *testing.T) {
	_, address := serve(t, memory.NewInProcess(), keys(t))
	res, err := http.Get(address + "/.well-known/agent-card.json")
	testkit.Must(t, err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the card was answered with %d", res.StatusCode)
	}
	c := connect(t, address, strings.Repeat("a", 32))
	card, err := c.GetExtendedAgentCard(t.Context(), &sdk.GetExtendedAgentCardRequest{})
	testkit.Must(t, err)
	if len(card.SecuritySchemes) != 2 || len(card.SecurityRequirements) != 2 || !card.Capabilities.ExtendedAgentCard {
		t.Errorf("card %+v", card)
	}
}

// Calls have the limits of other requests: bodies, and streams of a caller.
func TestRPC_Limits(t *testing.T) {
	control, err := access.New(access.Config{Limits: access.Limits{BodyBytes: 4096, Streams: 1}})
	testkit.Must(t, err)
	_, address := serve(t, memory.NewInProcess(), control)
	large := `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"` + strings.Repeat("x", 8192) + `"}}`
	if status, _ := call(t, address+"/a2a", large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: status %d", status)
	}
	next, stop := iter.Pull2(connect(t, address, "").SendStreamingMessage(t.Context(), say("slowly")))
	if _, err, ok := next(); err != nil || !ok {
		t.Fatalf("first stream: %v", err)
	}
	second := `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"x"}]}}}`
	if status, _ := call(t, address+"/a2a", second); status != http.StatusTooManyRequests {
		t.Errorf("second stream: status %d", status)
	}
	stop()
}

// An operator may publish the card; calls need a key nevertheless.
func TestCard_Public(t *testing.T) {
	control, err := access.New(access.Config{Keys: "ada:" + strings.Repeat("a", 32), PublicAgentCard: true})
	testkit.Must(t, err)
	_, address := serve(t, memory.NewInProcess(), control)
	card, err := agentcard.NewResolver(http.DefaultClient).Resolve(t.Context(), address)
	testkit.Must(t, err)
	if len(card.Skills) == 0 || len(card.SecurityRequirements) != 2 {
		t.Errorf("card %+v", card)
	}
	if status, _ := call(t, address+"/a2a", `{}`); status != http.StatusUnauthorized {
		t.Errorf("a call without a key: status %d", status)
	}
}

// The card has the address by which the client reaches the server: its host, and the prefix that a
// trusted proxy removes.
func TestCard_BelowPrefix(t *testing.T) {
	control, err := access.New(access.Config{Proxies: []string{"127.0.0.1"}})
	testkit.Must(t, err)
	_, address := serve(t, memory.NewInProcess(), control)
	backend, err := url.Parse(address)
	testkit.Must(t, err)
	proxy := httptest.NewServer(http.StripPrefix("/bot", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(backend)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
		r.Out.Header.Set("X-Forwarded-Prefix", "/bot")
	}}))
	t.Cleanup(proxy.Close)
	card, err := agentcard.NewResolver(http.DefaultClient).Resolve(t.Context(), proxy.URL+"/bot")
	testkit.Must(t, err)
	if got := card.SupportedInterfaces[0].URL; got != proxy.URL+"/bot/a2a" {
		t.Errorf("the card has the address %s", got)
	}
	if task := send(t, connect(t, proxy.URL+"/bot", ""), say("hello")); !strings.Contains(answer(task), "hello") {
		t.Errorf("answer %q", answer(task))
	}
}

// call sends a body and returns the code of the error of JSON-RPC, 0 for a result.
func call(t *testing.T, address, body string, headers ...string) (status, code int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	testkit.Must(t, err)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		_, raw, _ = bytes.Cut(raw, []byte("data: "))
	}
	var out struct{ Error *struct{ Code int } }
	_ = json.Unmarshal(raw, &out)
	if out.Error == nil {
		return res.StatusCode, 0
	}
	return res.StatusCode, out.Error.Code
}

func TestRPC_Errors(t *testing.T) {
	_, address := serve(t, memory.NewInProcess(), nil)
	rpc := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	for _, tt := range []struct {
		name, body string
		code       int
		headers    []string
	}{
		{"not JSON", `{`, -32700, nil},
		{"no version of JSON-RPC", `{"id":1,"method":"GetTask"}`, -32600, nil},
		{"unknown method", rpc("Nothing", `{}`), -32601, nil},
		{"unknown former method", rpc("tasks/nothing", `{}`), -32601, nil},
		{"wrong type", rpc("GetTask", `{"id":1}`), -32602, nil},
		{"no id", rpc("GetTask", `{}`), -32602, nil},
		{"unknown task", rpc("GetTask", `{"id":"../x"}`), -32001, nil},
		{"no message", rpc("SendMessage", `{}`), -32602, nil},
		{"no parts", rpc("SendMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[]}}`), -32602, nil},
		{"null part", rpc("SendMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[null]}}`), -32602, nil},
		{"role of the agent", rpc("SendMessage", `{"message":{"messageId":"1","role":"ROLE_AGENT","parts":[{"text":"x"}]}}`), -32602, nil},
		{"context with a control character", rpc("SendMessage", `{"message":{"messageId":"1","contextId":"\u0000","role":"ROLE_USER","parts":[{"text":"x"}]}}`), -32602, nil},
		{"stream without a message", rpc("SendStreamingMessage", `{}`), -32602, nil},
		{"push", rpc("CreateTaskPushNotificationConfig", `{"taskId":"x"}`), -32003, nil},
		{"former push", rpc("tasks/pushNotificationConfig/set", `{"taskId":"x","pushNotificationConfig":{"url":"http://127.0.0.1"}}`), -32003, nil},
		{"former file", rpc("message/send", `{"message":{"messageId":"1","role":"user","parts":[{"kind":"file","file":{"bytes":"%"}}]}}`), -32602, nil},
		{"former file without content", rpc("message/send", `{"message":{"messageId":"1","role":"user","parts":[{"kind":"file","file":{}}]}}`), -32602, nil},
		{"former part of an unknown kind", rpc("message/stream", `{"message":{"messageId":"1","role":"user","parts":[{"kind":"x"}]}}`), -32602, nil},
		{"part without content", rpc("SendMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{}]}}`), -32602, nil},
		{"bytes that are not base64", rpc("SendStreamingMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"raw":"%"}]}}`), -32602, nil},
		{"no JSON", `{`, -32700, nil},
		{"no body", ``, -32700, nil},
		{"batch", "[" + rpc("GetTask", `{"id":"x"}`) + "]", -32600, nil},
		{"text", `"GetTask"`, -32600, nil},
		{"number as method", `{"jsonrpc":"2.0","id":1,"method":1,"params":{}}`, -32600, nil},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"GetTask"}`, -32602, nil},
		{"no params for a list", `{"jsonrpc":"2.0","id":1,"method":"ListTasks"}`, 0, nil},
		{"no params, unknown method", `{"jsonrpc":"2.0","id":1,"method":"Nothing"}`, -32601, nil},
		{"state", rpc("ListTasks", `{"status":"x"}`), -32602, nil},
		{"history", rpc("GetTask", `{"id":"x","historyLength":-1}`), -32602, nil},
		{"former role", rpc("message/send", `{"message":{"messageId":"1","role":"agent","parts":[{"kind":"text","text":"x"}]}}`), -32602, nil},
		{"former message", rpc("message/send", `{}`), -32602, nil},
		{"former stream", rpc("message/stream", `{}`), -32602, nil},
		{"former task", rpc("tasks/resubscribe", `{"id":"x"}`), -32001, nil},
		{"former list", rpc("tasks/list", `{}`), -32601, nil},
		{"former card", rpc("agent/getAuthenticatedExtendedCard", `{}`), -32007, nil},
		{"page", rpc("ListTasks", `{"pageSize":1000}`), -32602, nil},
		{"token", rpc("ListTasks", `{"pageToken":"x"}`), -32602, nil},
		{"version", rpc("GetTask", `{"id":"x"}`), -32009, []string{"A2A-Version", "7.0"}},
		{"card", rpc("GetExtendedAgentCard", `{}`), -32004, nil},
	} {
		if status, code := call(t, address+"/a2a", tt.body, tt.headers...); code != tt.code || status != http.StatusOK {
			t.Errorf("%s: status %d, code %d, want %d", tt.name, status, code, tt.code)
		}
	}
	if status, _ := call(t, address+"/flows/nothing/a2a", `{}`); status != http.StatusNotFound {
		t.Errorf("unknown flow: status %d", status)
	}
	if status, _ := call(t, address+"/a2a", `{}`, "Content-Type", "text/plain"); status != http.StatusUnsupportedMediaType {
		t.Errorf("text: status %d", status)
	}
}
