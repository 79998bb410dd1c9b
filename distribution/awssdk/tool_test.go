package awssdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// verifyAWS writes the service that a request is signed for if the signature is right.
func verifyAWS(w http.ResponseWriter, r *http.Request) {
	got := r.Header.Get("Authorization")
	body, _ := io.ReadAll(r.Body)
	signed := httptest.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), strings.NewReader(string(body)))
	for _, name := range strings.Split(between(got, "SignedHeaders=", ","), ";") {
		if name != "host" && name != "content-length" {
			signed.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	scope := strings.Split(between(got, "Credential=", ","), "/")
	if err != nil || len(scope) != 5 {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: scope[0], SecretAccessKey: "key"}
	if err := v4.NewSigner().SignHTTP(r.Context(), keys, signed, hex.EncodeToString(sum[:]), scope[3], scope[2], at); err != nil || signed.Header.Get("Authorization") != got {
		http.Error(w, "the signature does not match", http.StatusForbidden)
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s %s", scope[2], scope[3], body)
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// TestTool_Signed: the calls of a tool carry a signature that its server can verify.
func TestTool_Signed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(verifyAWS))
	t.Cleanup(s.Close)
	keys := &spec.AWSAuth{AccessKeyID: spec.NewSecret("AKIDEXAMPLE"), SecretAccessKey: spec.NewSecret("key"), Region: "eu-west-1"}
	for audience, want := range map[string]string{"": `eu-west-1 execute-api {"text":"ü"}`, "es": `eu-west-1 es {"text":"ü"}`} {
		declared := &spec.APITool{Endpoint: s.URL + "/aws", Method: http.MethodPost, BodyFormat: "json", Auth: spec.Ref[spec.Auth]{ID: "a", To: keys}, AuthAudience: audience, AllowPrivate: true}
		declared.ID, declared.Name = "call", "call"
		declared.Inputs = []*spec.Variable{{ID: "text", Type: spec.Type{Name: "text"}}}
		called, err := tool.NewAPI(declared, tool.Options{AWS: awssdk.Builder, Getenv: func(string) string { return "" }})
		testkit.Must(t, err)
		got, err := called.Call(t.Context(), map[string]any{"text": "ü"})
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, %v, want %s", audience, got, err, want)
		}
	}
}
