package temporal

import (
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// refunds is a document with two flows.
const refunds = `id: shop
models: [{type: Model, id: m, provider: mock, rules: [{text: fine}]}]
tools: [{type: APITool, id: pay, name: pay, description: Pays., endpoint: "https://shop.example/pay", method: POST, inputs: [{id: order, type: text}], outputs: [{id: paid, type: text}]}]
flows:
  - id: ask
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, system_message: Be brief., inputs: [text], outputs: [answer]}]
  - id: refund
    variables: [{id: order, type: text}, {id: paid, type: text}]
    inputs: [order]
    outputs: [paid]
    steps: [{type: InvokeTool, id: call, tool: pay, input_bindings: {order: order}, output_bindings: {paid: paid}}]
`

// TestQueueOf checks which changes of a document make workers of the former version useless for a flow.
func TestQueueOf(t *testing.T) {
	t.Chdir(t.TempDir())
	queues := func(text string) (names []string) {
		testkit.Must(t, os.WriteFile("app.qtype.yaml", []byte(text), 0o600))
		p, list := qtype.Check(t.Context(), "app.qtype.yaml")
		testkit.Must(t, list.Err())
		app := p.Document.Application
		for _, f := range app.Flows {
			names = append(names, queueOf(app, f, nil))
		}
		return names
	}
	was := queues(refunds)
	for name, test := range map[string]struct {
		old, new    string
		ask, refund bool // whether the queues of the flows change
	}{
		"a comment":               {"flows:", "flows: # of the shop", false, false},
		"retries":                 {"provider: mock,", "provider: mock, retry: {max_attempts: 5},", false, false},
		"a tool":                  {"description: Pays.", "description: Pays back.", false, true},
		"a prompt":                {"Be brief.", "Be very brief.", true, false},
		"the steps of both flows": {"id: ", "id: x_", true, true},
	} {
		text := strings.Replace(refunds, test.old, test.new, 1)
		if name == "the steps of both flows" {
			text = strings.Replace(strings.Replace(refunds, "id: say", "id: tell", 1), "id: call", "id: give", 1)
		}
		now := queues(text)
		if ask, refund := now[0] != was[0], now[1] != was[1]; ask != test.ask || refund != test.refund {
			t.Errorf("%s: the queues have changed: %v, %v", name, ask, refund)
		}
	}
}
