package awssdk_test

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment returns a Getenv without the variables of this process, which must not
// change the result.
func environment(t *testing.T, vars map[string]string) func(string) string {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	return func(name string) string { return vars[name] }
}

// sign returns the header of a signed request.
func sign(t *testing.T, s *awssdk.Signer) (http.Header, error) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://search.example/rerank", http.NoBody)
	err := s.Sign(req, []byte("{}"), "bedrock")
	return req.Header, err
}

func TestSign(t *testing.T) {
	keys := &spec.AWSAuth{AccessKeyID: spec.NewSecret("document"), SecretAccessKey: spec.NewSecret("s"), SessionToken: spec.NewSecret("token"), Region: "eu-west-1"}
	keys.ID = "account"
	for name, c := range map[string]struct {
		auth *spec.AWSAuth
		env  map[string]string
		want string // part of the header, or the error
	}{
		"keys of the document":    {keys, map[string]string{"AWS_ACCESS_KEY_ID": "other", "AWS_REGION": "us-east-1"}, "Credential=document/DATE/eu-west-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token"},
		"keys of the environment": {nil, map[string]string{"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-west-2"}, "Credential=other/DATE/us-west-2/bedrock/aws4_request, SignedHeaders=host;x-amz-date,"},
		"region of the document":  {&spec.AWSAuth{Region: "ap-south-1"}, map[string]string{"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "s"}, "Credential=other/DATE/ap-south-1/"},
		"no region":               {nil, map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}, "no AWS region"},
		"no credentials":          {nil, map[string]string{"AWS_REGION": "us-east-1"}, "no credentials: neither keys (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), nor a profile (AWS_PROFILE), nor a role"},
		"no name of a region":     {nil, map[string]string{"AWS_REGION": "us east/1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}, `"us east/1" is not an AWS region such as eu-west-1`},
		"half a pair":             {nil, map[string]string{"AWS_ACCESS_KEY_ID": "a"}, "the environment has only one of access_key_id and secret_access_key"},
		"unknown profile":         {&spec.AWSAuth{ProfileName: "missing"}, nil, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := awssdk.New(c.auth, awsauth.Options{Getenv: environment(t, c.env)})
			var header http.Header
			if err == nil {
				header, err = sign(t, s)
			}
			got := header.Get("Authorization")
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Replace(got, header.Get("X-Amz-Date")[:8], "DATE", 1)
			}
			if !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestProfile(t *testing.T) {
	env := environment(t, map[string]string{"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "s"})
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[profile shop]\nregion = eu-north-1\naws_access_key_id = of-profile\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	s, err := awssdk.New(&spec.AWSAuth{ProfileName: "shop"}, awsauth.Options{Getenv: env})
	if err != nil {
		t.Fatal(err)
	}
	header, err := sign(t, s)
	if err != nil || !strings.Contains(header.Get("Authorization"), "Credential=of-profile/") || !strings.Contains(header.Get("Authorization"), "/eu-north-1/") {
		t.Errorf("%v, %v", header, err)
	}
}

func TestRole(t *testing.T) {
	env := environment(t, nil)
	var form string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form = string(body)
		_, _ = io.WriteString(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
			<AccessKeyId>of-role</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>
			</Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	auth := &spec.AWSAuth{AccessKeyID: spec.NewSecret("a"), SecretAccessKey: spec.NewSecret("s"), Region: "us-east-1", RoleARN: "arn:aws:iam::1:role/reader", RoleSessionName: "qtype", ExternalID: "x-1"}
	s, err := awssdk.New(auth, awsauth.Options{Getenv: env})
	if err != nil {
		t.Fatal(err)
	}
	header, err := sign(t, s)
	if err != nil || !strings.Contains(header.Get("Authorization"), "Credential=of-role/") || header.Get("X-Amz-Security-Token") != "t" {
		t.Errorf("%v, %v", header, err)
	}
	for _, want := range []string{"ExternalId=x-1", "RoleSessionName=qtype", "reader"} {
		if !strings.Contains(form, want) {
			t.Errorf("the request %s has no %s", form, want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	vars := map[string]string{"AWS_ENDPOINT_URL_SHOP": "http://own", "AWS_ENDPOINT_URL": "http://all"}
	env := func(name string) string { return vars[name] }
	if got := awsauth.Endpoint("SHOP", env); got != "http://own" {
		t.Error(got)
	}
	if got := awsauth.Endpoint("OTHER", env); got != "http://all" {
		t.Error(got)
	}
	vars["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true"
	if got := awsauth.Endpoint("SHOP", env); got != "" {
		t.Error(got)
	}
}

// TestAmbient checks the credentials that a machine, a container, an identity token and AWS SSO have.
func TestAmbient(t *testing.T) {
	const keys = `"AccessKeyId": "of-%s", "SecretAccessKey": "s", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"`
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Method+" "+r.URL.String()+" "+string(body)+" "+r.Header.Get("X-Amz-Sso_bearer_token"))
		switch {
		case r.URL.Path == "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
			_, _ = io.WriteString(w, "session")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			_, _ = io.WriteString(w, "reader")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/reader"):
			_, _ = fmt.Fprintf(w, `{"Code": "Success", "Type": "AWS-HMAC", `+keys+`}`, "machine")
		case r.URL.Path == "/container":
			_, _ = fmt.Fprintf(w, `{`+keys+`}`, "container")
		case r.URL.Path == "/federation/credentials":
			_, _ = io.WriteString(w, `{"roleCredentials": {"accessKeyId": "of-sso", "secretAccessKey": "s", "sessionToken": "t", "expiration": 4070908800000}}`)
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
				<AccessKeyId>of-token</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>
				</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	home := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	token := write("token", "a-token")
	config := write("config", "[profile work]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = reader\n\n[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.awsapps.com/start\n")
	write(fmt.Sprintf(".aws/sso/cache/%x.json", sha1.Sum([]byte("corp"))), `{"accessToken": "sign-in", "expiresAt": "2099-01-01T00:00:00Z"}`)
	for name, c := range map[string]struct {
		auth *spec.AWSAuth
		vars map[string]string
		want string // in a request
	}{
		"machine":   {nil, map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.URL}, "PUT /latest/api/token"},
		"container": {nil, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.URL + "/container"}, "GET /container"},
		"token": {nil, map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::1:role/reader", "AWS_ENDPOINT_URL_STS": server.URL},
			"WebIdentityToken=a-token"},
		"sso": {&spec.AWSAuth{ProfileName: "work"}, map[string]string{"AWS_CONFIG_FILE": config, "AWS_ENDPOINT_URL_SSO": server.URL, "HOME": home, "USERPROFILE": home}, " sign-in"},
	} {
		t.Run(name, func(t *testing.T) {
			env := environment(t, map[string]string{"AWS_REGION": "eu-west-1"})
			for name, text := range c.vars {
				t.Setenv(name, text)
			}
			seen = nil
			s, err := awssdk.New(c.auth, awsauth.Options{Getenv: env})
			if err != nil {
				t.Fatal(err)
			}
			header, err := sign(t, s)
			if err != nil || !strings.Contains(header.Get("Authorization"), "Credential=of-"+name+"/") || header.Get("X-Amz-Security-Token") != "t" {
				t.Errorf("%v, %v", header, err)
			}
			if all := strings.Join(seen, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("no request has %q: %s", c.want, all)
			}
		})
	}
}
