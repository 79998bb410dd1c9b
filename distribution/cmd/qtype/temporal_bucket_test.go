package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// createBucket creates a bucket of an emulator by an HTTP request.
func createBucket(t *testing.T, method, address, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	testkit.Must(t, resp.Body.Close())
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, address, resp.Status)
	}
}

// startStorage starts an emulator with a bucket named rows.
func startStorage(t *testing.T, start func() (*servertest.Server, error), settings func(address string) map[string]string) string {
	t.Helper()
	s, err := start()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	for name, value := range settings(s.Address()) {
		t.Setenv(name, value)
	}
	return s.Address()
}

// TestTemporalBucket: the rows and results of a run are in a bucket, in the build that has both clients. A worker that is killed
// loses nothing of them.
func TestTemporalBucket(t *testing.T) {
	for place, prepare := range map[string]func(t *testing.T){
		"s3": func(t *testing.T) {
			address := startStorage(t, servertest.S3, func(address string) map[string]string {
				return map[string]string{"AWS_ENDPOINT_URL": "http://" + address, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret",
					"AWS_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull}
			})
			createBucket(t, http.MethodPut, "http://"+address+"/rows", "")
		},
		"gs": func(t *testing.T) {
			address := startStorage(t, servertest.GoogleStorage, func(address string) map[string]string {
				return map[string]string{"STORAGE_EMULATOR_HOST": address}
			})
			createBucket(t, http.MethodPost, "http://"+address+"/storage/v1/b?project=p", `{"name":"rows"}`)
		},
		"az": func(t *testing.T) {
			address := startStorage(t, servertest.Azurite, func(address string) map[string]string {
				return map[string]string{"AZURE_STORAGE_ACCOUNT": "", "AZURE_STORAGE_ACCOUNT_NAME": servertest.AzuriteAccount,
					"AZURE_STORAGE_KEY": servertest.AzuriteKey, "AZURE_STORAGE_DOMAIN": address, "AZURE_STORAGE_PROTOCOL": "http"}
			})
			credential, err := azblob.NewSharedKeyCredential(servertest.AzuriteAccount, servertest.AzuriteKey)
			testkit.Must(t, err)
			admin, err := azblob.NewClientWithSharedKeyCredential("http://"+address+"/"+servertest.AzuriteAccount, credential, nil)
			testkit.Must(t, err)
			_, err = admin.CreateContainer(t.Context(), "rows", nil)
			testkit.Must(t, err)
		},
	} {
		t.Run(place, func(t *testing.T) {
			prepare(t)
			const rows, groups = 60, 12
			s, model := newSummaries(t, rows/2)
			c := newCluster(t, fmt.Sprintf(summarizes, model.URL), messagesOf(rows))
			blobs := []string{"--blobs", place + "://rows/runs"}
			first := c.worker(blobs...)
			result := c.begin(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "7", "--heartbeat", "2s"}, blobs...)...)
			<-s.ready
			testkit.Must(t, first.Process.Kill())
			c.worker(blobs...)
			if got := <-result; !strings.HasPrefix(got, "0\n") || !strings.Contains(got, "12 rows made of 60: 12 done, written to out.jsonl") {
				t.Fatal(got)
			}
			if n := s.total(); n > rows+groups+4 { // a worker runs four chunks at once
				t.Errorf("%d calls for %d rows and %d groups: only those in flight may be repeated", n, rows, groups)
			}
			made := c.read("out.jsonl")
			if diff := cmp.Diff(c.runLocally(), made); diff != "" {
				t.Error(diff)
			}
			if left, err := os.ReadDir(c.dir + "/.qtype"); err == nil && len(left) > 0 {
				t.Errorf("files of the run are in the folder: %v", left)
			}
		})
	}
}
