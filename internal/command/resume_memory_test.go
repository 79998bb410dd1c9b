package command

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/model/modeltest"
)

// twoTurns has two turns of a memory in one row and then calls another model: the run
// is killed during that call.
const twoTurns = `id: some
models: [{type: Model, id: lists, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
memories: [{id: talk, policy: message_window, max_messages: 2}]
flows:
  - id: main
    variables: [{id: name, type: text}, {id: a, type: text}, {id: b, type: text}, {id: c, type: text}]
    inputs: [name]
    outputs: [a, b, c]
    steps:
      - {type: %[2]s, id: say, model: lists, memory: talk, inputs: [name], outputs: [a]}
      - {type: %[2]s, id: again, model: lists, memory: talk, inputs: [name], outputs: [b]}
      - {type: LLMInference, id: judge, model: lists, system_message: Judge., inputs: [a], outputs: [c]}
`

// counter is a model whose answers have the number of the question.
type counter struct {
	mu    sync.Mutex
	turns int
	judge func(answer string) // called while a judgement is made
}

// judgeBy sets judge. A process that was killed may have a request left.
func (c *counter) judgeBy(judge func(answer string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge = judge
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns
}

func (c *counter) reply(messages []modeltest.Message) (text string, status int) {
	newest := messages[len(messages)-1].Content
	if messages[0].Role == "system" {
		c.mu.Lock()
		judge := c.judge
		c.mu.Unlock()
		judge(newest)
		return "good", 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
	return fmt.Sprintf("answer %d to %s", c.turns, newest), 0
}

// turns is a run of three rows with twoTurns.
type turns struct {
	dir string
	run []string // the command
}

func newTurns(t *testing.T, address, kind string) *turns {
	t.Helper()
	k := &turns{dir: t.TempDir(), run: []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "-q", "--session", "ada"}}
	for name, text := range map[string]string{"in.csv": "name\nrow 1\nrow 2\nrow 3\n", "app.qtype.yaml": fmt.Sprintf(twoTurns, address, kind)} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// qtype runs a command and returns its standard output.
func (k *turns) qtype(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "qtype", args...)
	cmd.Dir, cmd.Env = k.dir, append(os.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// kill starts the run and kills it while the answer to a row is judged.
func (k *turns) kill(t *testing.T, model *counter, row string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	killed := make(chan struct{})
	model.judgeBy(func(answer string) {
		if strings.HasSuffix(answer, row) {
			kill()
			<-killed // so that the process does not continue before it receives the signal
		}
	})
	_, err := k.qtype(ctx, k.run...)
	close(killed)
	if ctx.Err() == nil {
		t.Fatalf("the run was not killed: %v", err)
	}
	model.judgeBy(func(string) {})
}

// TestResume_CommittedTurns: a row whose turns were committed before the process was
// killed gets their answers from the history. No message is stored twice, also if the
// row itself has two equal questions.
func TestResume_CommittedTurns(t *testing.T) {
	for _, kind := range []string{"LLMInference", "Agent"} {
		t.Run(kind, func(t *testing.T) {
			model := &counter{judge: func(string) {}}
			server := httptest.NewServer(modeltest.OpenAI(model.reply))
			defer server.Close()
			k := newTurns(t, server.URL, kind)
			k.kill(t, model, "row 2")
			if _, err := k.qtype(t.Context(), append(k.run, "--resume")...); err != nil {
				t.Fatal(err)
			}
			if turns := model.count(); turns != 6 {
				t.Errorf("the model was called %d times, want 2 for each row", turns)
			}
			out, err := os.ReadFile(filepath.Join(k.dir, "out.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
				for n, key := range []string{"a", "b"} {
					if want := fmt.Sprintf("%q:\"answer %d to row %d\"", key, 2*i+n+1, i+1); !strings.Contains(line, want) {
						t.Errorf("row %d is %s, want %s", i+1, line, want)
					}
				}
			}
			history, err := k.qtype(t.Context(), "memory", "export", "app.qtype.yaml", "-m", "talk", "-s", "ada")
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(history, "\n"); n != 12 {
				t.Errorf("%d messages, want a question and an answer twice for each row:\n%s", n, history)
			}
		})
	}
}

// TestResume_NewRun: a run without --resume, which is possible if no row was finished,
// does not use the turns that the interrupted run has committed.
func TestResume_NewRun(t *testing.T) {
	model := &counter{judge: func(string) {}}
	server := httptest.NewServer(modeltest.OpenAI(model.reply))
	defer server.Close()
	k := newTurns(t, server.URL, "LLMInference")
	k.kill(t, model, "row 1")
	if _, err := k.qtype(t.Context(), k.run...); err != nil {
		t.Fatal(err)
	}
	if turns := model.count(); turns != 2+6 {
		t.Errorf("the model was called %d times, want 2 for row 1 and 2 for each row of the new run", turns)
	}
}
