package spec

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Conflict returns the first key of the model that its provider cannot use, and what is
// wrong with it; both are empty if there is none. A provider that this version does not
// run is reported by CheckAvailable.
func (m *Model) Conflict() (key, problem string) {
	row, ok := callableProvider(m)
	switch {
	case !ok:
		return "", ""
	case row.NoChat:
		return "provider", fmt.Sprintf("the provider %s has no chat models", row.Name)
	case row.NoPath && m.BaseURL != "":
		if u, err := url.Parse(m.BaseURL); err == nil && !HasNoPath(u) {
			return "base_url", fmt.Sprintf("base_url of %s must have no path", row.Name)
		}
	}
	return m.headersConflict(row)
}

// headersConflict is the part of Conflict about headers.
func (m *Model) headersConflict(row Provider) (key, problem string) {
	if len(m.Headers) == 0 {
		return "", ""
	}
	if row.Client != NativeClient {
		return "headers", fmt.Sprintf("the provider %s sends no headers", row.Name)
	}
	if _, problem := m.HeaderConflict(); problem != "" {
		return "headers", problem
	}
	return "", ""
}

// HasNoPath reports whether an address has no path, except for the version v1.
func HasNoPath(u *url.URL) bool {
	path := strings.Trim(u.Path, "/")
	return path == "" || path == "v1"
}

// Conflict is Conflict of an embedding model.
func (m *EmbeddingModel) Conflict() (key, problem string) {
	row, ok := callableProvider(&m.Model)
	switch {
	case !ok:
		return "", ""
	case m.Thinking != "":
		return "thinking", "an embedding model does not reason"
	case !row.Embeddings:
		return "provider", fmt.Sprintf("the provider %s has no embedding models", row.Name)
	case len(row.EmbeddingProtocols) > 0 && !slices.Contains(row.EmbeddingProtocols, m.embeddingProtocol()):
		return "model_id", fmt.Sprintf("%s is not an embedding model of %s that is supported: the catalogue has none of that name with embedding_protocol %s", m.Name(), row.Name, strings.Join(row.EmbeddingProtocols, " or "))
	case row.Client == LocalClient && strings.Contains(m.Name(), schemeEnd):
		return "model_id", fmt.Sprintf("%q is an address; provider %s reads a local folder", m.Name(), row.Name)
	}
	return m.headersConflict(row)
}

// embeddingProtocol returns the form of requests to the model, empty if it is not known.
func (m *EmbeddingModel) embeddingProtocol() string {
	if known, ok := m.Known(); ok {
		return known.EmbeddingProtocol
	}
	return ""
}

// AuthConflict returns why calls of the model cannot use its auth, empty if they can.
// An auth that has no effect, such as that of a mock, is no conflict.
func (m *Model) AuthConflict() string {
	row, ok := callableProvider(m)
	auth := m.Auth.To
	if !ok || auth == nil || len(row.Auths) == 0 {
		return ""
	}
	if _, isKey := auth.(KeyAuth); isKey || slices.Contains(row.Auths, TypeName(auth)) {
		return ""
	}
	return fmt.Sprintf("provider %s takes an auth of type %s; %s is %s", row.Name, strings.Join(row.Auths, " or "), auth.EntityID(), TypeName(auth))
}

// callableProvider returns the row of a model's provider, and whether this version runs it.
func callableProvider(m *Model) (Provider, bool) {
	row, known := m.ProviderRow()
	return row, known && row.Client != MissingClient
}

// IsHTTPAddress reports whether a text is the http or https address of a server, which
// `base_url`, environment variables of base URLs and endpoints must be.
func IsHTTPAddress(text string) bool {
	u, err := parseAddress(text)
	return err == nil && u.Hostname() != ""
}
