// Package awssdk signs HTTP requests with the AWS identity of a document, by the AWS SDK: it finds credentials where the
// programs of AWS do.
package awssdk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
)

// Signer signs requests. It is safe for concurrent use, and fetches credentials when it
// needs them, also again before they expire.
type Signer struct {
	identity    string // for messages
	region      string
	credentials aws.CredentialsProvider
	signer      *v4.Signer
}

// Builder makes Signers, for the table of parts.
func Builder(auth *spec.AWSAuth, opts awsauth.Options) (awsauth.Signer, error) {
	return New(auth, opts)
}

// New makes the Signer of an identity. Credentials and region that it does not set come
// from the environment: variables, profiles, roles of containers and machines. It calls
// no server.
func New(auth *spec.AWSAuth, opts awsauth.Options) (*Signer, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	s := &Signer{identity: "the AWS credentials of the environment", signer: v4.NewSigner()}
	if auth != nil {
		s.identity = "auth " + auth.ID
	} else {
		auth = &spec.AWSAuth{}
	}
	keys, err := keyPair(auth, opts)
	if err != nil {
		return nil, err
	}
	if keys == nil || keys.Source == fromEnvironment {
		if err := opts.Policy.Identity("the AWS credentials of the environment"); err != nil {
			return nil, err
		}
	}
	cfg, err := config.LoadDefaultConfig(context.Background(), loadOptions(auth, keys, opts)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", s.identity, httpx.SingleLine(err.Error(), 300))
	}
	s.region, s.credentials = cfg.Region, cfg.Credentials
	if auth.RoleARN != "" {
		s.credentials = aws.NewCredentialsCache(assumedRole(cfg, auth), renewEarly)
	}
	return s, nil
}

// renewEarly makes credentials expire some minutes before they do, so that a request that
// waits does not carry expired ones.
func renewEarly(o *aws.CredentialsCacheOptions) {
	o.ExpiryWindow, o.ExpiryWindowJitterFrac = 5*time.Minute, 0.5
}

// loadOptions returns what is known about an identity, for the SDK to complete.
func loadOptions(auth *spec.AWSAuth, keys *aws.Credentials, opts awsauth.Options) []func(*config.LoadOptions) error {
	all := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{}), config.WithCredentialsCacheOptions(renewEarly)}
	for _, region := range []string{auth.Region, opts.Getenv("AWS_REGION"), opts.Getenv("AWS_DEFAULT_REGION")} {
		if region != "" {
			all = append(all, config.WithRegion(region))
			break
		}
	}
	switch {
	case keys != nil:
		fixed := *keys
		all = append(all, config.WithCredentialsProvider(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return fixed, nil })))
	case auth.ProfileName != "":
		all = append(all, config.WithSharedConfigProfile(auth.ProfileName))
	case opts.Getenv("AWS_PROFILE") != "":
		all = append(all, config.WithSharedConfigProfile(opts.Getenv("AWS_PROFILE")))
	}
	return all
}

// keyPair returns the keys that the document or the environment contains, nil for none. A
// profile of the document precedes the keys of the environment.
func keyPair(auth *spec.AWSAuth, opts awsauth.Options) (*aws.Credentials, error) {
	var texts [3]string
	for i, secret := range []spec.Secret{auth.AccessKeyID, auth.SecretAccessKey, auth.SessionToken} {
		text, err := secret.Resolve(opts.Secret)
		if err != nil {
			return nil, fmt.Errorf("auth %s: %w", auth.ID, err)
		}
		texts[i] = text
	}
	source := "document"
	if texts[0] == "" && texts[1] == "" && auth.ProfileName == "" {
		source = fromEnvironment
		texts = [3]string{opts.Getenv("AWS_ACCESS_KEY_ID"), opts.Getenv("AWS_SECRET_ACCESS_KEY"), opts.Getenv("AWS_SESSION_TOKEN")}
	}
	switch {
	case texts[0] == "" && texts[1] == "":
		return nil, nil
	case texts[0] == "" || texts[1] == "":
		return nil, fmt.Errorf("the %s has only one of access_key_id and secret_access_key", source)
	}
	return &aws.Credentials{AccessKeyID: texts[0], SecretAccessKey: texts[1], SessionToken: texts[2], Source: source}, nil
}

// fromEnvironment is the source of keys that the document does not contain.
const fromEnvironment = "environment"

// assumedRole returns the credentials of the role of an identity.
func assumedRole(cfg aws.Config, auth *spec.AWSAuth) aws.CredentialsProvider {
	return stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), auth.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = cmp.Or(auth.RoleSessionName, "qtype-session-"+auth.ID)
		if auth.ExternalID != "" {
			o.ExternalID = aws.String(auth.ExternalID)
		}
	})
}

// Name returns what the credentials are, for messages.
func (s *Signer) Name() string { return s.identity }

// Region returns the region of the identity.
func (s *Signer) Region() (string, error) {
	if s.region == "" {
		return "", errors.New("no AWS region: set region in the auth, or AWS_REGION")
	}
	other := func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if strings.ContainsFunc(s.region, other) {
		return "", fmt.Errorf("%q is not an AWS region such as eu-west-1: correct region in the auth, or AWS_REGION", s.region)
	}
	return s.region, nil
}

// Keys returns the access key of the identity, for clients that sign themselves.
func (s *Signer) Keys(ctx context.Context) (id, secret, token string, err error) {
	keys, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return "", "", "", s.noCredentials(err)
	}
	return keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken, nil
}

// noCredentials describes why an identity has no credentials. The SDK ends its search at the
// metadata service of EC2, whose failure explains little on other computers.
func (s *Signer) noCredentials(err error) error {
	text := httpx.SingleLine(err.Error(), 300)
	if strings.Contains(text, "no EC2 IMDS role found") {
		return fmt.Errorf("%s: no credentials: neither keys (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), nor a profile (AWS_PROFILE), nor a role of a container or an EC2 instance: %s", s.identity, text)
	}
	return fmt.Errorf("%s: no credentials: %s", s.identity, text)
}

// In returns a Signer of the same identity for another region; an empty region changes nothing.
func (s *Signer) In(region string) *Signer {
	other := *s
	other.region = cmp.Or(region, s.region)
	return &other
}

// Sign adds the signature for a service to a request with this body. All headers that the
// service must be able to trust have to be set before.
func (s *Signer) Sign(req *http.Request, body []byte, service string) error {
	region, err := s.Region()
	if err != nil {
		return err
	}
	keys, err := s.credentials.Retrieve(req.Context())
	switch {
	case req.Context().Err() != nil:
		return req.Context().Err()
	case err != nil:
		return s.noCredentials(err)
	}
	sum := sha256.Sum256(body)
	if err := s.signer.SignHTTP(req.Context(), keys, req, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		return fmt.Errorf("%s: %s", s.identity, httpx.SingleLine(err.Error(), 300))
	}
	return nil
}
