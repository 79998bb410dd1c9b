package buckets_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/loader"
)

// A document of a bucket and what it includes from below itself.
func TestDocumentInBucket(t *testing.T) {
	s, err := servertest.S3()
	servertest.Need(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://" + s.Address(), "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret",
		"AWS_REGION": "eu-west-1", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	for _, put := range [][2]string{
		{"/shop", ""}, {"/shop/secret.yaml", "{id: stolen}"}, {"/shop/a/parts/types.yaml", "[{id: Order, properties: {number: int}}]"},
		{"/shop/a/app.yaml", "id: app\ntypes: !include parts/types.yaml\nreferences: [!include ../secret.yaml, !include none.yaml]\n"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.Address()+put[0], strings.NewReader(put[1]))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
	}
	result, list := loader.Load(withBuckets(t), "s3://shop/a/app.yaml", loader.Options{Lookup: func(string) (string, bool) { return "", false }})
	if types := result.Document.Application.Types; len(types) != 1 || types[0].Position().Span().String() != "s3://shop/a/parts/types.yaml:1:2" {
		t.Errorf("got %v", types)
	}
	if len(list) != 2 || !strings.Contains(list[0].Message, "is not below s3://shop/a/") || !strings.Contains(list[1].Message, `"none.yaml": the file does not exist`) {
		t.Errorf("got %v", list)
	}
}
