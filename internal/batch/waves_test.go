package batch_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
)

// severalSteps has a conversation, a second model and an embedding.
const severalSteps = `id: app
memories: [{id: chat}]
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1", auth: key, inference_params: {temperature: 0.5}}
  - {type: Model, id: second, provider: anthropic, model_id: claude-opus-4-6, base_url: "%[1]s", auth: key}
  - {type: EmbeddingModel, id: vectors, provider: openai, model_id: small, base_url: "%[1]s/v1", auth: key, dimensions: 3}
flows:
  - id: talk
    variables:
      - {id: question, type: text}
      - {id: reply, type: text}
      - {id: summary, type: text}
      - {id: embedded, type: Embedding}
    inputs: [question]
    outputs: [reply, summary, embedded]
    steps:
      - {type: LLMInference, id: respond, model: first, memory: chat, inputs: [question], outputs: [reply], concurrency_config: {num_workers: %[2]d}}
      - {type: LLMInference, id: shorten, model: second, system_message: be short, inputs: [reply], outputs: [summary], concurrency_config: {num_workers: %[2]d}}
      - {type: InvokeEmbedding, id: embed, model: vectors, inputs: [summary], outputs: [embedded]}
`

// agent calls a tool, and counts its calls in a file.
const agent = `id: app
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1", auth: key}
tools:
  - {type: CommandTool, id: count, name: count, description: counts, program: sh, args: [-c, "echo x >>calls.txt; echo 7"], outputs: [{id: n, type: int}]}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: reply, type: text}]
    inputs: [question]
    outputs: [reply]
    steps:
      - {type: Agent, id: work, model: first, tools: [count], inputs: [question], outputs: [reply], concurrency_config: {num_workers: %[2]d}}
`

// grouped has models before and after a batch step.
const grouped = `id: app
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-5.1, api: responses, base_url: "%[1]s/v1", auth: key}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: reply, type: text}, {id: all, type: "list[text]"}, {id: one, type: text}, {id: last, type: text}]
    inputs: [question]
    outputs: [one, last]
    steps:
      - {type: LLMInference, id: respond, model: first, inputs: [question], outputs: [reply], concurrency_config: {num_workers: %[2]d}}
      - {type: Collect, id: all_replies, inputs: [reply], outputs: [all]}
      - {type: Explode, id: each, inputs: [all], outputs: [one]}
      - {type: LLMInference, id: again, model: first, inputs: [one], outputs: [last], concurrency_config: {num_workers: %[2]d}}
`

// providers are models of the providers with batches, with the address of their server.
var providers = map[string]string{
	"openai":       `provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1"`,
	"anthropic":    `provider: anthropic, model_id: claude-opus-4-6, base_url: "%[1]s"`,
	"azure":        `provider: azure-openai, model_id: gpt-6-luna, deployment: bulk, base_url: "%[1]s"`,
	"google":       `provider: google-ai, model_id: gemini-3-flash, base_url: "%[1]s"`,
	"mistral":      `provider: mistral, model_id: mistral-medium-latest, base_url: "%[1]s/v1"`,
	"azure, dated": `provider: azure-openai, model_id: gpt-6-luna, deployment: bulk, api_version: "2024-10-21", base_url: "%[1]s"`,
}

// withProvider returns a document whose model is that of a provider.
func withProvider(document, provider string) string {
	return strings.ReplaceAll(document, providers["openai"], providers[provider])
}

// singleCall returns a document with one call for each row.
func singleCall(provider string) string {
	return withProvider(strings.Replace(agent, "tools: [count], ", "", 1), provider)
}

// wavesRun runs a document over rows of a file, in batches if sent is not nil, and returns the output.
func wavesRun(t *testing.T, document, url string, workers int, sent *waves.Run, cfg batch.Config) (out, errs string, err error) {
	t.Helper()
	return wavesRunUntil(t.Context(), t, document, url, workers, sent, cfg)
}

// wavesRunUntil is wavesRun until ctx ends.
func wavesRunUntil(ctx context.Context, t *testing.T, document, url string, workers int, sent *waves.Run, cfg batch.Config) (out, errs string, err error) {
	t.Helper()
	testkit.Must(t, os.WriteFile("app.qtype.yaml", fmt.Appendf(nil, document, url, workers), 0o600))
	opts := []qtype.Option{}
	if cfg.Flex {
		opts = append(opts, qtype.WithFlex())
	}
	parts := runtime.CoreParts()
	parts.Models["aws-bedrock"], parts.AWS = bedrock.Part(), awsauthtest.Builder
	parts.Buckets = batchtest.Buckets(url)
	app, err := qtype.Open(runtime.WithParts(waves.With(t.Context(), sent), parts), "app.qtype.yaml", opts...)
	testkit.Must(t, err)
	defer app.Close(context.Background())
	var stdout, stderr strings.Builder
	cfg.Waves, cfg.InputFile, cfg.Output = sent, "in.csv", "out.jsonl"
	if strings.Contains(document, "memories") {
		cfg.SessionColumn = "session"
	}
	cfg.Streams = &terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Width: 200}
	err = batch.Run(ctx, app, cfg)
	if cfg.ProgressJSON {
		return stdout.String(), stderr.String(), err
	}
	made, _ := os.ReadFile("out.jsonl")
	return string(made), stderr.String(), err
}

// writeQuestions writes rows of some sessions; one of them is refused by the models.
func writeQuestions(t *testing.T, rows, sessions int) {
	t.Helper()
	in := []string{"session,question"}
	for i := range rows {
		question := fmt.Sprintf("question %d", i)
		if i == rows/2 {
			question = "refuse this"
		}
		in = append(in, fmt.Sprintf("s%d,%s", i%sessions, question))
	}
	testkit.Must(t, os.WriteFile("in.csv", []byte(strings.Join(in, "\n")), 0o600))
}

// newWaves returns a run that does not wait.
func newWaves() *waves.Run {
	sent := waves.New("out.jsonl" + waves.Suffix)
	sent.Poll = func(int) time.Duration { return time.Millisecond }
	sent.Settle = time.Millisecond
	return sent
}

// TestRun_Batches: the output is that of a run without batches, whatever their servers do, and no call is paid twice.
func TestRun_Batches(t *testing.T) {
	testkit.SkipWithRace(t) // the other tests of waves run with it
	const rows, sessions = 24, 8
	documents := map[string]string{"several steps": severalSteps, "batch step": grouped}
	for provider := range providers {
		documents["agent/"+provider] = withProvider(agent, provider)
	}
	for name, document := range documents {
		var atOnce *batchtest.Server
		var want, plain, tools string
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, rows, sessions)
			atOnce = batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic)
			at := httptest.NewServer(atOnce)
			defer at.Close()
			var err error
			if want, _, err = wavesRun(t, document, at.URL, 4, nil, batch.Config{}); !errors.Is(err, batch.ErrRowsFailed) || want == "" {
				t.Fatalf("the run without batches: %v\n%s", err, want)
			}
			called, _ := os.ReadFile("calls.txt")
			plain, tools = at.URL, string(called)
		})
		for kind, faults := range map[string]batchtest.Faults{
			"plain":     {Polls: 2},
			"disorder":  {Shuffled: true, Duplicates: true, CutOff: true},
			"short":     {Short: true},
			"expired":   {Short: true, Unmade: 0.4},
			"mark":      {Mark: true},
			"missing":   {Missing: 0.2, Unmade: 0.2, Failing: 0.2, Shuffled: true},
			"requests":  {Requests: 0.3, Polls: 1},
			"ambiguous": {Ambiguous: 0.5},
			"clock":     {Ambiguous: 0.5, Behind: time.Hour},
			"full":      {Full: 7},
		} {
			if kind == "full" && (!strings.HasPrefix(name, "agent/") || slices.Contains([]string{"anthropic", "mistral"}, strings.TrimPrefix(name, "agent/"))) { // have no such limit
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Chdir(t.TempDir())
				writeQuestions(t, rows, sessions)
				server := batchtest.New(7, faults, batchtest.Deterministic)
				at := httptest.NewServer(server)
				defer at.Close()
				got, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
				if !errors.Is(err, batch.ErrRowsFailed) {
					t.Fatalf("%v\n%s", err, errs)
				}
				if diff := cmp.Diff(strings.ReplaceAll(want, plain, at.URL), got); diff != "" {
					t.Errorf("%s\n%s", diff, errs)
				}
				if diff := cmp.Diff(atOnce.Bodies(), server.Bodies()); diff != "" {
					t.Errorf("the calls are other ones: %s", diff)
				}
				calls, twice := server.Paid()
				once, _ := server.Made()
				if calls == 0 || twice > 0 || once > 0 {
					t.Errorf("%d calls were paid, %d twice, %d were made at once", calls, twice, once)
				}
				if again, _ := os.ReadFile("calls.txt"); len(again) != len(tools) {
					t.Errorf("%d calls of tools, want %d", len(again)/2, len(tools)/2)
				}
				if left, _ := os.ReadDir("."); slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.Contains(e.Name(), "qtype-batches") }) {
					t.Error("the file of the calls is left")
				}
			})
		}
	}
}

// childVariable is the environment variable with the address of the servers and the provider, in a process of TestRun_BatchesKilled.
const childVariable = "QTYPE_TEST_BATCHES"

// TestRun_BatchesKilled: processes that are killed at any request, or between two, pay no call twice, and lose none.
func TestRun_BatchesKilled(t *testing.T) {
	if at, provider, found := strings.Cut(os.Getenv(childVariable), " "); found {
		_, _, err := wavesRun(t, withProvider(severalSteps, provider), at, 4, newWaves(), batch.Config{Resume: true})
		if !errors.Is(err, batch.ErrRowsFailed) {
			t.Fatal(err)
		}
		os.Exit(0) // open connections to a server that lives on are no leak
	}
	testkit.SkipWithRace(t)
	for provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 40, 8)
			plain := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic))
			defer plain.Close()
			want, _, err := wavesRun(t, withProvider(severalSteps, provider), plain.URL, 4, nil, batch.Config{})
			if !errors.Is(err, batch.ErrRowsFailed) {
				t.Fatal(err)
			}
			testkit.Must(t, errors.Join(os.RemoveAll("out.jsonl"), os.RemoveAll(".qtype")))
			server := batchtest.New(3, batchtest.Faults{Shuffled: true, Missing: 0.05, Polls: 1, Ambiguous: 0.2}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			killAndResume(t, server, at.URL+" "+provider)
			got, _ := os.ReadFile("out.jsonl")
			if diff := cmp.Diff(strings.ReplaceAll(want, plain.URL, at.URL), string(got)); diff != "" {
				t.Error(diff)
			}
			calls, twice := server.Paid()
			made, batches := server.Made()
			if want := 3 * 39; twice > 0 || calls != want || made > 0 { // one row is refused
				t.Errorf("%d calls were paid in %d batches, %d twice, and %d made at once; want %d", calls, batches, twice, made, want)
			}
		})
	}
}

// killAndResume starts processes of TestRun_BatchesKilled until one ends. The first ones are killed.
func killAndResume(t *testing.T, server *batchtest.Server, variable string) {
	t.Helper()
	const kills = 5
	random := rand.New(rand.NewPCG(5, 5))
	for killed := 0; ; killed++ {
		ctx, kill := context.WithCancel(t.Context())
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRun_BatchesKilled$")
		child.Env = append(os.Environ(), childVariable+"="+variable)
		var requests atomic.Int64
		last := random.Int64N(6)
		server.Watch(func(*http.Request) {
			if killed < kills && requests.Add(1) > last {
				kill() // the request is answered, and nobody reads that
			}
		})
		out, err := child.CombinedOutput()
		kill()
		server.Wait()
		switch {
		case err == nil:
			t.Log(killed, "processes were killed")
			return
		case killed >= kills:
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestRun_BatchesDetached: a detached run is collected by later ones, and its calls are not lost to a run that does
// not know of them.
func TestRun_BatchesDetached(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 9, 9)
	server := batchtest.New(3, batchtest.Faults{Polls: 2}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	run := func(sent *waves.Run, cfg batch.Config) (string, error) {
		_, errs, err := wavesRun(t, severalSteps, at.URL, 4, sent, cfg)
		return errs, err
	}
	errs, err := run(newWaves(), batch.Config{Detach: true, Command: []string{"run", "app", "--batch", "--detach"}})
	if !errors.Is(err, batch.ErrDetached) || !strings.Contains(errs, "waiting for 1 batch; collect the answers with: qtype run app --batch --resume") {
		t.Errorf("%v\n%s", err, errs)
	}
	for _, sent := range []*waves.Run{nil, newWaves()} {
		if _, err := run(sent, batch.Config{}); err == nil || !strings.Contains(err.Error(), "has the batches of an interrupted run: continue it with --batch --resume") {
			t.Errorf("a run that forgets the batches: %v", err)
		}
	}
	for range 40 {
		if _, err = run(newWaves(), batch.Config{Resume: true, Detach: true}); !errors.Is(err, batch.ErrDetached) {
			break
		}
	}
	if calls, twice := server.Paid(); !errors.Is(err, batch.ErrRowsFailed) || calls != 24 || twice > 0 {
		t.Errorf("%v: %d calls paid, %d twice", err, calls, twice)
	}
}

// TestRun_BatchesCanceled: a batch that a person has canceled ends the run, and its calls are made when it is continued.
func TestRun_BatchesCanceled(t *testing.T) {
	for provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 9, 9)
			server := batchtest.New(3, batchtest.Faults{Polls: 2}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			document := singleCall(provider)
			if _, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
				t.Fatalf("%v\n%s", err, errs)
			}
			server.Cancel()
			_, _, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Resume: true})
			if _, batches := server.Made(); err == nil || !strings.Contains(err.Error(), "was canceled at the provider: 9 calls left, to be sent again when the run is continued") || batches != 1 {
				t.Errorf("%v: %d batches", err, batches)
			}
			_, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Resume: true})
			if calls, twice := server.Paid(); !errors.Is(err, batch.ErrRowsFailed) || calls != 8 || twice > 0 {
				t.Errorf("%v: %d calls paid, %d twice\n%s", err, calls, twice, errs)
			}
		})
	}
}

// TestRun_BatchesChanged: batches of another document or input are not collected for a run that does not use them.
func TestRun_BatchesChanged(t *testing.T) {
	for _, change := range []string{"input", "document", "limit"} {
		t.Run(change, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 9, 9)
			server := batchtest.New(3, batchtest.Faults{Polls: 2}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			if _, errs, err := wavesRun(t, severalSteps, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
				t.Fatalf("%v\n%s", err, errs)
			}
			document, limit := severalSteps, int64(0)
			switch change {
			case "input":
				writeQuestions(t, 10, 9)
			case "document":
				document = strings.Replace(document, "temperature: 0.5", "temperature: 0.7", 1)
			case "limit":
				limit = 5
			}
			_, _, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Resume: true, Limit: limit})
			if _, batches := server.Made(); err == nil || !strings.Contains(err.Error(), "--resume: this is not the run that was interrupted: ") || batches != 1 {
				t.Errorf("%v: %d batches", err, batches)
			}
			if _, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Restart: true, Limit: limit}); !errors.Is(err, batch.ErrRowsFailed) || server.Canceled() != 1 {
				t.Errorf("%v: %d canceled\n%s", err, server.Canceled(), errs)
			}
		})
	}
}

// TestRun_BatchesDetachedRefused: a detached run whose batch is refused does not say that it waits for one.
func TestRun_BatchesDetachedRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("in.csv", []byte("question\nmalformed\nright\n"), 0o600))
	at := httptest.NewServer(batchtest.New(3, batchtest.Faults{Malformed: true}, batchtest.Deterministic))
	defer at.Close()
	_, errs, err := wavesRun(t, strings.Replace(agent, "tools: [count], ", "", 1), at.URL, 4, newWaves(), batch.Config{Detach: true})
	if !errors.Is(err, batch.ErrDetached) || !strings.Contains(errs, "there are calls to send again; continue with: ") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// TestRun_BatchesRestarted: a run that starts over cancels the batches of the one before.
func TestRun_BatchesRestarted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 9, 9)
	server := batchtest.New(3, batchtest.Faults{Polls: 2}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	if _, _, err := wavesRun(t, severalSteps, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
		t.Fatal(err)
	}
	_, errs, err := wavesRun(t, severalSteps, at.URL, 4, newWaves(), batch.Config{Restart: true})
	if !errors.Is(err, batch.ErrRowsFailed) || server.Canceled() != 1 || !strings.Contains(errs, "1 batch of the earlier run canceled") {
		t.Errorf("%v: %d canceled\n%s", err, server.Canceled(), errs)
	}
}

// TestRun_BatchesRestartedLate: batches that have ended, or that the provider does not know any more, do not prevent
// that a run starts over.
func TestRun_BatchesRestartedLate(t *testing.T) {
	for provider := range providers {
		for _, change := range []string{"ended", "gone"} {
			t.Run(provider+"/"+change, func(t *testing.T) {
				t.Chdir(t.TempDir())
				writeQuestions(t, 9, 9)
				server := batchtest.New(3, batchtest.Faults{Polls: 1}, batchtest.Deterministic)
				at := httptest.NewServer(server)
				defer at.Close()
				document, url := singleCall(provider), at.URL
				if _, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
					t.Fatalf("%v\n%s", err, errs)
				}
				if change == "ended" {
					server.End()
				} else { // another account, or after the time for which batches are stored
					other := httptest.NewServer(batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic))
					defer other.Close()
					url = other.URL
				}
				if _, errs, err := wavesRun(t, document, url, 4, newWaves(), batch.Config{Restart: true}); !errors.Is(err, batch.ErrRowsFailed) || server.Canceled() > 0 {
					t.Errorf("%v: %d canceled\n%s", err, server.Canceled(), errs)
				}
			})
		}
	}
}

// TestRun_BatchesRestartedUnconfirmed: a run that starts over cancels a batch whose creation was not confirmed, or
// names it where the provider does not tell which batch that is.
func TestRun_BatchesRestartedUnconfirmed(t *testing.T) {
	for provider := range providers {
		t.Run(provider, func(t *testing.T) {
			want := "1 batch of the earlier run canceled"
			if provider == "anthropic" { // batches have no names
				want = "note: batch msgbatch_0001 may be of the earlier run, and goes on"
			}
			t.Chdir(t.TempDir())
			writeQuestions(t, 9, 9)
			server := batchtest.New(3, batchtest.Faults{Polls: 2}, batchtest.Deterministic)
			var lost, locked atomic.Bool
			at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case locked.Load():
					w.WriteHeader(http.StatusUnauthorized)
				case batchtest.IsCreation(r) && lost.CompareAndSwap(false, true):
					server.ServeHTTP(httptest.NewRecorder(), r)
					locked.Store(true)
					w.WriteHeader(http.StatusGatewayTimeout)
				default:
					server.ServeHTTP(w, r)
				}
			}))
			defer at.Close()
			document := singleCall(provider)
			if _, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{}); err == nil || !strings.Contains(err.Error(), "HTTP 401") {
				t.Fatalf("%v\n%s", err, errs)
			}
			locked.Store(false)
			_, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Restart: true})
			if _, batches := server.Made(); !errors.Is(err, batch.ErrRowsFailed) || !strings.Contains(errs, want) || batches != 2 {
				t.Errorf("%v: %d batches\n%s", err, batches, errs)
			}
		})
	}
}

// TestRun_BatchesDiskFull: a file that cannot be written ends the run, and fails no row of a later one.
func TestRun_BatchesDiskFull(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 9, 9)
	at := httptest.NewServer(batchtest.New(3, batchtest.Faults{Polls: 1}, batchtest.Deterministic))
	defer at.Close()
	if _, errs, err := wavesRun(t, agent, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
		t.Fatalf("%v\n%s", err, errs)
	}
	change := func(statement string) {
		db, err := sql.Open("sqlite", "out.jsonl"+waves.Suffix)
		testkit.Must(t, err)
		_, err = db.ExecContext(t.Context(), statement)
		testkit.Must(t, errors.Join(err, db.Close()))
	}
	change("CREATE TRIGGER full BEFORE INSERT ON results BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	if _, errs, err := wavesRun(t, agent, at.URL, 4, newWaves(), batch.Config{Resume: true}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("%v\n%s", err, errs)
	}
	change("DROP TRIGGER full")
	out, errs, err := wavesRun(t, agent, at.URL, 4, newWaves(), batch.Config{Resume: true})
	if !errors.Is(err, batch.ErrRowsFailed) || strings.Count(out, `"reply":"answer `) != 8 {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

// TestRun_BatchesMalformed: calls for which a provider refuses whole batches fail, however many these are, and no other
// ones.
func TestRun_BatchesMalformed(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := "question\n" + strings.Repeat("malformed\nright\n", 5)
	testkit.Must(t, os.WriteFile("in.csv", []byte(rows), 0o600))
	at := httptest.NewServer(batchtest.New(3, batchtest.Faults{Malformed: true}, batchtest.Deterministic))
	defer at.Close()
	out, errs, err := wavesRun(t, strings.Replace(agent, "tools: [count], ", "", 1), at.URL, 4, newWaves(), batch.Config{})
	if !errors.Is(err, batch.ErrRowsFailed) || strings.Count(out, `"reply":"answer `) != 5 || strings.Count(out, "HTTP 400: malformed") != 5 {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

// TestRun_BatchesMalformedUnnamed: a provider that does not say for which calls it refuses batches gets smaller ones, until
// only those calls have failed.
func TestRun_BatchesMalformedUnnamed(t *testing.T) {
	for _, provider := range []string{"openai", "azure", "mistral", "google"} {
		t.Run(provider, func(t *testing.T) {
			t.Chdir(t.TempDir())
			rows := "question\n" + strings.Repeat("right\n", 30) + "malformed\n" + strings.Repeat("right\n", 20) + "malformed\n"
			testkit.Must(t, os.WriteFile("in.csv", []byte(rows), 0o600))
			server := batchtest.New(3, batchtest.Faults{Unnamed: true}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			out, errs, err := wavesRun(t, singleCall(provider), at.URL, 4, newWaves(), batch.Config{})
			for range 9 {
				if err == nil || !strings.Contains(err.Error(), "the provider refuses batches") {
					break
				}
				// The call that was tried alone is a malformed one.
				out, errs, err = wavesRun(t, singleCall(provider), at.URL, 4, newWaves(), batch.Config{Resume: true})
			}
			calls, twice := server.Paid()
			_, batches := server.Made()
			if !errors.Is(err, batch.ErrRowsFailed) || strings.Count(out, `"reply":"answer `) != 50 || strings.Count(out, "HTTP 400: ") != 2 || calls != 50 || twice > 0 || batches > 40 {
				t.Errorf("%v: %d calls paid, %d twice, %d batches\n%s", err, calls, twice, batches, errs)
			}
		})
	}
}

// TestRun_BatchesAllRefused: a provider that refuses all batches ends the run after a few, and no row has failed for that:
// its calls can be made at once.
func TestRun_BatchesAllRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 40, 8)
	server := batchtest.New(3, batchtest.Faults{Refused: true}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	_, errs, err := wavesRun(t, singleCall("openai"), at.URL, 4, newWaves(), batch.Config{})
	if _, batches := server.Made(); err == nil || !strings.Contains(err.Error(), "the provider refuses batches of model first: malformed; --resume sends the calls again, and with --finish-after 1s makes them at once") || batches != 2 {
		t.Fatalf("%v: %d batches\n%s", err, batches, errs)
	}
	out, errs, err := wavesRun(t, singleCall("openai"), at.URL, 4, newWaves(), batch.Config{Resume: true, Finish: batch.Finish{After: time.Nanosecond}})
	if made, _ := server.Made(); !errors.Is(err, batch.ErrRowsFailed) || strings.Count(out, `"reply":"answer `) != 39 || made != 40 {
		t.Errorf("%v: %d calls at once\n%s", err, made, errs)
	}
}

// TestRun_BatchesFew: calls that are fewer than a batch is worth waiting for are made at once, those of other waves are not.
func TestRun_BatchesFew(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 40, 16) // waves of 16, 16 and 8 calls, of which one is refused
	plain := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic))
	defer plain.Close()
	want, _, err := wavesRun(t, severalSteps, plain.URL, 4, nil, batch.Config{})
	if !errors.Is(err, batch.ErrRowsFailed) {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		settings string // of the model first
		least    int
		atOnce   int // of its calls
	}{
		"auto":     {"", 10, 8},
		"declared": {"batch: {min_calls: 10}, ", 0, 8},
		"wins":     {"batch: {min_calls: 5}, ", 10, 0},
		"disabled": {"batch: {enabled: false}, ", 0, 40},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Must(t, errors.Join(os.RemoveAll("out.jsonl"), os.RemoveAll(".qtype")))
			server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			sent := newWaves()
			sent.Least = test.least
			document := strings.Replace(severalSteps, "model_id: gpt-6-luna,", "model_id: gpt-6-luna, "+test.settings, 1)
			got, errs, err := wavesRun(t, document, at.URL, 4, sent, batch.Config{})
			if diff := cmp.Diff(strings.ReplaceAll(want, plain.URL, at.URL), got); diff != "" || !errors.Is(err, batch.ErrRowsFailed) {
				t.Errorf("%v\n%s\n%s", err, diff, errs)
			}
			made := strings.Count(strings.Join(server.AtOnce(), "\n"), `"gpt-6-luna"`)
			if _, twice := server.Paid(); made != test.atOnce || twice > 0 {
				t.Errorf("%d calls at once, %d twice\n%s", made, twice, errs)
			}
		})
	}
}

// TestRun_BatchesDeclared: a model limits the calls of its batches.
func TestRun_BatchesDeclared(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 40, 40)
	server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	document := strings.Replace(singleCall("openai"), "model_id: gpt-6-luna,", "model_id: gpt-6-luna, batch: {max_calls: 7},", 1)
	_, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
	if _, batches := server.Made(); !errors.Is(err, batch.ErrRowsFailed) || batches != 6 {
		t.Errorf("%v: %d batches\n%s", err, batches, errs)
	}
}

// TestRun_BatchesTooLarge: a call that is too large for each batch fails its row, and no other one.
func TestRun_BatchesTooLarge(t *testing.T) {
	for provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Chdir(t.TempDir())
			rows := "question\n" + strings.Repeat("short\n", 4) + strings.Repeat("long ", 3000) + "\n" + strings.Repeat("short\n", 4)
			testkit.Must(t, os.WriteFile("in.csv", []byte(rows), 0o600))
			server := batchtest.New(3, batchtest.Faults{Size: 10_000}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			document := singleCall(provider)
			out, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
			if !errors.Is(err, batch.ErrRowsFailed) || strings.Count(out, `"reply":"answer `) != 8 || strings.Count(out, "is too large") != 1 {
				t.Errorf("%v\n%s\n%s", err, out, errs)
			}
			if calls, twice := server.Paid(); calls != 8 || twice > 0 {
				t.Errorf("%d calls were paid, %d twice", calls, twice)
			}
		})
	}
}

// TestRun_BatchesBudget: a wave has no more calls than the budget admits, and counts at the prices of batches.
func TestRun_BatchesBudget(t *testing.T) {
	for budget, want := range map[string]string{
		"{calls: 20}":     "flow talk is over its budget: 20 and more calls, 20 are allowed",
		"{tokens: 7000}":  "flow talk is over its budget",
		"{money: 0.007}":  "flow talk is over its budget", // 60 calls at half of 0.00028
		"{money: 0.0167}": "",                             // 119 calls
	} {
		t.Run(budget, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 120, 120)
			server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			document := strings.Replace(grouped, "  - id: talk\n", "  - id: talk\n    budget: "+budget+"\n", 1)
			document = strings.Replace(document, "gpt-5.1, api: responses", "gpt-6-luna, prices: {input: 2, output: 8}", 1)
			document = document[:strings.Index(document, "      - {type: Collect")]
			document = strings.Replace(document, "outputs: [one, last]", "outputs: [reply]", 1)
			_, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
			if want == "" && !errors.Is(err, batch.ErrRowsFailed) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v\n%s", err, errs)
			}
			if want == "" && !strings.Contains(errs, "saved 0.01666 (50 %)") {
				t.Errorf("the summary does not show what was saved:\n%s", errs)
			}
		})
	}
}

// TestRun_BatchesBudgetExploded: a budget counts each call of rows that one row was divided into, also if the rows of
// a session follow each other, so that they have their answers in different passes.
func TestRun_BatchesBudgetExploded(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 30, 30)
	server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	document := strings.NewReplacer("id: app\n", "id: app\nmemories: [{id: chat}]\n", "  - id: talk\n", "  - id: talk\n    budget: {calls: 20}\n", "id: again,", "id: again, memory: chat,",
		"      - {type: LLMInference, id: respond, model: first, inputs: [question], outputs: [reply], concurrency_config: {num_workers: %[2]d}}\n", "", "inputs: [reply], outputs: [all]", "inputs: [question], outputs: [all]").Replace(grouped)
	_, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
	if err == nil || !strings.Contains(err.Error(), "flow talk is over its budget: 20 and more calls, 20 are allowed") {
		t.Errorf("%v\n%s", err, errs)
	}
	if calls, twice := server.Paid(); calls > 20 || twice > 0 {
		t.Errorf("%d calls were paid, %d twice", calls, twice)
	}
}

// TestRun_BatchesLost: a batch that its provider does not have any more, or without results, does not end the other calls. Its
// own are made again when the user wants that.
func TestRun_BatchesLost(t *testing.T) {
	for provider := range providers {
		for name, onlyResults := range map[string]bool{"batch": false, "results": true} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				t.Chdir(t.TempDir())
				writeQuestions(t, 12, 4)
				plain := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic))
				defer plain.Close()
				document := withProvider(severalSteps, provider)
				want, _, _ := wavesRun(t, document, plain.URL, 4, nil, batch.Config{})
				testkit.Must(t, errors.Join(os.RemoveAll("out.jsonl"), os.RemoveAll(".qtype")))
				server := batchtest.New(3, batchtest.Faults{Polls: 1}, batchtest.Deterministic)
				at := httptest.NewServer(server)
				defer at.Close()
				resume := func(cfg batch.Config) (string, string, error) {
					cfg.Command = []string{"run", "app", "--batch"}
					return wavesRun(t, document, at.URL, 4, newWaves(), cfg)
				}
				if _, errs, err := resume(batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
					t.Fatalf("%v\n%s", err, errs)
				}
				server.Lose(onlyResults)
				for range 2 { // each process looks for it
					_, errs, err := resume(batch.Config{Resume: true})
					if err == nil || strings.Count(errs, "is lost") != 1 ||
						!strings.Contains(err.Error(), "4 calls of 1 lost batch have no answer: out.jsonl was not written") || !strings.HasSuffix(err.Error(), "qtype run app --batch --resume --rebuy") {
						t.Fatalf("%v\n%s", err, errs)
					}
				}
				_, before := server.Made()
				got, errs, err := resume(batch.Config{Resume: true, Rebuy: true})
				if diff := cmp.Diff(strings.ReplaceAll(want, plain.URL, at.URL), got); diff != "" || !errors.Is(err, batch.ErrRowsFailed) || !strings.Contains(errs, "4 calls sent again") {
					t.Errorf("%v\n%s\n%s", err, diff, errs)
				}
				if _, after := server.Made(); before != 1 || after < 6 {
					t.Errorf("%d batches, then %d", before, after)
				}
			})
		}
	}
}

// TestRun_BatchesLostPartly: calls that do not depend on those of a lost batch are made before the run ends, also if it finishes
// without batches.
func TestRun_BatchesLostPartly(t *testing.T) {
	for name, cfg := range map[string]batch.Config{"batches": {}, "finish": {Finish: batch.Finish{Rows: 9}}} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 8, 8)
			server := batchtest.New(3, batchtest.Faults{Polls: 1}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			document := strings.ReplaceAll(severalSteps, `"%[1]s/v1", auth: key, inference_params`, `"%[1]s/v1", auth: key, batch: {max_calls: 4}, inference_params`)
			if _, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
				t.Fatalf("%v\n%s", err, errs)
			}
			server.LoseFirst()
			cfg.Resume = true
			_, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), cfg)
			lost, ok := errors.AsType[*waves.LostError](err)
			if !ok || lost.Batches != 1 || lost.Calls != 4 {
				t.Fatalf("%v\n%s", err, errs)
			}
			paid, twice := server.Paid()
			once, _ := server.Made()
			if twice > 0 || paid+once < 9 || (once > 0) != (name == "finish") {
				t.Errorf("%d calls were paid in batches, %d twice, %d at once", paid, twice, once)
			}
			_, errs, err = wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Resume: true, Rebuy: true})
			if _, twice := server.Paid(); !errors.Is(err, batch.ErrRowsFailed) || twice > 0 {
				t.Errorf("%v, %d calls were paid twice\n%s", err, twice, errs)
			}
		})
	}
}

// TestRun_BatchesUnknown: a flow whose models have no batches is an error, not a run at the normal price. It says why
// where the provider has batches.
func TestRun_BatchesUnknown(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "p")
	for model, want := range map[string]string{
		"provider: ollama, model_id: llama":              "first (ollama)",
		"provider: gcp-vertex, model_id: gemini-3-flash": "first (gcp-vertex: its batch has no bucket)",
		"provider: aws-bedrock, model_id: amazon.nova":   "first (aws-bedrock: its batch has no bucket)",
	} {
		t.Run(model, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 3, 3)
			document := strings.Replace(agent, "provider: openai, model_id: gpt-6-luna", model, 1)
			_, _, err := wavesRun(t, document, "http://127.0.0.1:1", 1, newWaves(), batch.Config{})
			if want = "--batch: no model of the flow has batches: " + want; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestRun_BatchesAtOnce: calls of models that have no batches are made at once, which the run says.
func TestRun_BatchesAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 3, 3)
	server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	vectors := `provider: openai, model_id: small, base_url: "%[1]s/v1"`
	document := strings.Replace(withProvider(severalSteps, "google"), vectors, `provider: azure-openai, model_id: small, base_url: "%[1]s"`, 1)
	_, errs, err := wavesRun(t, document, at.URL, 1, newWaves(), batch.Config{})
	want := "note: calls of these models are made at once, at the normal price: vectors (azure-openai: its batches have no embeddings)"
	if once, _ := server.Made(); !errors.Is(err, batch.ErrRowsFailed) || !strings.Contains(errs, want) || once != 2 {
		t.Errorf("%v: %d calls at once\n%s", err, once, errs)
	}
}

// TestRun_BatchesRefusedOnce: a refused row of several that one row was divided into is not called again when its
// conversation has grown.
func TestRun_BatchesRefusedOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 10, 10)
	document := strings.NewReplacer("id: app\n", "id: app\nmemories: [{id: chat}]\n", "id: again,", "id: again, memory: chat,",
		"      - {type: LLMInference, id: respond, model: first, inputs: [question], outputs: [reply], concurrency_config: {num_workers: %[2]d}}\n", "", "inputs: [reply], outputs: [all]", "inputs: [question], outputs: [all]").Replace(grouped)
	plain := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic))
	defer plain.Close()
	want, _, err := wavesRun(t, document, plain.URL, 4, nil, batch.Config{})
	if !errors.Is(err, batch.ErrRowsFailed) {
		t.Fatal(err)
	}
	testkit.Must(t, os.RemoveAll(".qtype"))
	refused := atomic.Int64{}
	server := batchtest.New(3, batchtest.Faults{}, func(method string, body []byte) (int, []byte) {
		status, answer := batchtest.Deterministic(method, body)
		if status != http.StatusOK {
			refused.Add(1)
		}
		return status, answer
	})
	at := httptest.NewServer(server)
	defer at.Close()
	got, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
	if diff := cmp.Diff(strings.ReplaceAll(want, plain.URL, at.URL), got); diff != "" || !errors.Is(err, batch.ErrRowsFailed) {
		t.Errorf("%v\n%s\n%s", err, diff, errs)
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%d calls were refused", n)
	}
}

// TestRun_BatchesInterrupted: an interrupted run says how many rows are finished, and which batches go on.
func TestRun_BatchesInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 12, 4)
	server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var created atomic.Int64
	server.Watch(func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/batches/") && created.Load() == 2 {
			interrupt()
		}
		if r.Method == http.MethodPost && r.URL.Path == "/v1/batches" {
			created.Add(1)
		}
	})
	document := strings.NewReplacer("id: app\n", "id: app\nmemories: [{id: chat}]\n", "tools: [count], ", "memory: chat, ").Replace(agent)
	_, _, err := wavesRunUntil(ctx, t, document, at.URL, 4, newWaves(), batch.Config{Command: []string{"run", "app", "--on-end", "https://example.com/secret", "--batch", "--on-end=https://example.com/secret"}})
	if want := "interrupted after 4 rows: out.jsonl was not written: 1 batch at the provider will go on; continue with: qtype run app --batch --resume"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRun_BatchesNotUploaded: a batch whose calls could not be uploaded was not created: nothing is searched before the
// next attempt.
func TestRun_BatchesNotUploaded(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 5, 5)
	server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
	var uploads atomic.Int64
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/files" && uploads.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		server.ServeHTTP(w, r)
	}))
	defer at.Close()
	sent := newWaves()
	sent.Settle = time.Hour
	_, errs, err := wavesRun(t, strings.Replace(agent, "tools: [count], ", "", 1), at.URL, 4, sent, batch.Config{})
	if calls, twice := server.Paid(); !errors.Is(err, batch.ErrRowsFailed) || calls != 4 || twice > 0 {
		t.Errorf("%v: %d calls paid, %d twice\n%s", err, calls, twice, errs)
	}
}

// TestRun_BatchesFinished: what is left after a time, or of few rows, is made at once, at the normal price. No call is
// paid twice, also of batches that are canceled for it, and calls that failed for a time are repeated.
func TestRun_BatchesFinished(t *testing.T) {
	for name, test := range map[string]struct {
		finish batch.Finish
		atOnce int // of 117 calls
		saved  string
	}{
		"time":  {batch.Finish{After: time.Nanosecond}, 117, ""},
		"rows":  {batch.Finish{Rows: 10}, 8, "saved 0.039 (50 %)"}, // the last embeddings, which have no price
		"share": {batch.Finish{Share: 0.25}, 8, "saved 0.039 (50 %)"},
		"none":  {batch.Finish{Rows: 1}, 0, "saved 0.039 (50 %)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 40, 8)
			plain := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic))
			defer plain.Close()
			document := strings.Replace(severalSteps, "model_id: claude-opus-4-6", "model_id: claude-opus-4-6, prices: {input: 20, output: 0}", 1)
			want, errs, err := wavesRun(t, document, plain.URL, 4, nil, batch.Config{})
			const used = "tokens 7,995 in, 780 out"
			if !errors.Is(err, batch.ErrRowsFailed) || !strings.Contains(errs, used) {
				t.Fatalf("%v\n%s", err, errs)
			}
			testkit.Must(t, os.RemoveAll(".qtype"))
			server := batchtest.New(7, batchtest.Faults{Polls: 1}, batchtest.Deterministic)
			var failed atomic.Int64
			at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/messages" && failed.Add(1) == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				server.ServeHTTP(w, r)
			}))
			defer at.Close()
			if _, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
				t.Fatalf("%v\n%s", err, errs)
			}
			got, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{Finish: test.finish, Resume: true})
			if diff := cmp.Diff(strings.ReplaceAll(want, plain.URL, at.URL), got); diff != "" || !errors.Is(err, batch.ErrRowsFailed) {
				t.Errorf("%v\n%s\n%s", err, diff, errs)
			}
			calls, twice := server.Paid()
			made, _ := server.Made()
			if made -= min(test.atOnce/100, 1); twice > 0 || calls+made != 117 || made != test.atOnce || (server.Canceled() == 1) != (name == "time") { // one that is made at once is refused
				t.Errorf("%d calls were paid in batches, %d twice, and %d made at once; %d batches canceled", calls, twice, made, server.Canceled())
			}
			if !strings.Contains(errs, used) || !strings.Contains(errs, test.saved) || test.saved == "" && strings.Contains(errs, "saved") {
				t.Error(errs)
			}
		})
	}
}

// TestRun_BatchesProgress: the progress in JSON has each change with the state, and a server gets the end of the run.
func TestRun_BatchesProgress(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 12, 4)
	at := httptest.NewServer(batchtest.New(3, batchtest.Faults{Polls: 1}, batchtest.Deterministic))
	defer at.Close()
	var end batch.End
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&end); err != nil || r.URL.Path != "/hook" {
			t.Errorf("%s: %v", r.URL, err)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer hook.Close()
	document := strings.NewReplacer("id: app\n", "id: app\nmemories: [{id: chat}]\n", "tools: [count], ", "memory: chat, ", "gpt-6-luna,", "gpt-6-luna, prices: {input: 2, output: 8},").Replace(agent)
	out, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{ProgressJSON: true, OnEnd: hook.URL + "/hook"})
	if !errors.Is(err, batch.ErrRowsFailed) || !strings.Contains(errs, "warning: --on-end: "+strings.TrimPrefix(hook.URL, "http://")+": HTTP 418") {
		t.Errorf("%v\n%s", err, errs)
	}
	var all []batch.ProgressEvent
	for line := range strings.Lines(out) {
		var ev batch.ProgressEvent
		testkit.Must(t, json.Unmarshal([]byte(line), &ev))
		all = append(all, ev)
	}
	i := slices.IndexFunc(all, func(ev batch.ProgressEvent) bool { return ev.Message == "wave 2: batch batch_0004 is in_progress" })
	if i < 0 {
		t.Fatalf("got %s", out)
	}
	ev := all[i]
	ev.Time, ev.Open[0].Since, ev.Expected = time.Time{}, time.Time{}, time.Time{}
	want := batch.ProgressEvent{Message: ev.Message, Status: waves.Status{Wave: 2, Batches: 2, Open: []waves.OpenBatch{{ID: "batch_0004", Model: "first", State: "in_progress", Calls: 4}}}, RowsDone: 4, RowsLeft: 8, Cost: 0.00056, Saved: 0.00056}
	if diff := cmp.Diff(want, ev, cmpopts.EquateApprox(0.001, 0)); diff != "" || all[i].Expected.IsZero() {
		t.Error(diff)
	}
	if end.Seconds <= 0 {
		t.Errorf("%v seconds", end.Seconds)
	}
	end.Seconds = 0
	if diff := cmp.Diff(batch.End{App: "app", Flow: "talk", Status: "rows_failed", Output: "out.jsonl", Rows: 12, Failed: 1, Cost: 0.00154, Saved: 0.00154}, end, cmpopts.EquateApprox(0.001, 0)); diff != "" {
		t.Error(diff)
	}
}

// TestRun_BatchesFlex: calls of models with the tier flex request it, unless the document names another one. They are
// repeated while the provider has no room.
func TestRun_BatchesFlex(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("in.csv", []byte("question\none\ntwo\n"), 0o600))
	var refused atomic.Int32
	server := batchtest.New(3, batchtest.Faults{}, func(method string, body []byte) (int, []byte) {
		status, answer := batchtest.Deterministic(method, body)
		switch {
		case !strings.Contains(string(body), `"service_tier":"flex"`):
			return status, answer
		case refused.Add(1) == 1:
			return http.StatusTooManyRequests, []byte(`{"error":{"code":"resource_unavailable","message":"no room"}}`)
		}
		return status, []byte(strings.Replace(string(answer), `{`, `{"service_tier":"flex",`, 1))
	})
	at := httptest.NewServer(server)
	defer at.Close()
	catalogue := "catalogue: [{provider: openai, id: gpt-6-luna, prices: {input: 2, output: 8, flex: {input: 1, output: 4}}}]"
	testkit.Must(t, os.WriteFile("models.yaml", []byte(catalogue), 0o600))
	document := strings.NewReplacer("gpt-6-luna", "gpt-6-luna, retry: {initial_delay: 1ms, max_delay: 1ms}", "tools: [count], ", "").Replace(agent)
	run := func(document string) (string, error) {
		_, errs, err := wavesRun(t, document, at.URL, 1, nil, batch.Config{Flex: true, Restart: true})
		return errs, err
	}
	if errs, err := run(document); err != nil || !strings.Contains(errs, "saved 0.00028 (50 %)") || refused.Load() != 3 {
		t.Errorf("%v\n%s", err, errs)
	}
	if errs, err := run(strings.Replace(document, "gpt-6-luna,", "gpt-6-luna, inference_params: {service_tier: default},", 1)); err != nil || strings.Contains(errs, "saved") {
		t.Errorf("%v\n%s", err, errs)
	}
	if errs, err := run(strings.Replace(document, "gpt-6-luna", "gpt-6-sol", 1)); err == nil || err.Error() != "--batch: no model of the flow has the tier flex: first (openai)" {
		t.Errorf("%v\n%s", err, errs)
	}
}
