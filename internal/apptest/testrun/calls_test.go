package testrun_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/loader"
)

// shop has an agent without a memory and a step that calls a tool.
const shop = `id: app
models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {match: refund, after: user, tool_calls: [{name: refund, arguments: {number: 7, amount: 2.50}}]}
      - {text: done}
tools:
  - {type: ClientTool, id: look_up, name: find, description: Finds an order., inputs: [{id: number, type: int}], outputs: [{id: state, type: text}]}
  - {type: ClientTool, id: pay_back, name: refund, description: Refunds., inputs: [{id: number, type: int}, {id: amount, type: float}], outputs: [{id: receipt, type: text}]}
flows:
  - id: main
    variables: [{id: number, type: int}, {id: state, type: text}, {id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [number, question]
    outputs: [answer]
    steps:
      - {type: InvokeTool, id: look, tool: look_up, input_bindings: {number: number}, output_bindings: {state: state}}
      - {type: Agent, id: act, model: clerk, tools: [pay_back], approve: [pay_back], inputs: [question], outputs: [answer]}
`

func TestRun_Calls(t *testing.T) {
	for turn, want := range map[string][]string{
		`calls: [{id: look_up, calls: 1, arguments: {number: 7}}, {id: pay_back, calls: 1, rejected: 0, arguments: {amount: 2.5}}], call_order: [look_up, pay_back]`: nil,
		`reject: [pay_back], calls: [{id: pay_back, calls: 1, rejected: 1}], sent: [{id: clerk, calls: 2, some_contain: [refund please, user rejected the call]}]`:   nil,
		`call_order: [pay_back, look_up]`:                      {"QT803 tool find was not called after pay_back"},
		`calls: [{id: look_up, calls: 2, rejected: 1}]`:        {"QT803 tool find was called 1 time, not 2", "QT803 0 calls of tool find rejected, not 1"},
		`calls: [{id: pay_back, arguments: {amount: 3}}]`:      {"QT803 no call of tool refund has these arguments"},
		`sent: [{id: clerk, some_contain: [elephant]}]`:        {`QT803 none of 2 requests to clerk contains "elephant"`},
		`calls: [{id: look_up}, {id: look_up, arguments: {}}]`: {"QT802 nothing is asserted on the calls of tool look_up", "QT802 nothing is asserted on the calls of tool look_up"},
		`calls: [{id: look_up, function: found, calls: 0}]`:    {`QT801 tool look_up has no function "found"`},
		`reject: [look_up]`:                                    {"QT802 no agent of flow main has tool look_up under approve: its calls cannot be rejected"},
		`call_order: []`:                                       {"QT802 an empty call_order asserts nothing"},
		`calls: [{id: pay}], call_order: [x], reject: [y]`:     {`QT801 no tool has the id "y"`, `QT801 no tool has the id "x"`, `QT801 no tool has the id "pay"`},
	} {
		folder := t.TempDir()
		tests := "tools: [{id: look_up, result: {state: sent}}, {id: pay_back, result: {receipt: R1}}]\n" +
			"tests: [{name: one, turns: [{inputs: {number: 7, question: refund please}, " + turn + "}]}]\n"
		for name, text := range map[string]string{"app.qtype.yaml": shop, "app.qtype-test.yaml": tests} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file, list := testrun.Load(t.Context(), filepath.Join(folder, "app.qtype-test.yaml"), loader.Options{}, open)
		if list.Errors() == 0 {
			for _, one := range file.Tests(nil) {
				list = append(list, file.Run(t.Context(), one).Diagnostics...)
			}
		}
		got := messagesOf(list)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", turn, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
