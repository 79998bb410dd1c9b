package secrets

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/spec"
)

// newAzure reads secrets of an Azure Key Vault.
func newAzure(m *spec.AzureKeyVault, opts Options) (source, error) {
	id, err := azureauth.New(m.Auth.To, azureauth.Options{Getenv: opts.Getenv, Secret: plain, Policy: opts.Policy})
	if err != nil {
		return source{}, err
	}
	vault, err := url.Parse(m.VaultURL)
	if err != nil || vault.Host == "" {
		return source{}, errors.New("vault_url is not an address")
	}
	return source{read: func(ctx context.Context, name string) (string, error) {
		parts := strings.Split(name, "/")
		for _, p := range parts {
			if !isSegment(p) || len(parts) > 2 {
				return "", errors.New("the name must be NAME or NAME/VERSION")
			}
		}
		var answer struct {
			Value *string `json:"value"`
		}
		err := call(opts.HTTP, func() (*http.Request, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(m.VaultURL, "/")+"/secrets/"+name+"?api-version=7.4", http.NoBody)
			if err != nil {
				return nil, errors.New("vault_url is not an address")
			}
			return req, id.Authorize(req, vaultResource(vault.Hostname()))
		}, &answer)
		if err == nil && answer.Value == nil {
			err = errors.New("the response has no secret")
		}
		return text(answer.Value), err
	}}, nil
}

// vaultResource returns what tokens for a vault are requested for: the domain of its
// cloud, such as https://vault.azure.net.
func vaultResource(host string) string {
	if _, domain, ok := strings.Cut(host, ".vault."); ok {
		return "https://vault." + domain
	}
	return "https://vault.azure.net"
}
