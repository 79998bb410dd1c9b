package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/validate"
)

// TestOpenAPIDocuments converts the documents in the folder QTYPE_OPENAPI, and calls
// operations of each at a server that checks requests against the document. kin-openapi,
// which the converter does not use, reads the documents for the server.
func TestOpenAPIDocuments(t *testing.T) {
	folder := os.Getenv("QTYPE_OPENAPI")
	if folder == "" {
		folder = "testdata"
	}
	var all []string
	for _, pattern := range []string{"*.json", "*.yaml", "fastapi/*.json"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		testkit.Must(t, err)
		all = append(all, found...)
	}
	if len(all) == 0 {
		t.Fatalf("no documents in %s", folder)
	}
	operations, calls := 0, 0
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tools := convertAll(t, path)
			c := newAPICaller(t, path, tools)
			if len(tools) != len(c.operations) {
				t.Errorf("%d tools for %d operations", len(tools), len(c.operations))
			}
			operations += len(tools)
			const most = 50
			step := max(1, len(c.operations)/most)
			for i := 0; i < len(c.operations) && i/step < most; i += step {
				c.call(t, c.operations[i])
				calls++
			}
		})
	}
	t.Logf("%d documents, %d operations, %d calls", len(all), operations, calls)
}

// convertAll converts a document twice, validates the result and returns its tools by
// method and path.
func convertAll(t *testing.T, path string) map[string]*spec.APITool {
	t.Helper()
	text, _ := convert.File(t.Context(), convert.API, path)
	if again, _ := convert.File(t.Context(), convert.API, path); again != text {
		t.Error("the second conversion differs")
	}
	unset := func(string) (string, bool) { return "sk_test_123", true }
	loaded, list := loader.LoadBytes(t.Context(), path, []byte(text), loader.Options{NoDotEnv: true, Lookup: unset})
	list = append(list, validate.Check(loaded.Document)...)
	for _, d := range list {
		t.Errorf("%s: %s", d.Code, d.Error())
	}
	if t.Failed() {
		t.FailNow()
	}
	tools := map[string]*spec.APITool{}
	for _, declared := range loaded.Document.Application.Tools {
		api := declared.(*spec.APITool)
		tools[api.Method+" "+placeholders(pathOf(t, api.Endpoint))] = api
	}
	return tools
}

// pathOf returns the path of an endpoint.
func pathOf(t *testing.T, endpoint string) string {
	t.Helper()
	_, rest, _ := strings.Cut(endpoint, "://")
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}

// placeholders replaces the names of placeholders, which a tool may spell otherwise.
func placeholders(path string) string {
	parts := strings.Split(path, "{")
	for i := range parts[1:] {
		_, rest, _ := strings.Cut(parts[i+1], "}")
		parts[i+1] = "}" + rest
	}
	return strings.Join(parts, "{")
}

// apiOperation is an operation of a document.
type apiOperation struct {
	method, path string
	item         *openapi3.PathItem
	node         *openapi3.Operation
}

// apiCaller calls operations at a server for a document.
type apiCaller struct {
	document   *openapi3.T
	base       string // path of the first server
	tools      map[string]*spec.APITool
	operations []*apiOperation
	address    string // of the server
	stripe     bool   // whether it is stripe-mock
	current    *apiOperation
	problem    error // of the last request
}

func newAPICaller(t *testing.T, path string, tools map[string]*spec.APITool) *apiCaller {
	t.Helper()
	c := &apiCaller{document: readOpenAPI(t, path), tools: tools}
	if len(c.document.Servers) > 0 {
		base, err := c.document.Servers[0].BasePath()
		testkit.Must(t, err)
		c.base = strings.TrimSuffix(base, "/")
	}
	for _, name := range slices.Sorted(mapKeys(c.document.Paths.Map())) {
		item := c.document.Paths.Value(name)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
			if node := item.GetOperation(method); node != nil {
				c.operations = append(c.operations, &apiOperation{method, name, item, node})
			}
		}
	}
	if program := os.Getenv("QTYPE_STRIPE_MOCK"); program != "" && strings.HasPrefix(filepath.Base(path), "stripe") {
		c.address, c.stripe = stripeMock(t, program, path), true
		return c
	}
	server := httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(server.Close)
	c.address = server.URL
	return c
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// readOpenAPI reads a document of version 2 or 3.
func readOpenAPI(t *testing.T, path string) *openapi3.T {
	t.Helper()
	raw, err := os.ReadFile(path)
	testkit.Must(t, err)
	if strings.Contains(string(raw), `"swagger": "2.0"`) {
		var old openapi2.T
		testkit.Must(t, json.Unmarshal(raw, &old))
		document, err := openapi2conv.ToV3(&old)
		testkit.Must(t, err)
		return document
	}
	document, err := openapi3.NewLoader().LoadFromData(raw)
	testkit.Must(t, err)
	return document
}

// call calls the tool of an operation with arguments from the schemas of the document.
func (c *apiCaller) call(t *testing.T, o *apiOperation) {
	t.Helper()
	base := c.base
	if o.node.Servers != nil { // none of the servers of operations in these documents has a path
		base = ""
	}
	declared := c.tools[o.method+" "+placeholders(base+o.path)]
	if declared == nil {
		t.Errorf("%s %s has no tool", o.method, o.path)
		return
	}
	if needsCookie(o) { // the converter reports it
		return
	}
	own := *declared
	own.Endpoint, own.AllowPrivate = c.address+strings.TrimPrefix(pathOf(t, declared.Endpoint), base), true
	own.Auth = spec.Ref[spec.Auth]{} // the token servers of documents do not exist
	if c.stripe {
		own.Headers = map[string]spec.Secret{"Authorization": spec.NewSecret("Bearer sk_test_123")}
	}
	made, err := tool.NewAPI(&own, tool.Options{})
	if err != nil {
		t.Errorf("%s %s: %v", o.method, o.path, err)
		return
	}
	c.current, c.problem = o, nil
	result, err := made.Call(t.Context(), c.arguments(&own, o))
	switch {
	case c.problem != nil:
		t.Errorf("%s %s: the server rejects the request: %v", o.method, o.path, c.problem)
	case err != nil:
		t.Errorf("%s %s: %v", o.method, o.path, err)
	case result != nil && !lacksOnly(own.Outputs, result):
		if _, err := factory.CoerceResult(own.Outputs, value.FromGo(result)); err != nil {
			t.Errorf("%s %s: %v", o.method, o.path, err)
		}
	}
}

// lacksOnly reports whether a result has no field for the only output, which is optional.
func lacksOnly(outputs []*spec.Variable, result any) bool {
	object, isObject := result.(map[string]any)
	return isObject && len(outputs) == 1 && outputs[0].IsOptional() && object[outputs[0].ID] == nil
}

// arguments makes the arguments of a call. Optional parameters of several types, which the
// checker cannot read, are left out.
func (c *apiCaller) arguments(declared *spec.APITool, o *apiOperation) map[string]any {
	known := map[string]any{}
	for _, p := range slices.Concat(o.node.Parameters, o.item.Parameters) {
		if c.stripe && p.Value.Name == "expand" { // stripe-mock fails for unknown fields
			continue
		}
		if schema := p.Value.Schema; schema != nil && (p.Value.Required || len(schema.Value.AnyOf)+len(schema.Value.OneOf) == 0) {
			known[p.Value.Name] = sampleOf(schema, 0)
		}
	}
	var body any
	if b := o.node.RequestBody; b != nil {
		body = sampleOf(usedContent(b.Value.Content), 0)
	}
	fields, _ := body.(map[string]any)
	args := map[string]any{}
	for _, v := range declared.Arguments() {
		name := v.ID
		if given := declared.Names[v.ID]; given != "" {
			name = given
		}
		sample, found := known[name]
		if slices.Contains(declared.Inputs, v) {
			sample, found = fields[name]
		}
		switch {
		case v.ID == declared.Body:
			args[v.ID] = body
		case v.IsOptional() && !found:
		case v.Type.IsMedia():
			args[v.ID] = []byte{0xff, 0xfe}
		case found:
			args[v.ID] = sample
		default: // of a placeholder with another spelling
			args[v.ID] = "1"
		}
	}
	return args
}

// usedContent returns the schema of the content that a tool sends or reads.
func usedContent(content openapi3.Content) *openapi3.SchemaRef {
	for _, want := range []string{"application/json", "json", "urlencoded", "multipart", ""} {
		for _, name := range slices.Sorted(mapKeys(content)) {
			if strings.Contains(name, want) {
				return content[name].Schema
			}
		}
	}
	return nil
}

// answer checks a request against the document and answers with a sample.
func (c *apiCaller) answer(w http.ResponseWriter, r *http.Request) {
	o := c.current
	parameters, ok := matchPath(o.path, r.URL.EscapedPath())
	if r.Method != o.method || !ok {
		c.problem = fmt.Errorf("%s %s is not %s %s", r.Method, r.URL.Path, o.method, o.path)
	}
	r.Header.Set("Host", r.Host)
	route := openapi3filterRoute(c, o)
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && c.problem == nil && !isCheckerLimit(err) {
		c.problem = err
	}
	_, _ = io.Copy(io.Discard, r.Body)
	c.respond(w, o)
}

// respond writes a sample of the first successful response with content.
func (c *apiCaller) respond(w http.ResponseWriter, o *apiOperation) {
	for _, status := range slices.Sorted(mapKeys(o.node.Responses.Map())) {
		response := o.node.Responses.Value(status).Value
		if !strings.HasPrefix(status, "2") || len(response.Content) == 0 {
			continue
		}
		if response.Content.Get("application/json") == nil {
			w.Header().Set("Content-Type", slices.Sorted(mapKeys(response.Content))[0])
			_, _ = w.Write([]byte("content"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(sampleOf(usedContent(response.Content), 0))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
