package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Conflict returns the first key of the model that its provider cannot use, and what is
// wrong with it; both are empty if there is none. A provider that this version does not
// run is reported by CheckAvailable.
func (m *Model) Conflict() (key, problem string) {
	if row, ok := callableProvider(m); ok && row.NoChat {
		return "provider", fmt.Sprintf("the provider %s has no chat models", row.Name)
	}
	return "", ""
}

// Conflict is Conflict of an embedding model.
func (m *EmbeddingModel) Conflict() (key, problem string) {
	row, ok := callableProvider(&m.Model)
	switch {
	case !ok:
		return "", ""
	case !row.Embeddings:
		return "provider", fmt.Sprintf("the provider %s has no embedding models", row.Name)
	case len(row.EmbeddingModels) > 0 && !slices.ContainsFunc(row.EmbeddingModels, func(part string) bool { return strings.Contains(m.Name(), part) }):
		return "model_id", fmt.Sprintf("%s is not an embedding model of %s that is supported: those of %s are", m.Name(), row.Name, strings.Join(row.EmbeddingModels, " and "))
	}
	return "", ""
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
	row, known := LookupProvider(m.Provider)
	return row, known && row.Client != MissingClient
}

// IsHTTPAddress reports whether a text is the http or https address of a server, which
// `base_url`, environment variables of base URLs and endpoints must be.
func IsHTTPAddress(text string) bool {
	u, err := parseAddress(text)
	return err == nil && u.Hostname() != ""
}
