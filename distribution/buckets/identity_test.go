package buckets_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/buckets"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

// asked is the authorization of the newest request, which is answered with content.
type asked struct{ authorization, token string }

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.authorization, a.token = r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token")
	_, _ = io.WriteString(w, "content")
}

// RoundTrip answers in place of Google.
func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestOpen_Identity checks that a bucket is used by the identity of a model, not by that of the environment.
func TestOpen_Identity(t *testing.T) {
	got := &asked{}
	at := httptest.NewServer(got)
	defer at.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": at.URL, "AWS_ACCESS_KEY_ID": "environment", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "eu-west-1",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "STORAGE_EMULATOR_HOST": "",
	} {
		t.Setenv(name, value)
	}
	identity := &remotefs.Identity{
		Region: "us-west-2",
		Keys:   func(context.Context) (id, secret, token string, err error) { return "own", "key", "session", nil },
		Authorize: func(r *http.Request) error {
			r.Header.Set("Authorization", "Bearer of-model")
			return nil
		},
	}
	for _, tt := range []struct {
		service  string
		identity *remotefs.Identity
		want     string
	}{
		{"s3", nil, "Credential=environment/"},
		{"s3", identity, "Credential=own/"},
		{"gs", identity, "Bearer of-model"},
	} {
		bucket, err := buckets.All()[tt.service](t.Context(), remotefs.BucketObject{Scheme: tt.service, Service: tt.service, Bucket: "bulk", Identity: tt.identity}, &http.Client{Transport: got})
		if err != nil {
			t.Fatal(err)
		}
		in, err := bucket.Open(t.Context(), "calls.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := bucket.Close(); err != nil {
			t.Error(err)
		}
		isOwn := tt.identity != nil && tt.service == "s3"
		if !strings.Contains(got.authorization, tt.want) || isOwn && (got.token != "session" || !strings.Contains(got.authorization, "/us-west-2/s3/")) {
			t.Errorf("%s: Authorization: %s", tt.service, got.authorization)
		}
	}
}
