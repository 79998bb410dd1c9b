// Package awsauthtest has identities of AWS for tests of packages that do not test signatures.
package awsauthtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/spec"
)

// Builder makes Signers whose keys and region are those of the document, else of the variables of the environment. Their
// signatures name the key, the region and the service, and no more.
func Builder(auth *spec.AWSAuth, opts awsauth.Options) (awsauth.Signer, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	s := &signer{name: "the AWS credentials of the environment"}
	if auth != nil {
		s.name = "auth " + auth.ID
		for i, secret := range []spec.Secret{auth.AccessKeyID, auth.SecretAccessKey, auth.SessionToken} {
			text, err := secret.Resolve(opts.Secret)
			if err != nil {
				return nil, fmt.Errorf("auth %s: %w", auth.ID, err)
			}
			s.keys[i] = text
		}
		s.region = auth.Region
	}
	if s.keys[0] == "" {
		if err := opts.Policy.Identity("the AWS credentials of the environment"); err != nil {
			return nil, err
		}
		s.keys = [3]string{opts.Getenv("AWS_ACCESS_KEY_ID"), opts.Getenv("AWS_SECRET_ACCESS_KEY"), opts.Getenv("AWS_SESSION_TOKEN")}
	}
	s.region = cmp.Or(s.region, opts.Getenv("AWS_REGION"))
	return s, nil
}

// signer is an identity.
type signer struct {
	name, region string
	keys         [3]string // id, secret, token
}

func (s *signer) Name() string { return s.name }

func (s *signer) Region() (string, error) {
	if s.region == "" {
		return "", errors.New("no AWS region: set region in the auth, or AWS_REGION")
	}
	return s.region, nil
}

func (s *signer) Sign(req *http.Request, _ []byte, service string) error {
	if s.keys[0] == "" {
		return fmt.Errorf("%s: no credentials", s.name)
	}
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/20261130/%s/%s/aws4_request", s.keys[0], s.region, service))
	return nil
}

func (s *signer) Keys(context.Context) (id, secret, token string, err error) {
	return s.keys[0], s.keys[1], s.keys[2], nil
}
