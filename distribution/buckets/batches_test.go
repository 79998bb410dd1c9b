package buckets_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution"
	"github.com/qtype-dev/qtype/distribution/buckets"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
)

// inBucket has one call of a model for each row.
const inBucket = `id: app
auths: [%[2]s]
models:
  - {type: Model, id: first, %[3]s, base_url: "%[1]s", auth: cloud}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: reply, type: text}]
    inputs: [question]
    outputs: [reply]
    steps: [{type: LLMInference, id: respond, model: first, inputs: [question], outputs: [reply]}]
`

// bucketFiles are the files of a server of batches.
type bucketFiles struct {
	*testing.T
	client *remotefs.Client
}

// Load reads a file.
func (f bucketFiles) Load(address string) (content []byte, exists bool) {
	in, err := f.client.Open(f.Context(), address)
	if err != nil {
		f.Error(err)
		return nil, false
	}
	content, err = io.ReadAll(in)
	return content, err == nil && in.Close() == nil
}

// Save writes a file.
func (f bucketFiles) Save(address string, content []byte) { write(f.T, f.client, address, content) }

// runInBucket runs 120 rows in batches of a model, whose files are in a bucket.
func runInBucket(t *testing.T, auth, model string) {
	t.Helper()
	t.Chdir(t.TempDir())
	files := bucketFiles{t, &remotefs.Client{Buckets: buckets.All()}}
	defer func() { _ = files.client.Close() }()
	server := batchtest.New(7, batchtest.Faults{Polls: 1, Shuffled: true}, batchtest.Deterministic)
	server.SetFiles(files)
	at := httptest.NewServer(server)
	defer at.Close()
	rows := "question\n"
	for i := range 120 {
		rows += fmt.Sprintf("question %d\n", i)
	}
	for name, text := range map[string]string{"in.csv": rows, "app.qtype.yaml": fmt.Sprintf(inBucket, at.URL, auth, model)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sent := waves.New("out.jsonl" + waves.Suffix)
	sent.Poll = func(int) time.Duration { return time.Millisecond }
	parts := distribution.Parts()
	app, err := qtype.Open(runtime.WithParts(waves.With(t.Context(), sent), parts), "app.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close(context.Background())
	var errs strings.Builder
	streams := &terminal.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs, Width: 200}
	if err := batch.Run(t.Context(), app, batch.Config{Waves: sent, InputFile: "in.csv", Output: "out.jsonl", Streams: streams}); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	out, _ := os.ReadFile("out.jsonl")
	paid, twice := server.Paid()
	if once, _ := server.Made(); paid != 120 || twice > 0 || once > 0 || strings.Count(string(out), `"reply":"answer `) != 120 {
		t.Errorf("%d calls were paid, %d twice, %d made at once\n%s", paid, twice, once, errs.String())
	}
}

// TestBatches_Bedrock: batches of Bedrock read and write files in S3.
func TestBatches_Bedrock(t *testing.T) {
	s := closeAfter(t)(servertest.S3())
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://" + s.Address(), "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	call(t, http.MethodPut, "http://"+s.Address()+"/bulk", "")
	runInBucket(t, `{type: aws, id: cloud, access_key_id: key, secret_access_key: s3cret, region: us-east-1}`,
		`provider: aws-bedrock, model_id: "amazon.nova-lite-v1:0", batch: {bucket: "s3://bulk/calls", role: "arn:aws:iam::111122223333:role/bulk"}`)
}

// TestBatches_Vertex: batches of Vertex AI read and write files in Cloud Storage.
func TestBatches_Vertex(t *testing.T) {
	s := closeAfter(t)(servertest.GoogleStorage())
	t.Setenv("STORAGE_EMULATOR_HOST", s.Address())
	t.Setenv("GOOGLE_CLOUD_PROJECT", "p")
	t.Setenv("GOOGLE_CLOUD_LOCATION", "us-central1")
	call(t, http.MethodPost, "http://"+s.Address()+"/storage/v1/b?project=p", `{"name":"bulk"}`)
	runInBucket(t, `{type: bearer_token, id: cloud, token: secret}`, `provider: gcp-vertex, model_id: gemini-3-flash, batch: {bucket: "gs://bulk/calls"}`)
}
