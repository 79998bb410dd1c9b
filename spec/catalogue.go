package spec

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// Known returns what the catalogue has of the model, by the service that the model calls and
// its name there. It is false for an unknown name. A model of a server that is not listed has
// the limits of the model of that name; only rows of the user give it prices.
func (m *Model) Known() (*catalogue.Model, bool) {
	row, ok := m.ProviderRow()
	if !ok || row.Client == MockClient || row.Client == LocalClient {
		return nil, false
	}
	service, own := m.service(row), providerOf(row)
	if m.address() != "" {
		known, ok := m.Catalogue.LookupOwn(own, m.Name(), m.address())
		if ok && (service != own || known.Server != "") {
			return known, true
		}
	}
	return m.Catalogue.Lookup(service, m.Name())
}

// address is where the document or the environment says that the model is, empty for neither.
func (m *Model) address() string { return cmp.Or(m.BaseURL, m.Elsewhere) }

// providerOf returns the provider of the catalogue of a row of the providers.
func providerOf(row Provider) string { return strings.TrimPrefix(row.Name, "langchaingo:") }

// Service returns the provider of the catalogue whose own service answers the model's calls. It
// is empty for another server, whether the document or the environment names it.
func (m *Model) Service() string {
	row, ok := m.ProviderRow()
	if !ok || row.Client == MockClient || row.Client == LocalClient {
		return ""
	}
	return m.service(row)
}

// service returns the provider of the catalogue whose service the model calls, empty for an
// unknown server.
func (m *Model) service(row Provider) string {
	own, address := providerOf(row), m.address()
	if address == "" || isOwnService(row.BaseURL, address) {
		return own
	}
	if provider := catalogue.ServerOf(address); provider != "" {
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
