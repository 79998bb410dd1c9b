package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// batches is a flow that calls a model, collects the answers and calls it with them.
const batches = `id: app
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: name, type: text}, {id: answer, type: text}, {id: answers, type: 'list[text]'}, {id: text, type: text}, {id: verdict, type: text}]
    inputs: [name]
    outputs: [answers, verdict]
    steps:
      - {type: LLMInference, id: ask, model: m, inputs: [name], outputs: [answer], concurrency_config: {num_workers: 4}}
      - {type: Collect, id: gather, inputs: [answer], outputs: [answers], batch_config: {batch_size: 3}}
      - {type: PromptTemplate, id: join, template: 'judge {answers}', inputs: [answers], outputs: [text]}
      - {type: LLMInference, id: judge, model: m, inputs: [text], outputs: [verdict]}
`

// modelServer answers each question; it counts them, and calls onCall with their
// number before it answers.
type modelServer struct {
	mu     sync.Mutex
	calls  int
	onCall func(calls int)
}

func (m *modelServer) reply(messages []modeltest.Message) (text string, status int) {
	m.mu.Lock()
	m.calls++
	calls, onCall := m.calls, m.onCall
	m.mu.Unlock()
	if onCall != nil {
		onCall(calls)
	}
	return "re " + messages[0].Content, 0
}

// set sets onCall, and returns the number of calls so far.
func (m *modelServer) set(onCall func(int)) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onCall = onCall
	return m.calls
}

// names are the input rows.
func names(n int) iter.Seq[runtime.Input] {
	return func(yield func(runtime.Input) bool) {
		for i := range n {
			if !yield(runtime.Row(map[string]any{"name": fmt.Sprint("row ", i)})) {
				return
			}
		}
	}
}

// runBatches runs the flow of a folder with checkpoints, and returns its results.
func runBatches(ctx context.Context, dir string, rows int) (results []string, replayed int, err error) {
	app, err := runtimetest.Open(ctx, filepath.Join(dir, "app.qtype.yaml"), runtime.Options{})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	checkpoints, err := app.OpenCheckpoints(runtime.CheckpointConfig{Path: filepath.Join(dir, "run.checkpoints")})
	if err != nil {
		return nil, 0, err
	}
	for res, err := range app.Run(ctx, "main", names(rows), runtime.WithCheckpoints(checkpoints)) {
		if err != nil {
			return nil, 0, errors.Join(err, checkpoints.Close())
		}
		if res.Replayed {
			replayed++
		}
		answers, _ := res.Get("answers")
		verdict, _ := res.Get("verdict")
		results = append(results, fmt.Sprint(res.Number, " ", answers, " ", verdict, " ", res.Err))
	}
	return results, replayed, checkpoints.Remove()
}

// TestWithCheckpoints_Kill kills a program that runs a flow with batch steps, and
// resumes the run from Go.
func TestWithCheckpoints_Kill(t *testing.T) {
	const rows = 60
	t.Setenv("OPENAI_API_KEY", "x")
	t.Setenv("NO_PROXY", "*")
	if dir := os.Getenv("QTYPE_TEST_RUN"); dir != "" { // the program
		_, _, err := runBatches(t.Context(), dir, rows)
		t.Fatalf("the run ended: %v", err)
	}
	model := &modelServer{}
	server := httptest.NewServer(modeltest.OpenAI(model.reply))
	defer server.Close()
	newDir := func() string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), fmt.Appendf(nil, batches, server.URL), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	want, _, err := runBatches(t.Context(), newDir(), rows)
	if err != nil || len(want) != rows/3 {
		t.Fatalf("%d results, %v", len(want), err)
	}
	total, dir := model.set(nil), newDir()
	ctx, kill := context.WithCancel(t.Context())
	dead := make(chan struct{})
	model.set(func(calls int) {
		if calls >= total+total/2 {
			kill()
			<-dead
		}
	})
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWithCheckpoints_Kill$")
	cmd.Env = append(os.Environ(), "QTYPE_TEST_RUN="+dir)
	out, err := cmd.CombinedOutput()
	close(dead)
	if cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the program was not killed: %v\n%s", err, out)
	}
	model.set(nil)
	got, replayed, err := runBatches(t.Context(), dir, rows)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v\ngot  %q\nwant %q", err, got, want)
	}
	if replayed == 0 {
		t.Error("no result was replayed")
	}
	if again := model.set(nil) - 2*total; again < 0 || again > 30 { // the rows in flight
		t.Errorf("%d calls were repeated", again)
	}
	if _, err := os.Stat(filepath.Join(dir, "run.checkpoints")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestOpenCheckpoints_ChangedRun names what differs from the run of the file.
func TestOpenCheckpoints_ChangedRun(t *testing.T) {
	dir := t.TempDir()
	open := func(template string) *runtime.App {
		t.Helper()
		return openCase(t, strings.Replace(greetDocument, "Hello, {name}!", template, 1))
	}
	cfg := runtime.CheckpointConfig{Path: filepath.Join(dir, "c"), Settings: map[string]string{"rows": "all"}}
	app := open("hi {name}")
	first, err := app.OpenCheckpoints(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range app.Run(t.Context(), "", names(2), runtime.WithCheckpoints(first)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.Settings = map[string]string{"rows": "some"}
	_, err = open("bye {name}").OpenCheckpoints(other)
	changed, ok := errors.AsType[*runtime.ChangedRunError](err)
	if !ok || changed.Finished != 2 || strings.Join(changed.Changes, "; ") != `rows is "some", was "all"; step greet was changed` {
		t.Errorf("got %v", err)
	}
	again, err := app.OpenCheckpoints(cfg)
	if err != nil || again.Finished() != 2 {
		t.Fatalf("the same run: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	other.Restart = true
	restarted, err := app.OpenCheckpoints(other)
	if err != nil || restarted.Finished() != 0 {
		t.Fatalf("with Restart: %v", err)
	}
	if err := restarted.Remove(); err != nil {
		t.Fatal(err)
	}
}

// runResumable is the program of docs/runs.md.
func runResumable(ctx context.Context, app *runtime.App, path string, rows iter.Seq[runtime.Input], write func(*runtime.Result) error) error {
	checkpoints, err := app.OpenCheckpoints(runtime.CheckpointConfig{Path: path, Flow: "main"})
	if err != nil {
		return err
	}
	for res, err := range app.Run(ctx, "main", rows, runtime.WithCheckpoints(checkpoints)) {
		if err == nil {
			err = write(res)
		}
		if err != nil {
			return errors.Join(err, checkpoints.Close()) // run the program again to resume
		}
	}
	return checkpoints.Remove()
}

const greetDocument = `
id: app
flows:
  - id: main
    variables: [{id: name, type: text}, {id: greeting, type: text}]
    inputs: [name]
    outputs: [greeting]
    steps: [{type: PromptTemplate, id: greet, template: "Hello, {name}!", inputs: [name], outputs: [greeting]}]
`

// TestWithCheckpoints_Resume runs the program of docs/runs.md: the second run replays
// the row that the interrupted first run has finished.
func TestWithCheckpoints_Resume(t *testing.T) {
	app := openCase(t, greetDocument)
	path := filepath.Join(t.TempDir(), "replies.checkpoints")
	var got []string
	write := func(res *runtime.Result) error {
		got = append(got, fmt.Sprint(res.Number, " ", res.Replayed))
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	rows := func(yield func(runtime.Input) bool) {
		if yield(runtime.Row(map[string]any{"name": "Ada"})) {
			cancel()
			yield(runtime.Row(map[string]any{"name": "Bo"}))
		}
	}
	if err := runResumable(ctx, app, path, rows, write); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first run ended with %v", err)
	}
	if err := runResumable(t.Context(), app, path, rows, write); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 false", "1 true", "2 false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of checkpoints was not removed: %v", err)
	}
}

func ExampleWithCheckpoints() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const document = `id: app
flows:
  - id: main
    variables: [{id: name, type: text}, {id: greeting, type: text}, {id: greetings, type: 'list[text]'}]
    inputs: [name]
    outputs: [greetings]
    steps:
      - {type: PromptTemplate, id: greet, template: 'Hello {name}', inputs: [name], outputs: [greeting]}
      - {type: Collect, id: pair, inputs: [greeting], outputs: [greetings], batch_config: {batch_size: 2}}
`
	file := filepath.Join(dir, "app.qtype.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		panic(err)
	}
	ctx := context.Background()
	app, err := runtimetest.Open(ctx, file, runtime.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = app.Close(ctx) }()
	for _, maxResults := range []int{1, 3} {
		written := 0
		err := runResumable(ctx, app, filepath.Join(dir, "run.checkpoints"), names(6), func(res *runtime.Result) error {
			if written++; written > maxResults {
				return errors.New("interrupted")
			}
			greetings, _ := res.Get("greetings")
			fmt.Println(greetings)
			return nil
		})
		fmt.Println("error:", err)
	}
	// Output:
	// [Hello row 0 Hello row 1]
	// error: interrupted
	// [Hello row 0 Hello row 1]
	// [Hello row 2 Hello row 3]
	// [Hello row 4 Hello row 5]
	// error: <nil>
}

// TestWithCheckpoints_Sync: a run that continues removes nothing from an index if a step may have failed before on a row that
// it dropped or continued with, as the journal does not have which ones.
func TestWithCheckpoints_Sync(t *testing.T) {
	const document = `id: syncs
models: [{type: EmbeddingModel, id: vectors, provider: mock, dimensions: 16}]
indexes: [{type: VectorIndex, id: notes, name: notes, module: embedded, args: {path: %q}, embedding_model: vectors}]
flows:
  - id: main
    variables: [{id: chunk, type: RAGChunk}, {id: raw, type: text}, {id: n, type: int}]
    inputs: [chunk, raw]
    outputs: [chunk]
    steps:
      - {type: Decoder, id: decode, format: json, inputs: [raw], outputs: [n], on_error: %s}
      - {type: IndexUpsert, id: write, index: notes, sync: true, inputs: [chunk]}
`
	for name, c := range map[string]struct {
		onError, raw string // raw is the JSON of the second row
		want         steps.IndexCounts
	}{
		"skip":          {"skip", "none", steps.IndexCounts{Unchanged: 4, Kept: steps.MayHaveLost}},
		"continue":      {"continue", "none", steps.IndexCounts{Unchanged: 5, Kept: steps.MayHaveLost}},
		"fail":          {"fail", "none", steps.IndexCounts{Unchanged: 4, Kept: steps.RowsFailed}},
		"no row failed": {"fail", `{"n": 1}`, steps.IndexCounts{Unchanged: 5, Removed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.qtype.yaml")
			testkit.Must(t, os.WriteFile(path, fmt.Appendf(nil, document, filepath.Join(dir, "notes"), c.onError), 0o600))
			app, err := runtimetest.Open(t.Context(), path, runtime.Options{})
			testkit.Must(t, err)
			defer func() { testkit.Must(t, app.Close(t.Context())) }()
			rows := func(n int, raw string, pause func(i int)) iter.Seq[runtime.Input] {
				return func(yield func(runtime.Input) bool) {
					for i := range n {
						pause(i)
						text := fmt.Sprintf(`{"n": %d}`, i)
						if i == 1 {
							text = raw
						}
						chunk := map[string]any{"chunk_id": fmt.Sprint("c", i), "document_id": "d", "content": "text", "metadata": map[string]any{}}
						if !yield(runtime.Row(map[string]any{"chunk": chunk, "raw": text})) {
							return
						}
					}
				}
			}
			run := func(ctx context.Context, in iter.Seq[runtime.Input], opts ...runtime.RunOption) (*steps.IndexCounts, error) {
				progress := &runtime.Progress{}
				for _, err := range app.Run(ctx, "main", in, append(opts, runtime.WithProgress(progress))...) {
					if err != nil {
						return nil, err
					}
				}
				return progress.Steps()[1].Index, nil
			}
			if _, err := run(t.Context(), rows(6, `{"n": 1}`, func(int) {})); err != nil {
				t.Fatal(err)
			}
			open := func() *runtime.Checkpoints {
				c, err := app.OpenCheckpoints(runtime.CheckpointConfig{Path: filepath.Join(dir, "run.checkpoints")})
				testkit.Must(t, err)
				return c
			}
			ctx, stop := context.WithCancel(t.Context())
			first := open()
			if _, err := run(ctx, rows(5, c.raw, func(i int) {
				if i == 3 {
					stop()
				}
			}), runtime.WithCheckpoints(first)); err == nil {
				t.Fatal("the run was not interrupted")
			}
			testkit.Must(t, first.Close())
			again := open()
			got, err := run(t.Context(), rows(5, c.raw, func(int) {}), runtime.WithCheckpoints(again))
			testkit.Must(t, err)
			testkit.Must(t, again.Remove())
			if *got != c.want {
				t.Errorf("%+v, want %+v", *got, c.want)
			}
		})
	}
}
