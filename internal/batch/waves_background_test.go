package batch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/waves"
)

// inBackground has a call for each row, of a model with the Responses API.
var inBackground = strings.Replace(singleCall("openai"), "gpt-6-luna,", "gpt-6-luna, api: responses, prices: {input: 2, output: 8},", 1)

// newWindow returns a run in the background that does not wait.
func newWindow(window string) *waves.Run {
	sent := newWaves()
	sent.Window = window
	return sent
}

// TestRun_Background: the output and the calls are those of a run without a window, no call is paid twice, and nothing is left at
// the provider.
func TestRun_Background(t *testing.T) {
	for kind, test := range map[string]struct {
		document, window, saved string
		faults                  batchtest.Faults
	}{
		"2h":          {inBackground, "2h", "background: 23 calls in 1 wave · saved 0.001932 (30 %)", batchtest.Faults{Polls: 2}},
		"8h":          {inBackground, "8h", "saved 0.002576 (40 %)", batchtest.Faults{}},
		"failing":     {inBackground, "2h", " sent again", batchtest.Faults{Failing: 0.3}},
		"batch steps": {grouped, "2h", "background: 46 calls in 2 waves", batchtest.Faults{Polls: 1}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 24, 8)
			atOnce := batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic)
			plain := httptest.NewServer(atOnce)
			defer plain.Close()
			want, _, err := wavesRun(t, test.document, plain.URL, 4, nil, batch.Config{})
			if !errors.Is(err, batch.ErrRowsFailed) {
				t.Fatal(err)
			}
			server := batchtest.New(7, test.faults, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			got, errs, err := wavesRun(t, test.document, at.URL, 4, newWindow(test.window), batch.Config{Restart: true})
			if diff := cmp.Diff(strings.ReplaceAll(want, plain.URL, at.URL), got); diff != "" || !errors.Is(err, batch.ErrRowsFailed) {
				t.Errorf("%v\n%s\n%s", err, diff, errs)
			}
			if diff := cmp.Diff(atOnce.Bodies(), server.Bodies()); diff != "" {
				t.Errorf("the calls are other ones: %s", diff)
			}
			calls, twice := server.Paid()
			if once, _ := server.Made(); calls%23 != 0 || calls == 0 || twice > 0 || once > 0 || server.Stored() > 0 {
				t.Errorf("%d calls were paid, %d twice, %d were made at once, %d are stored", calls, twice, once, server.Stored())
			}
			if !strings.Contains(errs, test.saved) || strings.Count(errs, "in the background") > 9 || strings.Contains(errs, "resp_") {
				t.Error(errs)
			}
		})
	}
}

// TestRun_BackgroundInterrupted: processes that end at any request, and servers that restart, pay no call twice, and lose none.
func TestRun_BackgroundInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 24, 8)
	server := batchtest.New(3, batchtest.Faults{Polls: 2}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	for i := 0; ; i++ {
		ctx, interrupt := context.WithCancel(t.Context())
		var requests atomic.Int64
		server.Watch(func(*http.Request) {
			if requests.Add(1) > int64(3+5*i) {
				interrupt()
			}
		})
		_, errs, err := wavesRunUntil(ctx, t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{Resume: true, Command: []string{"run", "app", "--batch=2h"}})
		interrupt()
		if errors.Is(err, batch.ErrRowsFailed) {
			break
		}
		if err == nil || !strings.Contains(err.Error(), "qtype run app --batch=2h --resume") || i > 99 {
			t.Fatalf("%v\n%s", err, errs)
		}
	}
	if calls, twice := server.Paid(); calls != 23 || twice > 0 {
		t.Errorf("%d calls were paid, %d twice", calls, twice)
	}
}

// TestRun_BackgroundDetached: a detached run is collected by later ones, with the same window.
func TestRun_BackgroundDetached(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 24, 8)
	server := batchtest.New(3, batchtest.Faults{Polls: 1}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	_, errs, err := wavesRun(t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{Detach: true})
	if !errors.Is(err, batch.ErrDetached) || !strings.Contains(errs, "waiting for 23 batches; collect the answers with") {
		t.Errorf("%v\n%s", err, errs)
	}
	for _, window := range []string{"", "8h"} {
		_, _, err := wavesRun(t, inBackground, at.URL, 4, newWindow(window), batch.Config{Resume: true})
		if err == nil || !strings.Contains(err.Error(), "the interrupted run was one with --batch=2h: continue it with that") {
			t.Errorf("window %q: %v", window, err)
		}
	}
	_, errs, err = wavesRun(t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{Resume: true})
	if calls, twice := server.Paid(); !errors.Is(err, batch.ErrRowsFailed) || calls != 23 || twice > 0 {
		t.Errorf("%v: %d calls paid, %d twice\n%s", err, calls, twice, errs)
	}
}

// TestRun_BackgroundLost: a call whose creation was not confirmed is lost, which the run says, and made again only if the user wants.
func TestRun_BackgroundLost(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("in.csv", []byte("question\n"+strings.Repeat("why\n", 12)), 0o600))
	server := batchtest.New(3, batchtest.Faults{}, batchtest.Deterministic)
	var created, busy atomic.Int64
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch isCreation := r.Method == http.MethodPost && r.URL.Path == "/v1/responses"; {
		case isCreation && busy.Add(1) == 3: // says that nothing was created
			w.WriteHeader(http.StatusTooManyRequests)
		case isCreation && created.Add(1) == 5:
			server.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // as a process that is killed: the answer is not read
		default:
			server.ServeHTTP(w, r)
		}
	}))
	defer at.Close()
	for range 2 {
		_, errs, err := wavesRun(t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{Resume: true, Command: []string{"run", "app", "--batch=2h"}})
		if err == nil || !strings.Contains(err.Error(), "1 call of 1 lost batch have no answer") || !strings.HasSuffix(err.Error(), "qtype run app --batch=2h --resume --rebuy") ||
			strings.Count(errs, "1 call to model first lost: its creation was not confirmed, and the provider has no list") != 1 {
			t.Fatalf("%v\n%s", err, errs)
		}
	}
	_, errs, err := wavesRun(t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{Resume: true, Rebuy: true})
	if _, batches := server.Made(); err != nil || batches != 13 {
		t.Errorf("%v: %d responses\n%s", err, batches, errs)
	}
}

// TestRun_BackgroundOutage: while a server does not confirm calls, few are sent.
func TestRun_BackgroundOutage(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 100, 100)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var created atomic.Int64
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if created.Add(1) == 5 {
			interrupt()
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer at.Close()
	_, errs, err := wavesRunUntil(ctx, t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{})
	if err == nil || !strings.Contains(err.Error(), "interrupted") || created.Load() > 6 {
		t.Errorf("%v: %d calls\n%s", err, created.Load(), errs)
	}
}

// TestRun_BackgroundAnswers: incomplete responses are those of a normal run, and failed ones fail their rows.
func TestRun_BackgroundAnswers(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile("in.csv", []byte("question\nshort\nfiltered\nbroken\n"), 0o600))
	answer := func(method string, body []byte) (int, []byte) {
		status, made := batchtest.Deterministic(method, body)
		change := func(more string) []byte {
			return []byte(strings.Replace(string(made), `"status":"completed"`, more, 1))
		}
		switch text := string(body); {
		case strings.Contains(text, "short"):
			made = change(`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`)
		case strings.Contains(text, "filtered"):
			made = []byte(`{"id":"r","object":"response","status":"failed","output":[],"error":{"code":"invalid_prompt","message":"flagged"}}`)
		case strings.Contains(text, "broken"):
			made = []byte(`{"id":"r","object":"response","status":"failed","output":[],"error":{"code":"server_error","message":"trouble"}}`)
		}
		return status, made
	}
	server := batchtest.New(3, batchtest.Faults{}, answer)
	at := httptest.NewServer(server)
	defer at.Close()
	document := strings.Replace(inBackground, "gpt-6-luna,", "gpt-6-luna, on_truncation: continue,", 1)
	out, errs, err := wavesRun(t, document, at.URL, 4, newWindow("2h"), batch.Config{})
	if _, batches := server.Made(); !errors.Is(err, batch.ErrRowsFailed) || strings.Count(out, `"reply":"answer `) != 1 || !strings.Contains(out, "flagged") || !strings.Contains(out, "trouble") || batches != 5 {
		t.Errorf("%v: %d responses\n%s\n%s", err, batches, out, errs)
	}
}

// TestRun_BackgroundRefused: a refused first call fails its row; a server that refuses all calls ends the run after two.
func TestRun_BackgroundRefused(t *testing.T) {
	for name, test := range map[string]struct {
		faults batchtest.Faults
		want   string
	}{
		"first": {batchtest.Faults{}, "4 rows: 3 done, 1 failed"},
		"all":   {batchtest.Faults{Refused: true}, "the provider refuses batches of model first: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			testkit.Must(t, os.WriteFile("in.csv", []byte("question\nrefuse\none\ntwo\nthree\n"), 0o600))
			server := batchtest.New(3, test.faults, batchtest.Deterministic)
			var requests atomic.Int64
			server.Watch(func(*http.Request) { requests.Add(1) })
			at := httptest.NewServer(server)
			defer at.Close()
			out, errs, err := wavesRun(t, inBackground, at.URL, 4, newWindow("2h"), batch.Config{})
			calls, _ := server.Paid()
			if err == nil || !strings.Contains(fmt.Sprint(err, errs), test.want) || (calls == 3) != (name == "first") || name == "all" && requests.Load() != 2 {
				t.Errorf("%v: %d calls paid, %d requests\n%s\n%s", err, calls, requests.Load(), out, errs)
			}
		})
	}
}

// TestRun_BackgroundFinished: responses that have not ended are canceled, and their calls made at once.
func TestRun_BackgroundFinished(t *testing.T) {
	t.Chdir(t.TempDir())
	writeQuestions(t, 24, 8)
	server := batchtest.New(3, batchtest.Faults{Polls: 9}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	defer at.Close()
	if _, errs, err := wavesRun(t, inBackground, at.URL, 4, newWindow("8h"), batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
		t.Fatalf("%v\n%s", err, errs)
	}
	_, errs, err := wavesRun(t, inBackground, at.URL, 4, newWindow("8h"), batch.Config{Resume: true, Finish: batch.Finish{After: 1}})
	calls, _ := server.Paid()
	if once, _ := server.Made(); !errors.Is(err, batch.ErrRowsFailed) || server.Canceled() != 23 || once != 23 || calls > 0 || !strings.Contains(errs, "23 calls to model first to be canceled") {
		t.Errorf("%v: %d canceled, %d at once, %d paid\n%s", err, server.Canceled(), once, calls, errs)
	}
}

// TestRun_BackgroundUnknown: a flow of which no model can be called in the background is an error that says why.
func TestRun_BackgroundUnknown(t *testing.T) {
	for settings, want := range map[string]string{
		"": "first (openai: its api is not responses)",
		"api: responses, inference_params: {service_tier: flex}, ": "first (openai: its service_tier is flex)",
		"api: responses, inference_params: {store: false}, ":       "first (openai: its inference_params have store: false)",
		"batch: {enabled: false}, ":                                "first (openai: its batch is not enabled)",
	} {
		t.Run(want, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 3, 3)
			document := strings.Replace(singleCall("openai"), "model_id: gpt-6-luna, ", "model_id: gpt-6-luna, "+settings, 1)
			_, _, err := wavesRun(t, document, "http://127.0.0.1:1", 1, newWindow("2h"), batch.Config{})
			if want := "--batch: no model of the flow has responses in the background: " + want; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
