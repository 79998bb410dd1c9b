package spec

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// The headers of credentials for tools.
const (
	KeyHeader           = "X-API-Key" // of an api_key auth that names neither a header nor a query
	AuthorizationHeader = "Authorization"
)

// CredentialPlace returns the header or the query parameter in which tools send the
// credentials of an auth; both are empty for nil.
func CredentialPlace(auth Auth) (header, query string) {
	key, isKey := auth.(*APIKeyAuth)
	switch {
	case auth == nil:
		return "", ""
	case !isKey:
		return AuthorizationHeader, ""
	case key.Query != "":
		return "", key.Query
	case key.Header != "":
		return key.Header, ""
	}
	return KeyHeader, ""
}

// ArgumentName returns the name by which the server knows an argument.
func (t *APITool) ArgumentName(v *Variable) string {
	if name := t.Names[v.ID]; name != "" {
		return name
	}
	return v.ID
}

// QueryArguments returns the arguments that are sent in the query: those that are neither
// in the endpoint nor in a header nor in the body.
func (t *APITool) QueryArguments() []*Variable {
	parts, _ := ParseEndpoint(t.Endpoint)
	return slices.DeleteFunc(slices.Clone(t.Arguments()), func(v *Variable) bool {
		named := v != nil && slices.ContainsFunc(parts, func(p EndpointPart) bool { return p.Name == v.ID })
		return v == nil || named || slices.Contains(t.HeaderParameters, v) || t.HasBody() && slices.Contains(t.Inputs, v)
	})
}

// Duplicate returns the position of the first header or query parameter that the tool sets
// twice, by itself or by its auth, and what is wrong; the problem is empty if there is
// none. The validator reports it, and a run refuses it.
func (t *APITool) Duplicate() (at *Position, problem string) {
	header, query := CredentialPlace(t.Auth.To)
	for i, v := range t.HeaderParameters {
		if v == nil {
			continue
		}
		name, at := t.ArgumentName(v), t.position.Field("header_parameters").Index(i)
		switch {
		case !IsHeaderName(name):
			return at, fmt.Sprintf("invalid header %q", name)
		case IsTransportHeader(name):
			return at, fmt.Sprintf("the header %s is set by qtype", name)
		case header != "" && strings.EqualFold(name, header), t.header(name) != "":
			return at, fmt.Sprintf("the header %s is set twice", name)
		}
	}
	if name := t.IdempotencyHeader; name != "" {
		if problem := t.idempotencyProblem(name, header); problem != "" {
			return t.position.Field("idempotency_header"), problem
		}
	}
	if written := t.header(header); header != "" && written != "" {
		return t.position.Field("headers").Field(written), fmt.Sprintf("headers and auth %s both set %s", t.Auth.To.EntityID(), header)
	}
	if query == "" {
		return nil, ""
	}
	return t.duplicateQuery(query)
}

// idempotencyProblem returns why a header cannot have the key of a call, empty if it can. auth is the header of the auth.
func (t *APITool) idempotencyProblem(name, auth string) string {
	isArgument := slices.ContainsFunc(t.HeaderParameters, func(v *Variable) bool { return v != nil && strings.EqualFold(t.ArgumentName(v), name) })
	switch {
	case !IsHeaderName(name):
		return fmt.Sprintf("invalid header %q", name)
	case IsTransportHeader(name):
		return fmt.Sprintf("the header %s is set by qtype", name)
	case isArgument, t.header(name) != "", strings.EqualFold(name, auth):
		return fmt.Sprintf("the header %s is set twice", name)
	case t.Pagination != nil:
		return "idempotency_header and pagination exclude each other: each page would have the key of the first"
	}
	return ""
}

// duplicateQuery is Duplicate for the query parameter of the auth.
func (t *APITool) duplicateQuery(name string) (at *Position, problem string) {
	both := fmt.Sprintf("the query of the call and auth %s both set %s", t.Auth.To.EntityID(), name)
	parts, _ := ParseEndpoint(t.Endpoint)
	_, text, _ := strings.Cut(StaticEndpoint(parts), "?")
	written, err := url.ParseQuery(text)
	switch {
	case err != nil:
		return t.position.Field("endpoint"), "endpoint has an invalid query"
	case written.Has(name):
		return t.position.Field("endpoint"), both
	}
	for _, v := range t.QueryArguments() {
		if t.ArgumentName(v) == name {
			return v.position, both
		}
	}
	return nil, ""
}

// header returns the name of a declared header with a value, as the document writes it;
// empty if there is none.
func (t *APITool) header(name string) string {
	for _, written := range slices.Sorted(maps.Keys(t.Headers)) {
		if strings.EqualFold(written, name) && !t.Headers[written].IsZero() {
			return written
		}
	}
	return ""
}

// StaticEndpoint returns an endpoint with x for every placeholder.
func StaticEndpoint(parts []EndpointPart) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Name == "" {
			b.WriteString(p.Text)
		} else {
			b.WriteString("x")
		}
	}
	return b.String()
}
