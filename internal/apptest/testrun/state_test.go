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

// desk has an agent that cancels orders, and another tool that lists them.
const desk = `id: app
models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {after: tool, echo: true}
      - {match: 'cancel (\d+)', tool_calls: [{name: cancel, arguments: {number: "$1"}}]}
      - {match: 'list', tool_calls: [{name: list, arguments: {}}]}
tools:
  - {type: ClientTool, id: cancel, name: cancel, description: Cancels an order., inputs: [{id: number, type: text}], outputs: [{id: state, type: text}]}
  - {type: ClientTool, id: list, name: list, description: Lists orders., inputs: [], outputs: [{id: orders, type: any}]}
flows:
  - id: main
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: Agent, id: act, model: clerk, tools: [cancel, list], inputs: [question], outputs: [answer]}
`

// TestRun_State runs mocks that read and change tables.
func TestRun_State(t *testing.T) {
	const state = "state: {orders: [{number: '7', state: new}, {number: '8', state: sent}], log: []}\n"
	const tools = `tools:
  - {id: cancel, table: orders, where: {number: $number, state: new}, set: {state: cancelled}}
  - {id: cancel, table: orders, where: {number: $number}, error: too late}
  - {id: cancel, error: no such order}
  - {id: list, table: orders, where: {}, result: {orders: $rows}}
`
	for name, c := range map[string]struct {
		file, turns string
		want        []string
	}{
		"changed":          {state + tools, `[{input: cancel 7, expect: ['answer.text contains "cancelled"'], state: [{table: orders, where: {state: cancelled}, rows: 1}, {table: orders, rows: 2}, {table: log, rows: 0}]}]`, nil},
		"guarded":          {state + tools, `[{input: cancel 8, expect: ['answer.text contains "too late"'], state: [{table: orders, where: {number: "8", state: sent}}]}]`, nil},
		"unknown":          {state + tools, `[{input: cancel 9, expect: ['answer.text contains "no such order"']}]`, nil},
		"kept by turns":    {state + tools, `[{input: cancel 7}, {input: cancel 7, expect: ['answer.text contains "too late"']}, {input: list, expect: ['answer.text contains "cancelled"', 'answer.text contains "sent"']}]`, nil},
		"other rows":       {state + tools, `[{input: cancel 7, state: [{table: orders, where: {state: cancelled}, rows: 2}, {table: orders, where: {state: lost}}]}]`, []string{"QT803 table orders has 1 row with these values, not 2", "QT803 table orders has 0 rows with these values, not 1 or more"}},
		"insert":           {state + "tools: [{id: cancel, table: log, insert: {order: $number}, result: {state: $row.order}}, {id: list, result: none}]\n", `[{input: cancel 7, expect: ['answer.text contains "7"'], state: [{table: log, where: {order: "7"}, rows: 1}]}]`, nil},
		"remove":           {state + "tools: [{id: cancel, table: orders, where: {number: $number}, remove: true}, {id: list, result: none}]\n", `[{input: cancel 7, expect: ['answer.text contains "new"'], state: [{table: orders, rows: 1}, {table: orders, where: {number: "7"}, rows: 0}]}]`, nil},
		"unknown table":    {state + "tools: [{id: cancel, table: ordrs, where: {}}]\n", `[{input: x, state: [{table: lg}]}]`, []string{`QT801 no table of the state has the id "ordrs"`, `QT801 no table of the state has the id "lg"`}},
		"unknown column":   {state + "tools: [{id: cancel, table: orders, where: {nmber: $number}}]\n", `[{input: x}]`, []string{`QT801 no column of the table has the id "nmber"`}},
		"unknown argument": {state + "tools: [{id: cancel, table: orders, where: {number: $nmber}, result: {state: $row.stat}}]\n", `[{input: x}]`, []string{`QT801 tool cancel has no argument "nmber"`, `QT801 no column of the table has the id "stat"`}},
		"nothing":          {state + "tools: [{id: cancel, table: orders}]\n", `[{input: x}]`, []string{"QT802 the mock does nothing with its table"}},
		"no table":         {state + "tools: [{id: cancel, where: {a: b}, result: {state: x}}]\n", `[{input: x}]`, []string{"QT802 where needs a table"}},
		"no where":         {state + "tools: [{id: cancel, table: orders, insert: {number: $number}, set: {state: x}}]\n", `[{input: x}]`, []string{"QT802 set and remove need where"}},
		"failing change":   {state + "tools: [{id: cancel, table: orders, where: {}, set: {state: x}, error: never}]\n", `[{input: x}]`, []string{"QT802 a call that fails does not change its table"}},
	} {
		folder := t.TempDir()
		for name, text := range map[string]string{"app.qtype.yaml": desk, "app.qtype-test.yaml": c.file + "tests: [{name: one, turns: " + c.turns + "}, {name: two, state: {log: [{order: '1'}]}, turns: [{input: cancel 8, state: [{table: log, where: {order: '1'}}]}]}]\n"} {
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
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
