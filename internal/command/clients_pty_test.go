//go:build linux

package command

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun_UserAnswersClientTools: prompts of concurrent rows come one after the other,
// an answer of the wrong type is prompted for again, and an agent waits for approval.
func TestRun_UserAnswersClientTools(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"rows.csv": "order\n1\n2\n",
		"app.yaml": `id: app
models:
  - type: Model
    id: clerk
    provider: mock
    rules: [{after: tool, text: Seen.}, {tool_calls: [{name: decide, arguments: {order: 9}}]}]
tools:
  - {type: ClientTool, id: decide, name: decide, description: Should it be paid?, inputs: [{id: order, type: int}], outputs: [{id: pay, type: boolean}]}
flows:
  - id: main
    variables: [{id: order, type: int}, {id: pay, type: boolean}]
    inputs: [order]
    outputs: [order, pay]
    steps: [{type: InvokeTool, id: ask, tool: decide, input_bindings: {order: order}, output_bindings: {pay: pay}, concurrency_config: {num_workers: 2}}]
  - id: helped
    variables: [{id: message, type: text}, {id: answer, type: text}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: clerk, tools: [decide], approve: [decide], inputs: [message], outputs: [answer]}]
`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	start := func(args ...string) (*console, *exec.Cmd) {
		cmd := exec.CommandContext(ctx, "qtype", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "TERM=xterm")
		return newConsole(t, cmd), cmd
	}

	c, cmd := start("run", "app.yaml", "-I", "rows.csv", "-o", "out.jsonl", "--ephemeral")
	answers := map[string]string{"1": "yes", "2": "no"}
	for range answers {
		c.see("decide (session default, row ")
		row := c.until(")")
		c.see(`{"order":` + row + `}`)
		c.see("pay (boolean)> ")
		c.say("perhaps\n")
		c.see("expected boolean")
		c.see("pay (boolean)> ")
		c.say(answers[row] + "\n")
	}
	c.see("2 rows: 2 done")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	out, err := os.ReadFile(filepath.Join(folder, "out.jsonl"))
	want := `{"row":1,"order":1,"pay":true,"error":null}` + "\n" + `{"row":2,"order":2,"pay":false,"error":null}` + "\n"
	if err != nil || string(out) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, out, want)
	}

	c, cmd = start("run", "app.yaml", "-f", "helped", "-i", "please", "--ephemeral")
	c.see("may step help call it? [y/N, or a reason]> ")
	c.say("y\n")
	c.see("pay (boolean)> ")
	c.say("yes\n")
	c.see("Seen.")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// until returns what is written before a text.
func (c *console) until(text string) string {
	c.t.Helper()
	for {
		before, after, found := strings.Cut(c.text, text)
		if found {
			c.text = after
			return before
		}
		more, ok := <-c.read
		if !ok {
			c.t.Fatalf("the terminal was closed before %q came; there was %q", text, c.text)
		}
		c.text += more
	}
}
