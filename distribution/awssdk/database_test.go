package awssdk_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/spec"
)

// The token is the one that botocore makes with the same keys at the same time.
func TestDatabaseToken(t *testing.T) {
	signer, err := awssdk.New(&spec.AWSAuth{AccessKeyID: spec.NewSecret("AKIDEXAMPLE"),
		SecretAccessKey: spec.NewSecret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), SessionToken: spec.NewSecret("session/token=")},
		awsauth.Options{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	token, err := signer.DatabaseToken(t.Context(), "db.c1.eu-west-1.rds.amazonaws.com", 5432, "ada lovelace", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	got, err := url.Parse("https://" + token)
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{"Action": {"connect"}, "DBUser": {"ada lovelace"}, "X-Amz-Algorithm": {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential": {"AKIDEXAMPLE/20260102/eu-west-1/rds-db/aws4_request"}, "X-Amz-Date": {"20260102T030405Z"}, "X-Amz-Expires": {"900"},
		"X-Amz-SignedHeaders": {"host"}, "X-Amz-Security-Token": {"session/token="},
		"X-Amz-Signature": {"9f9500c659e6397880bb47c78c1e6f94a0e4a76963283ae03e6c003cd2368eef"}}
	if diff := cmp.Diff(want, got.Query()); diff != "" || got.Host != "db.c1.eu-west-1.rds.amazonaws.com:5432" || got.Path != "/" {
		t.Errorf("%s\n%s", token, diff)
	}
	if _, err := signer.DatabaseToken(t.Context(), "db.example.com", 5432, "ada", time.Now()); err == nil || err.Error() != "no AWS region: set region in the auth, or AWS_REGION" {
		t.Errorf("without a region: %v", err)
	}
}
