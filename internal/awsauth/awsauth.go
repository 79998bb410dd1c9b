// Package awsauth has what clients of AWS services need: the signatures of an identity, by Signature Version 4, and the
// addresses of services. Package awssdk of the distribution makes the signatures.
package awsauth

import (
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Options are the environment and the secrets of an identity.
type Options struct {
	Getenv func(name string) string          // the environment; nil means os.Getenv
	Secret func(spec.Secret) (string, error) // resolves references to a secret manager; nil where there is none
	Policy *trust.Policy                     // decides whether the credentials of the environment may be used; nil: they may
}

// Signer signs requests with an identity. It is safe for concurrent use.
type Signer interface {
	// Name returns what the credentials are, for messages.
	Name() string
	// Region returns the region of the identity.
	Region() (string, error)
	// Sign adds the signature for a service to a request with this body. All headers that the
	// service must be able to trust have to be set before.
	Sign(req *http.Request, body []byte, service string) error
	// Keys returns the access key of the identity, for clients that sign themselves.
	Keys(ctx context.Context) (id, secret, token string, err error)
}

// Builder makes the Signer of an identity, without a call of a server. Nil is the Builder of a program without the part.
type Builder func(auth *spec.AWSAuth, opts Options) (Signer, error)

// Signer makes the Signer of an identity; that of the environment if auth is nil.
func (b Builder) Signer(auth *spec.AWSAuth, opts Options) (Signer, error) {
	if b == nil {
		return nil, &parts.MissingError{Kind: parts.Identity, Name: "aws"}
	}
	return b(auth, opts)
}

// Host returns the name of the server of a service in a region.
func Host(service, region string) string {
	host := service + "." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	return host
}

// Endpoint returns the address of a service that the environment sets, as for all AWS
// programs: AWS_ENDPOINT_URL_ with the service's name in upper case, else
// AWS_ENDPOINT_URL; empty for none.
func Endpoint(service string, getenv func(string) string) string {
	if getenv == nil {
		getenv = os.Getenv
	}
	if getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true" {
		return ""
	}
	if own := getenv("AWS_ENDPOINT_URL_" + service); own != "" {
		return own
	}
	return getenv("AWS_ENDPOINT_URL")
}
