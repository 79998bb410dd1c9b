package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// approvalRequest is an item of OpenAI's Responses API.
const approvalRequest = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"erase","arguments":"{\"page\": 7}"}`

// askingProvider is a server with the Responses API that asks before it calls a tool. It keeps the decisions.
type askingProvider struct {
	*httptest.Server
	mu        sync.Mutex
	requests  int
	decisions []string
}

func newAskingProvider(t *testing.T) *askingProvider {
	p := &askingProvider{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	t.Cleanup(func() { testkit.CloseServer(p.Server) })
	return p
}

func (p *askingProvider) answer(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	raw, _ := io.ReadAll(r.Body) // a short read is no JSON
	var body struct{ Input []json.RawMessage }
	if err := json.Unmarshal(raw, &body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	items := approvalRequest
	if strings.Contains(string(raw), "twice") {
		items += "," + strings.Replace(approvalRequest, "mcpr_1", "mcpr_2", 1)
	}
	for _, item := range body.Input {
		var decision struct {
			Type    string
			Approve bool
		}
		_ = json.Unmarshal(item, &decision) // it was decoded
		if decision.Type != "mcp_approval_response" {
			continue
		}
		if !strings.Contains(string(raw), approvalRequest) {
			http.Error(w, "the request came not back as it was", http.StatusBadRequest)
			return
		}
		p.decisions = append(p.decisions, string(item))
		call := `{"type":"mcp_call","id":"mcp_1","approval_request_id":"mcpr_1","server_label":"docs","name":"erase","arguments":"{}","output":"ok"},`
		text := "Erased."
		if !decision.Approve {
			call, text = "", "Kept."
		}
		items = call + `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"response","status":"completed","output":[%s]}`, items)
}

// expectDecision checks the only decision and the number of requests.
func (p *askingProvider) expectDecision(t *testing.T, want string, requests int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := strings.Join(p.decisions, "\n"); got != want || p.requests != requests {
		t.Errorf("%d requests, and the decisions\n%s\nwant %d and\n%s", p.requests, got, requests, want)
	}
	p.decisions, p.requests = nil, 0
}

const hostedDocument = `id: wiki
auths: [{type: api_key, id: k, api_key: "${QTYPE_TEST_UNSET_KEY:-secret-key}"}]
memories: [{id: desk, policy: message_window, max_messages: 20}]
models: [{type: Model, id: writer, provider: openai, api: responses, model_id: some-model, base_url: "%s/v1", auth: k}]
tools: [{type: HostedTool, id: pages, hosted: mcp, settings: {server_label: docs, server_url: "https://docs.example/mcp"}}]
flows:
  - id: talk
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: writer, memory: desk, tools: [pages], approve: [pages], inputs: [message], outputs: [answer]}]
`

const (
	approvedCall = `{"approval_request_id":"mcpr_1","approve":true,"type":"mcp_approval_response"}`
	rejectedCall = `{"approval_request_id":"mcpr_1","approve":false,"reason":"error: pages was not called: the user rejected the call: not on Sundays","type":"mcp_approval_response"}`
)

// TestHostedApproval: calls of a provider are approved and rejected as those of other tools.
func TestHostedApproval(t *testing.T) {
	p := newAskingProvider(t)
	inFolder(t, map[string]string{"wiki.qtype.yaml": fmt.Sprintf(hostedDocument, p.URL)})
	run := func(want int, text string, args ...string) {
		t.Helper()
		out, code := call(t, append([]string{"run", "wiki.qtype.yaml", "-i", `"Erase page 7"`}, args...)...)
		if code != want || !strings.Contains(out, text) {
			t.Errorf("%v: status %d, want %d: %s", args, code, want, out)
		}
	}
	run(cli.ExitDone, "Erased.", "--session", "a", "--approve", "pages", "--audit-log", "a.jsonl")
	p.expectDecision(t, approvedCall, 2)
	records := auditRecords(t, "a.jsonl")
	if len(records) != 1 || describeRecord(records[0]) != "approval talk.help pages a approved" || string(records[0].Arguments) != `{"arguments":{"page":7},"name":"erase"}` {
		t.Errorf("the audit log has %+v", records)
	}
	run(exitSuspended, "", "--session", "b", "--suspend", "wait.json")
	run(cli.ExitDone, "Erased.", "--session", "b", "--suspend", "wait.json", "--answer", "1=yes")
	p.expectDecision(t, approvedCall, 2)
	run(exitSuspended, "", "--session", "c", "--suspend", "wait.json")
	run(cli.ExitDone, "Kept.", "--session", "c", "--suspend", "wait.json", "--answer", "1=not on Sundays")
	p.expectDecision(t, rejectedCall, 2)
	run(cli.ExitDone, "Kept.", "--session", "c", "--approve", "pages") // the next turn has the decision of the first one
	p.expectDecision(t, rejectedCall, 1)
}

// TestHostedApproval_Repeated: approvals of equal calls are not equal results, which a note would follow.
func TestHostedApproval_Repeated(t *testing.T) {
	p := newAskingProvider(t)
	inFolder(t, map[string]string{"wiki.qtype.yaml": strings.Replace(fmt.Sprintf(hostedDocument, p.URL), "type: Agent,", "type: Agent, max_repeated_calls: 2,", 1)})
	if out, _ := call(t, "run", "wiki.qtype.yaml", "-i", `"Erase page 7 twice"`, "--ephemeral", "--approve", "pages"); !strings.Contains(out, "Erased.") {
		t.Error(out)
	}
	p.expectDecision(t, approvedCall+"\n"+strings.Replace(approvedCall, "mcpr_1", "mcpr_2", 1), 2)
}
