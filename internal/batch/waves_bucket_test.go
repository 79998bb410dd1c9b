package batch_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// bucketProviders are models of the providers whose batches need a bucket.
var bucketProviders = map[string]string{
	"bedrock": `provider: aws-bedrock, model_id: "amazon.nova-lite-v1:0", batch: {bucket: "s3://bulk/calls", role: "arn:aws:iam::111122223333:role/bulk"}, base_url: "%[1]s"`,
	"gemini":  `provider: gcp-vertex, model_id: gemini-3-flash, batch: {bucket: "gs://bulk/calls"}, base_url: "%[1]s"`,
	"claude":  `provider: gcp-vertex, model_id: claude-sonnet-4-5, batch: {bucket: "gs://bulk/calls/"}, base_url: "%[1]s"`,
}

// inBucket returns a document with a model of a cloud for its first step.
func inBucket(t *testing.T, document, provider string) string {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "p")
	t.Setenv("GOOGLE_CLOUD_LOCATION", "us-central1")
	auth := "{type: bearer_token, id: cloud, token: secret}"
	if provider == "bedrock" {
		auth = "{type: aws, id: cloud, access_key_id: a, secret_access_key: b, region: us-east-1}"
	}
	document = strings.Replace(document, providers["openai"]+", auth: key", bucketProviders[provider]+", auth: cloud", 1)
	return strings.Replace(document, "auths: [", "auths: ["+auth+", ", 1)
}

// TestRun_BatchesBucket: batches with a bucket have the output of a run without batches, whatever their servers do. A wave with
// fewer calls than a batch has, at least, is made at once.
func TestRun_BatchesBucket(t *testing.T) {
	testkit.SkipWithRace(t) // the other tests of waves run with it
	const rows, sessions = 260, 130
	for provider := range bucketProviders {
		document := inBucket(t, severalSteps, provider)
		var want, plain string
		for _, kind := range []struct {
			name   string
			faults batchtest.Faults
			once   bool // calls are left that are too few for a batch
		}{
			{"plain", batchtest.Faults{Polls: 2}, false},
			{"disorder", batchtest.Faults{Shuffled: true, Duplicates: true, CutOff: true, Mark: true}, false},
			{"missing", batchtest.Faults{Missing: 0.1, Unmade: 0.1, Failing: 0.1, Shuffled: true}, true},
			{"requests", batchtest.Faults{Requests: 0.3, Polls: 1}, false},
			{"ambiguous", batchtest.Faults{Ambiguous: 0.5}, false},
		} {
			t.Run(provider+"/"+kind.name, func(t *testing.T) {
				t.Chdir(t.TempDir())
				writeQuestions(t, rows, sessions)
				if want == "" {
					at := httptest.NewServer(batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic))
					defer at.Close()
					var err error
					if want, _, err = wavesRun(t, document, at.URL, 4, nil, batch.Config{}); !errors.Is(err, batch.ErrRowsFailed) {
						t.Fatal(err)
					}
					plain = at.URL
					testkit.Must(t, errors.Join(os.RemoveAll("out.jsonl"), os.RemoveAll(".qtype")))
				}
				server := batchtest.New(7, kind.faults, batchtest.Deterministic)
				at := httptest.NewServer(server)
				defer at.Close()
				got, errs, err := wavesRun(t, document, at.URL, 4, newWaves(), batch.Config{})
				if diff := cmp.Diff(strings.ReplaceAll(want, plain, at.URL), got); diff != "" || !errors.Is(err, batch.ErrRowsFailed) {
					t.Fatalf("%v\n%s\n%s", err, diff, errs)
				}
				calls, twice := server.Paid()
				once, _ := server.Made()
				if calls+once < 3*(rows-1) || twice > 0 || (once > 0) != (kind.once && provider == "bedrock") {
					t.Errorf("%d calls were paid in batches, %d twice, and %d made at once\n%s", calls, twice, once, errs)
				}
			})
		}
	}
}

// TestRun_BatchesBucketResumed: a job of a bucket is found again by a later process, and one whose answers were deleted is lost.
func TestRun_BatchesBucketResumed(t *testing.T) {
	for provider := range bucketProviders {
		t.Run(provider, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 120, 120)
			server := batchtest.New(7, batchtest.Faults{Polls: 1, Ambiguous: 1}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			document := inBucket(t, severalSteps, provider)
			run := func(cfg batch.Config) (string, error) {
				sent := newWaves()
				sent.Settle = time.Millisecond
				_, errs, err := wavesRun(t, document, at.URL, 4, sent, cfg)
				return errs, err
			}
			if errs, err := run(batch.Config{Detach: true}); !errors.Is(err, batch.ErrDetached) {
				t.Fatalf("%v\n%s", err, errs)
			}
			server.Lose(true)
			if errs, err := run(batch.Config{Resume: true}); err == nil || !strings.Contains(err.Error(), "120 calls of 1 lost batch have no answer") {
				t.Fatalf("%v\n%s", err, errs)
			}
			if errs, err := run(batch.Config{Resume: true, Rebuy: true}); !errors.Is(err, batch.ErrRowsFailed) {
				t.Fatalf("%v\n%s", err, errs)
			}
		})
	}
}

// TestRun_BatchesBucketFull: if a provider has no room for the calls of a wave, they are divided, as far as its batches can be.
func TestRun_BatchesBucketFull(t *testing.T) {
	for provider, most := range map[string]int{"bedrock": 30, "gemini": 0} {
		t.Run(provider, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeQuestions(t, 130, 130)
			server := batchtest.New(7, batchtest.Faults{Full: 110}, batchtest.Deterministic)
			at := httptest.NewServer(server)
			defer at.Close()
			_, errs, err := wavesRun(t, inBucket(t, singleCall("openai"), provider), at.URL, 4, newWaves(), batch.Config{})
			calls, twice := server.Paid()
			once, _ := server.Made()
			if !errors.Is(err, batch.ErrRowsFailed) || calls+once < 129 || twice > 0 || once != most {
				t.Errorf("%v: %d calls were paid in batches, %d twice, and %d made at once\n%s", err, calls, twice, once, errs)
			}
		})
	}
}
