package spec

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Formats of the body of an APITool, see APITool.BodyFormat.
const (
	BodyJSON      = "json"
	BodyForm      = "form"
	BodyMultipart = "multipart"
	BodyRaw       = "raw"
)

// Kinds of pagination, see Pagination.Type.
const (
	PagesByLink   = "link"
	PagesByCursor = "cursor"
	PagesByNumber = "page"
	PagesByOffset = "offset"
)

// Pagination is how an APITool requests the further pages of a result.
type Pagination struct {
	Positioned
	// Type is link (the header Link, or the address in the field next), cursor (the field next is a query parameter of the next request), page (the parameter counts pages) or offset (it counts items).
	Type string `yaml:"type" jsonschema:"required" validate:"oneof=link cursor page offset"`
	// Items is the field with the list of a page, such as data or result.items; without it, the result is the list.
	Items string `yaml:"items"`
	// Next is the field with the address of the next page, or with the cursor, such as meta.next or data.-1.id for the id of the last item; the last page has none.
	Next string `yaml:"next"`
	// Parameter is the query parameter for the cursor, the number of the page or the offset.
	Parameter string `yaml:"parameter"`
	// More is a field that is true if there is another page.
	More string `yaml:"more"`
	// MaxPages is the maximum number of requests for one call.
	MaxPages int `yaml:"max_pages" default:"10" validate:"gt=0"`
	// AtLimit decides about a result with more pages than max_pages: error fails the call, truncate returns the pages so far.
	AtLimit string `yaml:"at_limit" default:"error" validate:"oneof=error truncate"`
}

// sendsBody lists the HTTP methods of tools and whether they send a body.
func sendsBody() map[string]bool {
	return map[string]bool{"GET": false, "HEAD": false, "OPTIONS": false, "DELETE": false, "PUT": true, "POST": true, "PATCH": true}
}

// HasBody reports whether requests of the tool have a body: the method is POST, PUT or
// PATCH, or DELETE with the key body or a format of the body.
func (t *APITool) HasBody() bool {
	method := strings.ToUpper(t.Method)
	return sendsBody()[method] || method == "DELETE" && (t.Body != "" || t.BodyFormat != "" && t.BodyFormat != BodyJSON)
}

// Conflict is a value that makes a call of a tool impossible or contradicts another value.
type Conflict struct {
	Key     string // of the tool
	Entry   string // of the map under Key; empty for the whole value
	Problem string // what is wrong
}

// Conflicts returns the values of the tool that no request can be made of, or that
// contradict others. The validator reports them, and a run refuses the tool.
func (t *APITool) Conflicts() []Conflict {
	all := t.requestConflicts()
	if !t.hasUnknownMethod() { // else it is unknown whether requests have a body
		all = append(all, t.bodyConflicts()...)
	}
	arguments := t.Arguments()
	for _, id := range slices.Sorted(maps.Keys(t.Names)) {
		if !slices.ContainsFunc(arguments, func(v *Variable) bool { return v != nil && v.ID == id }) {
			all = append(all, Conflict{"names", id, fmt.Sprintf("names has %s, which is not an argument", id)})
		}
	}
	if t.Pagination != nil {
		if problem := t.Pagination.conflict(); problem != "" {
			all = append(all, Conflict{Key: "pagination", Problem: problem})
		}
	}
	return all
}

// bodyConflicts returns what is wrong with body and body_format.
func (t *APITool) bodyConflicts() []Conflict {
	var all []Conflict
	if t.Body != "" {
		if problem := t.bodyConflict(); problem != "" {
			all = append(all, Conflict{Key: "body", Problem: problem})
		}
	}
	switch {
	case t.BodyFormat == BodyRaw && t.Body == "":
		all = append(all, Conflict{Key: "body_format", Problem: "body_format: raw needs the key body, which names the input that is sent"})
	case len(all) == 0 && t.BodyFormat != "" && t.BodyFormat != BodyJSON && !t.HasBody():
		all = append(all, Conflict{Key: "body_format", Problem: fmt.Sprintf("a %s request has no body", strings.ToUpper(t.Method))})
	}
	return all
}

// bodyConflict returns what is wrong with the key body, empty for nothing.
func (t *APITool) bodyConflict() string {
	isInput := slices.ContainsFunc(t.Inputs, func(v *Variable) bool { return v != nil && v.ID == t.Body })
	second, more := t.secondBodyInput()
	switch {
	case !isInput:
		return fmt.Sprintf("body names %s, which is not an input", t.Body)
	case !t.HasBody():
		return fmt.Sprintf("a %s request has no body", strings.ToUpper(t.Method))
	case t.BodyFormat == BodyForm || t.BodyFormat == BodyMultipart:
		return fmt.Sprintf("a body in the format %s is made of all inputs; remove body", t.BodyFormat)
	case more:
		return fmt.Sprintf("body is %s, so the input %s is not sent; move it to parameters", t.Body, second)
	}
	return ""
}

// secondBodyInput returns an input that is neither the body nor in the endpoint.
func (t *APITool) secondBodyInput() (id string, found bool) {
	for _, v := range t.Inputs {
		if v != nil && v.ID != t.Body && !strings.Contains(t.Endpoint, "{"+v.ID+"}") {
			return v.ID, true
		}
	}
	return "", false
}

// conflict returns what is wrong with the keys, empty for nothing.
func (p *Pagination) conflict() string {
	counts := p.Type == PagesByNumber || p.Type == PagesByOffset
	switch {
	case p.Type != PagesByLink && p.Parameter == "":
		return fmt.Sprintf("pagination by %s needs parameter, the query parameter of the next request", p.Type)
	case p.Type == PagesByCursor && p.Next == "":
		return "pagination by cursor needs next, the field with the cursor"
	case p.Type == PagesByLink && p.Parameter != "":
		return "pagination by link uses the whole address of the next page; remove parameter"
	case counts && p.Next != "":
		return fmt.Sprintf("pagination by %s does not read next; remove it", p.Type)
	}
	return ""
}

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

// Conflicts returns the values of the tool that are not names of Python. The validator reports
// them, and a run refuses the tool.
func (t *PythonFunctionTool) Conflicts() []Conflict {
	var all []Conflict
	if !IsPythonPath(t.ModulePath) {
		all = append(all, Conflict{Key: "module_path", Problem: fmt.Sprintf("module_path %q is not the name of a Python module", t.ModulePath)})
	}
	if !IsPythonPath(t.FunctionName) || strings.Contains(t.FunctionName, ".") {
		all = append(all, Conflict{Key: "function_name", Problem: fmt.Sprintf("function_name %q is not the name of a Python function", t.FunctionName)})
	}
	return all
}

// IsPythonPath reports whether a text is a name of Python, or several with dots between
// them, as the path of a module.
func IsPythonPath(path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		if name == "" || unicode.IsDigit(rune(name[0])) || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			return false
		}
	}
	return true
}
