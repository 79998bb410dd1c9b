package openapi_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/openapi"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// convert converts a text; the result is empty if it is not an OpenAPI file.
func convert(t *testing.T, text string) string {
	t.Helper()
	open := func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}
	parsed, _, _ := loader.LoadValue(t.Context(), "api.json", loader.Options{Open: open})
	if parsed == nil {
		return ""
	}
	app, err := openapi.Convert(input.NewReport(nil), input.FromValue(parsed), "api", nil)
	if err != nil {
		return ""
	}
	return app.YAML()
}

// check reports the errors of a converted document.
func check(t *testing.T, text string) {
	t.Helper()
	loaded, list := loader.LoadBytes(t.Context(), "app", []byte(text), loader.Options{NoDotEnv: true})
	list = append(list, validate.Check(loaded.Document)...)
	if list.Errors() > 0 {
		t.Errorf("%v\n%s", list, text)
	}
}

// operation returns a file with one operation.
func operation(body, schemas string) string {
	return `{"openapi": "3.0.3", "info": {"title": "A"}, "servers": [{"url": "https://a.example"}], "paths": {"/a/{b}": {"post": ` + body + `}}, "components": {"schemas": ` + schemas + `}}`
}

func TestConvert_Parts(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no operationId", operation(`{}`, `{}`), "id: post_a_b"},
		{"summary", operation(`{"summary": "Makes\n it"}`, `{}`), "description: Makes it"},
		{"operation's parameter", `{"openapi": "3.0.0", "paths": {"/a": {"parameters": [{"name": "x", "in": "query", "schema": {"type": "string"}}],
			"get": {"parameters": [{"name": "x", "in": "query", "schema": {"type": "integer"}}]}}}}`, `{id: x, type: "int?"}`},
		{"no server", `{"openapi": "3.0.0", "paths": {"/a": {"get": {}}}}`, "endpoint: http://localhost/a"},
		{"relative server", `{"openapi": "3.0.0", "servers": [{"url": "/v1"}], "paths": {"/a": {"get": {}}}}`, "endpoint: http://localhost/v1/a"},
		{"allOf", operation(`{"requestBody": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/P"}, {"properties": {"z": {"type": "number"}}, "required": ["z"]}]}}}}}`,
			`{"P": {"properties": {"x": {"type": "boolean"}}}}`), "- {id: x, type: \"boolean?\"}\n      - {id: z, type: float}"},
		{"name of a built-in type", operation(`{"responses": {"200": {"content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/ChatMessage"}}}}}}}`,
			`{"ChatMessage": {"properties": {"x": {"type": "string"}, "_links": {"type": "string"}}}}`), "- id: ChatMessage_2"},
		{"choice", operation(`{"parameters": [{"name": "x", "in": "query", "schema": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}]}`, `{}`), `{id: x, type: "int?"}`},
		{"JSON is preferred", operation(`{"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "integer"}}}}}`, `{}`), `{id: request, type: "int?"}`},
		{"dollar", operation(`{"description": "costs ${PRICE}"}`, `{}`), "costs ${LITERAL_DOLLAR:-$}{PRICE}"},
		{"dollar without an end", operation(`{"description": "costs ${ more"}`, `{}`), "costs ${LITERAL_DOLLAR:-$}{ more"},
		{"oauth", `{"swagger": "2.0", "host": "a", "securityDefinitions": {"o": {"type": "oauth2", "tokenUrl": "https://a/t"}}, "paths": {"/a": {"get": {}}}}`, "token_url: https://a/t"},
		{"reference to nothing", operation(`{"parameters": [{"$ref": "#/components/parameters/none"}]}`, `{}`), "# The reference #/components/parameters/none leads to nothing in the file."},
		{"not a path", `{"openapi": "3.0.0", "paths": {"/a": {"get": {}, "post": 7}, "/b": 7, "x-note": "c"}}`, "# The operation POST /a is left out: expected an object.\n# The path /b has no operations: expected an object."},
		{"server without a host", `{"openapi": "3.0.0", "servers": [{"url": "http://"}], "paths": {"/a": {"get": {}}}}`, "endpoint: http://localhost/a"},
		{"server that is not a URL", `{"openapi": "3.0.0", "servers": [{"url": "http://a b/v1"}], "paths": {"/a": {"get": {}}}}`, "endpoint: http://localhost/a"},
		{"unmatched brace", `{"openapi": "3.0.0", "servers": [{"url": "https://a/{v"}], "paths": {"/a": {"get": {}}}}`, "endpoint: http://localhost/a"},
		{"other protocol", `{"swagger": "2.0", "host": "a", "basePath": "/v1/", "schemes": ["ws", "http"], "paths": {"/a": {"get": {}}}}`, "endpoint: http://a/v1/a"},
		{"host that is not one", `{"swagger": "2.0", "host": "a b", "paths": {"/a": {"get": {}}}}`, "endpoint: http://localhost/a"},
		{"path that is not one", `{"openapi": "3.0.0", "paths": {"/a": {"get": {}}, "/b{c": {"get": {}}, "d": {"get": {}}}}`, "# The path \"/b{c\" is left out: it is not the path of a URL.\n# The path \"d\" is left out"},
		{"address of tokens that is not one", `{"swagger": "2.0", "host": "a", "securityDefinitions": {"o": {"type": "oauth2", "tokenUrl": "http://"}}, "paths": {"/a": {"get": {}}}}`, "type: bearer_token"},
		{"name of another argument", `{"openapi": "3.0.0", "paths": {"/{a~b}/{a_b}": {"get": {"parameters": [{"name": "a~b", "in": "path", "required": true, "schema": {"type": "string"}}, {"name": "a_b", "in": "path", "required": true, "schema": {"type": "string"}}]}}}}`, "endpoint: \"http://localhost/{a_b}/{a_b_2}\""},
		{"many names without letters of ids", operation(`{"parameters": [`+unnamed(12)+`]}`, `{}`), "id: argument_12"},
		{"parameters without names", operation(`{"parameters": [{"in": "query"}, null, 7]}`, `{}`),
			"# The value of paths./a/{b}.post.parameters is ignored: expected a mapping, not null.\n# The value of paths./a/{b}.post.parameters is ignored: expected a mapping, not 7.\n" +
				"# Tool post_a_b: a parameter without a name is left out."},
		{"parameter of another path", operation(`{"parameters": [{"in": "path", "name": "x"}]}`, `{}`), "# Tool post_a_b: the path has no {x}, so that the parameter is not sent."},
		{"security that is a name", operation(`{"security": ["key"]}`, `{}`), "# The value of paths./a/{b}.post.security is ignored: expected a mapping, not \"key\"."},
		{"security that is a mapping", operation(`{"security": {"key": []}}`, `{}`), "# The value of paths./a/{b}.post.security is ignored: expected a list, not a mapping."},
		{"body that is a list", operation(`{"requestBody": {"content": []}, "responses": {"200": 5}}`, `{}`),
			"# The value of paths./a/{b}.post.requestBody.content is ignored: expected a mapping, not a list.\n# The value of paths./a/{b}.post.responses.200 is ignored: expected a mapping, not 5."},
		{"other file", operation(`{"requestBody": {"$ref": "other.json#/x"}}`, `{}`), "# The reference other.json#/x to another file is not followed."},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := convert(t, test.text)
			if !strings.Contains(got, test.want) {
				t.Errorf("%s is not in\n%s", test.want, got)
			}
			check(t, got)
			if again := convert(t, test.text); again != got {
				t.Error("a second conversion differs")
			}
		})
	}
}

// TestConvert_SharedParts ends for schemas whose parts have 16 to the power of 40 paths, and for many
// operations with one id.
func TestConvert_SharedParts(t *testing.T) {
	var schemas, paths []string
	for i := range 40 {
		next := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"$ref": "#/components/schemas/S%d"},`, i+1), 8), ",")
		schemas = append(schemas, fmt.Sprintf(`"S%d": {"anyOf": [%s], "allOf": [%s]}`, i, next, next))
	}
	schemas = append(schemas, `"S40": {"properties": {"x": {"type": "string"}}}`)
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf(`"/p%d": {"get": {"operationId": "same"}}`, i))
	}
	paths = append(paths, `"/a": {"post": {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/S0"}}}}}}`)
	got := convert(t, `{"openapi": "3.0.0", "paths": {`+strings.Join(paths, ", ")+`}, "components": {"schemas": {`+strings.Join(schemas, ", ")+`}}}`)
	for _, want := range []string{`- {id: x, type: "text?"}`, "id: same_3000\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in the result", want)
		}
	}
}

// unnamed returns parameters whose names have no letters that ids can have.
func unnamed(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"name": %q, "in": "query"}`, strings.Repeat("名", i+2)))
	}
	return strings.Join(all, ", ")
}

func TestConvert_Credentials(t *testing.T) {
	for _, test := range []struct{ scheme, want string }{
		{`{"type": "apiKey", "in": "header", "name": "X-Key"}`, "api_key: \"${A_KEY}\"\n    header: X-Key"},
		{`{"type": "apiKey", "in": "query", "name": "key"}`, "query: key"},
		{`{"type": "apiKey", "in": "cookie", "name": "key"}`, "# The security scheme s has no counterpart."},
		{`{"type": "http", "scheme": "Bearer"}`, "token: \"${A_TOKEN}\""},
		{`{"type": "http", "scheme": "basic"}`, "username: \"${A_USER}\"\n    password: \"${A_PASSWORD}\""},
		{`{"type": "http", "scheme": "digest"}`, "# The security scheme s has no counterpart."},
		{`{"type": "oauth2", "flows": {"implicit": {}, "clientCredentials": {"tokenUrl": "https://a.example/t"}}}`, "token_url: https://a.example/t"},
		{`{"type": "oauth2", "flows": {"implicit": {}}}`, "type: bearer_token"},
		{`{"type": "openIdConnect"}`, "# The security scheme s needs a person to sign in"},
	} {
		got := convert(t, `{"openapi": "3.0.3", "info": {"title": "A"}, "servers": [{"url": "https://a.example"}], "paths": {"/a": {"get": {}}}, "components": {"securitySchemes": {"s": `+test.scheme+`}}}`)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s is not in\n%s", test.scheme, test.want, got)
		}
		check(t, got)
	}
}

// FuzzConvert checks that a conversion does not panic, and that its document is free of
// errors that its syntax or structure causes.
func FuzzConvert(f *testing.F) {
	f.Add(operation(`{"operationId": "x", "responses": {"200": {"content": {"a": {"schema": {"$ref": "#/components/schemas/A"}}}}}}`, `{"A": {"properties": {"a": {"$ref": "#/components/schemas/A"}}}}`))
	f.Add(operation(`{"parameters": [{"name": "", "in": "query"}, {"name": "b", "in": "path"}, 5, null]}`, `{"A": {"type": "array"}}`))
	f.Add(`{"swagger": 2, "paths": [], "host": []}`)
	f.Add("openapi: 3\npaths: &p {/x: {get: *p}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := convert(t, text)
		if _, list := loader.LoadBytes(t.Context(), "app", []byte(got), loader.Options{NoDotEnv: true}); got != "" {
			for _, d := range list {
				if d.Code == "QT002" || d.Code == "QT003" {
					t.Errorf("%v\n%s", d, got)
				}
			}
		}
	})
}
