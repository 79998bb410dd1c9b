package tool

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/spec"
)

// awsCredential signs requests by Signature Version 4, for the service that the tool names.
func awsCredential(auth *spec.AWSAuth, s Service, opts Options) (*credential, error) {
	signer, err := awsauth.New(auth, awsauth.Options{Getenv: opts.Getenv, Secret: opts.Secret, Policy: opts.Policy})
	if err != nil {
		return nil, err
	}
	if _, err := signer.Region(); err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, authorize: func(req *http.Request) error {
		body, err := bodyOf(req)
		if err != nil {
			return err
		}
		return signer.Sign(req, body, cmp.Or(s.Audience, awsService(req.URL.Hostname())))
	}}, nil
}

// awsService returns the name of the service of a host: lambda for function URLs of
// Lambda, otherwise execute-api for API Gateway.
func awsService(host string) string {
	if strings.Contains(host, ".lambda-url.") {
		return "lambda"
	}
	return "execute-api"
}

// bodyOf returns the body of a request, which stays as it is.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, errors.New("the body of the request cannot be read")
	}
	_ = req.Body.Close() // only read
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// vertexCredential adds the access tokens of a Google identity.
func vertexCredential(auth *spec.VertexAuth, _ Service, opts Options) (*credential, error) {
	if err := googleauth.Allowed(opts.Policy, auth); err != nil {
		return nil, err
	}
	id, err := googleauth.New(auth, opts.Getenv)
	if err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, authorize: id.Authorize}, nil
}

// azureCredential adds tokens of an Entra ID identity for the resource that the tool
// names, otherwise for the scheme and the host of the endpoint.
func azureCredential(auth *spec.AzureAuth, s Service, opts Options) (*credential, error) {
	id, err := azureauth.New(auth, azureauth.Options{Getenv: opts.Getenv, Secret: opts.Secret, Policy: opts.Policy})
	if err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, authorize: func(req *http.Request) error {
		origin := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}
		return id.Authorize(req, cmp.Or(s.Audience, origin.String()))
	}}, nil
}
