package awssdk_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/secrets"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// TestRead_AWS reads from moto, which implements AWS Secrets Manager.
func TestRead_AWS(t *testing.T) {
	s, err := servertest.S3()
	if err != nil {
		servertest.Need(t, err)
	}
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	endpoint := "http://" + s.Address()
	env := map[string]string{"AWS_ENDPOINT_URL_SECRETS_MANAGER": endpoint}
	identity := &spec.AWSAuth{AccessKeyID: spec.NewSecret("AKIDEXAMPLE"), SecretAccessKey: spec.NewSecret("key"), Region: "eu-west-1"}
	signer, err := awssdk.New(identity, awsauth.Options{})
	testkit.Must(t, err)
	for _, created := range []string{
		`{"Name":"shop/key","SecretString":"aws","ClientRequestToken":"00000000-0000-0000-0000-000000000001"}`,
		`{"Name":"json","SecretString":"{\"openai\":\"sk-1\"}","ClientRequestToken":"00000000-0000-0000-0000-000000000002"}`,
		`{"Name":"bytes","SecretBinary":"Ynl0ZXM=","ClientRequestToken":"00000000-0000-0000-0000-000000000003"}`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/", bytes.NewReader([]byte(created)))
		testkit.Must(t, err)
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
		req.Header.Set("X-Amz-Target", "secretsmanager.CreateSecret")
		testkit.Must(t, signer.Sign(req, []byte(created), "secretsmanager"))
		resp, err := http.DefaultClient.Do(req)
		testkit.Must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("CreateSecret: %s", resp.Status)
		}
	}
	r, err := secrets.New(&spec.AWSSecretManager{ID: "m", Auth: spec.Ref[spec.Auth]{To: identity}}, secrets.Options{AWS: awssdk.Builder, Getenv: func(name string) string { return env[name] }})
	testkit.Must(t, err)
	for _, c := range []struct{ name, key, want string }{
		{"shop/key", "", "aws"}, {"json", "openai", "sk-1"}, {"bytes", "", "bytes"},
		{"none", "", "secret none: " + endpoint + "/: the secret manager has no such secret, or the identity must not read it"},
	} {
		got, err := r.Read(t.Context(), spec.SecretReference{SecretName: c.name, Key: c.key})
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
