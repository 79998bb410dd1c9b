package spec

import (
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// Known returns what the catalogue has of the model, by the service that the model calls
// and its name there. It is false for an unknown name. A model behind a server that is not
// listed has the limits of the model of that name, and no prices.
func (m *Model) Known() (*catalogue.Model, bool) {
	row, ok := LookupProvider(m.Provider)
	if !ok || row.Client == MockClient || row.Client == LocalClient {
		return nil, false
	}
	return m.Catalogue.Lookup(m.service(row), m.Name())
}

// Service returns the provider of the catalogue whose own service answers the model's calls. It
// is empty for another server, and for one that the document does not name: a variable of the
// environment does.
func (m *Model) Service() string {
	row, ok := LookupProvider(m.Provider)
	if !ok || row.Client == MockClient || row.Client == LocalClient || m.Elsewhere {
		return ""
	}
	return m.service(row)
}

// service returns the provider of the catalogue whose service the model calls, empty for an
// unknown server.
func (m *Model) service(row Provider) string {
	own := strings.TrimPrefix(row.Name, "langchaingo:")
	if m.BaseURL == "" || isOwnService(row.BaseURL, m.BaseURL) {
		return own
	}
	if provider := catalogue.ServerOf(m.BaseURL); provider != "" {
		return provider
	}
	if own == "ollama" {
		return own
	}
	return ""
}

// isOwnService reports whether an address is one of the provider's service: the last two
// labels of the host are equal, as in eu.api.openai.com and the hosts of clouds' regions.
func isOwnService(service, address string) bool {
	domain := func(text string) string {
		u, err := url.Parse(text)
		if err != nil {
			return ""
		}
		labels := strings.Split(strings.ToLower(u.Hostname()), ".")
		return strings.Join(labels[max(0, len(labels)-2):], ".")
	}
	own := domain(service)
	return strings.Contains(own, ".") && !strings.HasPrefix(service, "http://") && own == domain(address)
}
