package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/distribution/index/opensearch"
	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
)

// newOpenSearch opens a full-text index by its endpoint, a vector index by its arguments.
func newOpenSearch(_ context.Context, r store.Request) (index.Index, error) {
	c := opensearch.Config{Dimensions: r.Dimensions}
	address := ""
	var common *spec.DocumentServerArguments
	switch a := r.Arguments.(type) {
	case *spec.DocumentServerArguments:
		common, address = a, r.Entity.(*spec.DocumentIndex).Endpoint
	case *spec.OpenSearchArguments:
		common, address = &a.DocumentServerArguments, a.Endpoint
		c.TextField, c.VectorField = a.TextField, a.EmbeddingField
		c.Vectors = opensearch.KNN{Space: a.SpaceType, Engine: a.Engine}
		if a.Exact {
			c.Vectors = opensearch.Exact{}
		}
	}
	c.Name = r.NameOr(common.Index)
	config, err := serverConfig(r, "OpenSearch", address, common.ConnectionArguments)
	if err != nil {
		return nil, err
	}
	if r.Credential.Kind == "aws" {
		service := awsService(common.Service, address)
		c.Serverless = service == "aoss"
		signer, err := awssdk.New(r.Credential.Identity, awsauth.Options{Getenv: r.Getenv, Secret: r.Secret, Policy: r.Policy})
		if err != nil {
			return nil, err
		}
		config.Sign = func(req *http.Request, body []byte) error { return signer.Sign(req, body, service) }
	}
	if c.Client, err = remote.NewClient(config); err != nil {
		return nil, err
	}
	return opensearch.New(c), nil
}

// awsService returns the service that requests are signed for.
func awsService(set, address string) string {
	if u, err := url.Parse(address); set == "" && err == nil && strings.HasSuffix(u.Hostname(), ".es.amazonaws.com") {
		return "es"
	}
	return cmp.Or(set, "aoss")
}

func newElasticsearch(_ context.Context, r store.Request, a *spec.ElasticsearchArguments) (index.Index, error) {
	if r.Credential.Kind == "" {
		switch {
		case a.ESAPIKey != "":
			r.Credential = store.Credential{Kind: "api_key", Key: a.ESAPIKey}
		case a.ESUser != "":
			r.Credential = store.Credential{Kind: "basic", User: a.ESUser, Key: a.ESPassword}
		}
	}
	config, err := serverConfig(r, "Elasticsearch", a.ESURL, a.ConnectionArguments)
	if err != nil {
		return nil, err
	}
	client, err := remote.NewClient(config)
	if err != nil {
		return nil, err
	}
	similarity := map[string]string{"COSINE": "cosine", "DOT_PRODUCT": "dot_product", "EUCLIDEAN_DISTANCE": "l2_norm"}[a.DistanceStrategy]
	return opensearch.New(opensearch.Config{Client: client, Name: r.NameOr(a.IndexName), Dimensions: r.Dimensions, TextField: a.TextField, VectorField: a.VectorField,
		Vectors: opensearch.Dense{Similarity: similarity, Exact: a.Exact}}), nil
}

// serverConfig returns the settings of a client with the credentials of the index.
func serverConfig(r store.Request, name, address string, a spec.ConnectionArguments) (remote.Config, error) {
	c := remoteConfig(r, address, a.Timeout, a.MaxRetries)
	c.Store = name
	switch r.Credential.Kind {
	case "api_key":
		c.Header.Set("Authorization", "ApiKey "+r.Credential.Key)
	case "bearer_token":
		c.Header.Set("Authorization", "Bearer "+r.Credential.Key)
	case "basic":
		c.Header.Set("Authorization", remote.Basic(r.Credential.User, r.Credential.Key))
	}
	if a.VerifyCerts && a.CACerts == "" {
		return c, nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: !a.VerifyCerts} //nolint:gosec // verify_certs of the document
	if a.CACerts != "" {
		if err := r.Policy.Read(a.CACerts); err != nil {
			return c, err
		}
		roots, err := certificates(a.CACerts)
		if err != nil {
			return c, err
		}
		settings.RootCAs = roots
	}
	transport := httpx.Transport(maxConnections)
	transport.TLSClientConfig = settings
	c.Transport = transport
	return c, nil
}

// maxConnections is how many connections to a server are kept open.
const maxConnections = 16

// certificates returns the certificates of the system and those of a file.
func certificates(path string) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("args: ca_certs: %w", err)
	}
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("args: ca_certs: %s has no certificates in PEM form", path)
	}
	return roots, nil
}
