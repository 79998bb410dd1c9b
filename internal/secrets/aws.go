package secrets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/spec"
)

// newAWS reads secrets by the operation GetSecretValue of AWS Secrets Manager. The name of
// a secret is its name or its ARN.
func newAWS(m *spec.AWSSecretManager, opts Options) (source, error) {
	identity, _ := m.Auth.To.(*spec.AWSAuth)
	signer, err := opts.AWS.Signer(identity, awsauth.Options{Getenv: opts.Getenv, Secret: plain, Policy: opts.Policy})
	if err != nil {
		return source{}, err
	}
	region, err := signer.Region()
	if err != nil {
		return source{}, err
	}
	base := cmp.Or(awsauth.Endpoint("SECRETS_MANAGER", opts.Getenv), "https://"+awsauth.Host("secretsmanager", region))
	return source{read: func(ctx context.Context, name string) (string, error) {
		body, err := json.Marshal(map[string]string{"SecretId": name})
		if err != nil {
			return "", err
		}
		var answer struct {
			Text  *string `json:"SecretString"`
			Bytes string  `json:"SecretBinary"`
		}
		err = call(opts.HTTP, func() (*http.Request, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(base, "/")+"/", bytes.NewReader(body))
			if err != nil {
				return nil, errors.New("the endpoint is not an address")
			}
			req.Header.Set("Content-Type", "application/x-amz-json-1.1")
			req.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
			return req, signer.Sign(req, body, "secretsmanager")
		}, &answer)
		if err != nil || answer.Text != nil {
			return text(answer.Text), err
		}
		return decoded(answer.Bytes)
	}}, nil
}

// plain resolves the credentials of a secret manager, which cannot be its own secrets.
func plain(s spec.Secret) (string, error) {
	if s.Ref != nil {
		return "", fmt.Errorf("the credentials of the secret manager cannot be its secret %s", s.Ref.SecretName)
	}
	return s.Reveal(), nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// decoded returns the bytes of a secret that a service sends in base64.
func decoded(s string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", errors.New("the response has no secret")
	}
	return string(raw), nil
}
