package command

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/model/modeltest"
)

// batchFlows are flows with batch steps.
func batchFlows() map[string]string {
	return map[string]string{
		// Groups of a fixed size, a model behind them, and the counts of all.
		"batches": `    variables: [{id: name, type: text}, {id: answer, type: text}, {id: answers, type: 'list[text]'}, {id: text, type: text}, {id: verdict, type: text}, {id: counts, type: AggregateStats}]
    inputs: [name]
    outputs: [answers, verdict, counts]
    steps:
      - {type: LLMInference, id: ask, model: echo, inputs: [name], outputs: [answer], concurrency_config: {num_workers: 8}}
      - {type: Collect, id: gather, inputs: [answer], outputs: [answers], batch_config: {batch_size: 3}}
      - {type: PromptTemplate, id: join, template: 'judge {answers}', inputs: [answers], outputs: [text]}
      - {type: LLMInference, id: judge, model: echo, inputs: [text], outputs: [verdict], concurrency_config: {num_workers: 4}}
      - {type: Aggregate, id: stats, outputs: [counts]}
`,
		// Lists taken apart and put together again, written to files in parts.
		"lists": `    variables: [{id: name, type: text}, {id: all, type: 'list[text]'}, {id: item, type: text}, {id: answer, type: text}, {id: answers, type: 'list[text]'}, {id: file, type: text}]
    inputs: [name]
    outputs: [file]
    steps:
      - {type: Transform, id: make, inputs: [name], set: {all: '[name + " a", name + " b"]'}}
      - {type: Explode, id: each, inputs: [all], outputs: [item]}
      - {type: LLMInference, id: ask, model: echo, inputs: [item], outputs: [answer], concurrency_config: {num_workers: 8}}
      - {type: Collect, id: gather, group_by: [all], inputs: [answer], outputs: [answers]}
      - {type: FileWriter, id: write, path: {uri: parts.jsonl}, inputs: [name, answers], outputs: [file], batch_config: {batch_size: 100}}
`,
		// One list of everything.
		"one": `    variables: [{id: name, type: text}, {id: answer, type: text}, {id: answers, type: 'list[text]'}]
    inputs: [name]
    outputs: [answers]
    steps:
      - {type: LLMInference, id: ask, model: echo, inputs: [name], outputs: [answer], concurrency_config: {num_workers: 8}}
      - {type: Collect, id: gather, inputs: [answer], outputs: [answers]}
`,
	}
}

// echoModel echoes the questions, and fails some.
type echoModel struct {
	mu    sync.Mutex
	total int // calls so far
	watch func(total int)
}

// calls returns the number of calls so far; watch is called at each from now on.
func (e *echoModel) calls(watch func(total int)) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch = watch
	return e.total
}

func (e *echoModel) reply(messages []modeltest.Message) (text string, status int) {
	text = messages[0].Content
	e.mu.Lock()
	e.total++
	total, watch := e.total, e.watch
	e.mu.Unlock()
	if len(text)%2 == 1 && strings.Contains(text, "7") && !strings.HasPrefix(text, "judge") || strings.Contains(text, "95") {
		return "", http.StatusUnprocessableEntity
	}
	if watch != nil {
		watch(total)
	}
	return "re " + text, 0
}

// files returns the contents of the output files in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	all := map[string]string{}
	for _, path := range paths {
		if name := filepath.Base(path); strings.HasPrefix(name, "out.") || strings.HasPrefix(name, "parts") {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(text)
		}
	}
	return all
}

// TestResume_KilledWithBatches kills a run with batch steps several times at any
// moment. The output is that of an undisturbed run, byte for byte, and only calls in
// flight are repeated. QTYPE_KILLS is the number of kills.
func TestResume_KilledWithBatches(t *testing.T) {
	kills, rows := 3, 600
	if n, err := strconv.Atoi(os.Getenv("QTYPE_KILLS")); err == nil {
		kills, rows = n, max(rows, 200*n)
	}
	formats := map[string]string{"batches": "jsonl", "lists": "csv", "one": "json"}
	for flow, steps := range batchFlows() {
		t.Run(flow, func(t *testing.T) {
			model := &echoModel{}
			server := httptest.NewServer(modeltest.OpenAI(model.reply))
			defer server.Close()
			run := func() *killable { return newEchoing(t, model, server.URL, steps, rows, "out."+formats[flow]) }
			calm := run()
			if text, status := calm.run(t); status != 1 || strings.Contains(text, "error: ") { // some rows are meant to fail
				t.Fatalf("exit status %d: %s", status, text)
			}
			want, calls := files(t, calm.dir), model.calls(nil)
			k := run()
			done := k.killOften(t, kills, calls)
			if got := files(t, k.dir); !maps.Equal(got, want) {
				for name, text := range want {
					t.Errorf("%s differs from that of an undisturbed run:\ngot  %.300q\nwant %.300q", name, diffAt(got[name], text), diffAt(text, got[name]))
				}
			}
			again := model.calls(nil) - 2*calls
			t.Logf("%d kills, %d of %d calls were repeated", done, again, calls)
			if most := done * (8 + 4 + 40); again > most || again < 0 {
				t.Errorf("%d calls were made again after %d kills", again, done)
			}
		})
	}
}

// killOften kills the run a number of times during its calls, and then completes it. It
// returns how often it was killed.
func (k *killable) killOften(t *testing.T, kills, calls int) (done int) {
	t.Helper()
	for ; done < kills; done++ {
		latest := time.Hour
		if done%4 == 3 {
			latest = rand.N(200 * time.Millisecond) // while it starts, mostly
		}
		if k.killAfter(t, rand.IntN(2*calls/(kills+1)), latest) {
			return done
		}
	}
	if !k.killAfter(t, 10*calls, time.Hour) {
		t.Fatal("the last run was killed")
	}
	return done
}

// diffAt returns the part of a text after its common prefix with another.
func diffAt(text, other string) string {
	n := 0
	for n < len(text) && n < len(other) && text[n] == other[n] {
		n++
	}
	return text[max(0, n-40):]
}

// newEchoing returns a run of many rows with an echoModel.
func newEchoing(t *testing.T, e *echoModel, address, steps string, rows int, out string) *killable {
	t.Helper()
	var in strings.Builder
	in.WriteString("name\n")
	for row := range rows {
		fmt.Fprintf(&in, "row %d\n", row+1)
	}
	document := "id: app\nmodels: [{type: Model, id: echo, provider: openai, model_id: gpt-6-luna, base_url: \"%s/v1\", retry: {max_attempts: 1}}]\n" +
		"flows:\n  - id: main\n" + steps
	k := newKillableOf(t, address, map[string]string{"in.csv": in.String(), "app.qtype.yaml": document}, out)
	k.watch = e.calls
	return k
}
