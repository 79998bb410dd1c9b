package mcpserver_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestAssistant_Validate(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2026-07-28", nil)
	at := func(code string, line, column, endLine, endColumn float64, more object) object {
		d := object{"code": code, "severity": "error", "line": line, "column": column, "end_line": endLine, "end_column": endColumn}
		maps.Copy(d, more)
		return d
	}
	for _, test := range []struct {
		yaml, text string
		want       []any
	}{
		{"id: x\ndescription: ${UNSET}\n", "✅ Valid QType Code", []any{}},
		{"id: x\nflows:\n - {id: f, steps: [{type: Eco, id: e}]}\n", `❌ Validation Error: document:3:27: unknown step type "Eco"; did you mean "Echo"? [QT106]`,
			[]any{at("QT106", 3, 27, 3, 30, object{"message": `unknown step type "Eco"`, "hint": `did you mean "Echo"?`, "suggestion": "Echo"})}},
		{"id: x\ndescription: !include a.yaml\n", `❌ Validation Error: document:2:23: cannot include "a.yaml": this document may not read files [QT006]`,
			[]any{at("QT006", 2, 23, 2, 29, object{"message": `cannot include "a.yaml": this document may not read files`})}},
		{"", "❌ Validation Error: document:1:1: the document is empty; it needs at least \"id:\" [QT101]", nil},
		{"id: 'a b'\n", "✅ Valid QType Code\nwarning: document:1:5: ", nil},
	} {
		got := callTool(t, s, "validate_qtype_yaml", object{"yaml_content": test.yaml})
		structured := got.Structured.(object)
		if got.IsError || structured["result"] != got.Text || !strings.HasPrefix(got.Text, test.text) {
			t.Errorf("%q: got %+v", test.yaml, got)
		}
		if diff := cmp.Diff(test.want, list(structured["diagnostics"])); test.want != nil && diff != "" {
			t.Errorf("%q: -want +got\n%s", test.yaml, diff)
		}
	}
}

func TestAssistant_Diff(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2026-07-28", nil)
	flow := func(inputs string) string {
		return "id: x\nflows: [{id: f, variables: [{id: a, type: text}, {id: b, type: text}], inputs: [" + inputs + "], outputs: [a], steps: [{type: Echo, id: e, inputs: [a], outputs: [a]}]}]\n"
	}
	got := callTool(t, s, "diff", object{"before": flow("a"), "after": flow("a, b")})
	changes := list(got.Structured.(object)["changes"])
	if len(changes) == 0 || changes[0].(object)["impact"] != "breaking" || !strings.HasSuffix(got.Text, "1 change: 1 breaking") {
		t.Errorf("got %+v", got)
	}
	if got := callTool(t, s, "diff", object{"before": flow("a"), "after": flow("a")}); got.IsError || len(list(got.Structured.(object)["changes"])) != 0 {
		t.Errorf("got %+v", got)
	}
	if got := callTool(t, s, "diff", object{"before": flow("a"), "after": "id: ["}); !got.IsError || !strings.Contains(got.Text, "after:1:") {
		t.Errorf("got %+v", got)
	}
}

func TestAssistant_Explain(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2026-07-28", nil)
	if got := callTool(t, s, "explain", object{"code": " qt202"}); !strings.HasPrefix(got.Text, "QT202 (error): ") || !strings.Contains(got.Text, "Wrong:\n\n```yaml\n") {
		t.Errorf("got %+v", got)
	}
	if got := callTool(t, s, "explain", object{"code": "QT2020"}); !got.IsError || !strings.Contains(got.Text, `no diagnostic has the code "QT2020"; did you mean`) {
		t.Errorf("got %+v", got)
	}
}

func TestAssistant_Search(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2026-07-28", nil)
	for query, path := range map[string]string{
		"approval client tool": "approval/app.qtype.yaml", "resume an interrupted run": "runs.md", "MemoryStore Redis": "memory-stores.md",
		"converting AI Refinery files": "convert.md", "LLMInference system_message": "chat/app.qtype.yaml",
	} {
		got := callTool(t, s, "search_library", object{"query": query, "limit": 3})
		var paths []string
		for _, f := range list(got.Structured.(object)["result"]) {
			paths = append(paths, f.(object)["path"].(string))
		}
		if len(paths) != 3 || !strings.Contains(strings.Join(paths, " "), path) {
			t.Errorf("%s: got %v, want %s", query, paths, path)
		}
	}
	for _, args := range []object{{"query": "x", "limit": 0}, {"query": "x", "limit": 51}, {"query": "x", "limit": 1.5}, {"query": " "}, {}, {"query": 5}, {"query": "x", "top": 3}} {
		if got := callTool(t, s, "search_library", args); !got.IsError {
			t.Errorf("%v: got %+v", args, got)
		}
	}
	if got := callTool(t, s, "search_library", object{"query": "qqqqzz"}); got.IsError || len(list(got.Structured.(object)["result"])) != 0 {
		t.Errorf("got %+v", got)
	}
}

// Everything that a list names can be read.
func TestAssistant_Library(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2026-07-28", nil)
	for lister, getter := range map[string]string{"list_documentation": "get_documentation", "list_examples": "get_example"} {
		for _, name := range list(callTool(t, s, lister, nil).Structured.(object)["result"]) {
			if got := callTool(t, s, getter, object{"file_path": name}); got.IsError || len(got.Text) < 50 {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	}
}

const api = `{"openapi": "3.1.0", "info": {"title": "Pet Store"}, "servers": [{"url": "https://{env}.example.com/v1/", "variables": {"env": {"default": "api"}}}],
"paths": {"/pets/{petId}": {"parameters": [{"name": "petId", "in": "path", "required": true, "schema": {"type": "integer"}}],
 "get": {"operationId": "showPet", "summary": "Shows a pet", "parameters": [{"name": "trace", "in": "header"}],
  "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}},
 "put": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}, "responses": {"204": {"description": "done"}}}}},
"components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
 "schemas": {"Pet": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "parent": {"$ref": "#/components/schemas/Pet"},
  "tags": {"type": ["array", "null"], "items": {"type": "string"}}, "born": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}}}}}}`

// valid checks that a converted document has no errors.
func valid(t *testing.T, text string) {
	t.Helper()
	_, list := qtype.Check(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", text))
	if list.Errors() > 0 {
		t.Errorf("%v\n%s", list, text)
	}
}

func TestAssistant_ConvertAPI(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "pets.json"), []byte(api), 0o600))
	s := connect(t, serveHTTP(t, serveAssistant(t, folder)), "", "2026-07-28", nil)
	want := `id: pet-store

auths:
  - type: bearer_token
    id: token
    token: "${PET_STORE_TOKEN}"

types:
  - id: Pet
    properties:
      id: int
      parent: Pet?
      tags: "list[text]?"
      born: date?

tools:
  - type: APITool
    id: showPet
    name: showPet
    description: Shows a pet
    endpoint: "https://api.example.com/v1/pets/{petId}"
    method: GET
    auth: token
    parameters:
      - {id: petId, type: int}
    header_parameters:
      - {id: trace, type: "any?"}
    outputs:
      - {id: id, type: int}
      - {id: parent, type: "Pet?"}
      - {id: tags, type: "list[text]?"}
      - {id: born, type: "date?"}
  - type: APITool
    id: put_pets_petId
    name: put_pets_petId
    description: "PUT /pets/{petId}"
    endpoint: "https://api.example.com/v1/pets/{petId}"
    method: PUT
    auth: token
    inputs:
      - {id: id, type: int}
      - {id: parent, type: "Pet?"}
      - {id: tags, type: "list[text]?"}
      - {id: born, type: "date?"}
    parameters:
      - {id: petId, type: int}
`
	for _, given := range []string{"pets.json", "./pets.json", filepath.Join(folder, "pets.json"), api} {
		got := callTool(t, s, "convert_api_to_tools", object{"api_spec": given})
		if diff := cmp.Diff(want, got.Text); diff != "" {
			t.Errorf("%.20s: -want +got\n%s", given, diff)
		}
		valid(t, got.Text)
	}
	swagger := `{"swagger": "2.0", "host": "example.com", "basePath": "/v2", "paths": {"/a": {"post": {
		"parameters": [{"in": "body", "name": "b", "required": true, "schema": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}}, {"in": "query", "name": "q", "type": "boolean"}],
		"responses": {"default": {"schema": {"type": "string"}}}}}}}`
	got := callTool(t, s, "convert_api_to_tools", object{"api_spec": swagger})
	for _, part := range []string{"endpoint: https://example.com/v2/a", "{id: request, type: any}", `{id: q, type: "boolean?"}`, "{id: post_a_response, type: text}"} {
		if !strings.Contains(got.Text, part) {
			t.Errorf("%s is not in\n%s", part, got.Text)
		}
	}
	valid(t, got.Text)
	endless := `{"openapi": "3.0.0", "paths": {"/a": {"get": {"responses": {"200": {"content": {"x": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}},
		"components": {"schemas": {"A": {"type": "array", "items": {"$ref": "#/components/schemas/B"}}, "B": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}, "C": {"$ref": "#/components/schemas/C"}}}}`
	valid(t, callTool(t, s, "convert_api_to_tools", object{"api_spec": endless}).Text)
	for _, wrong := range []string{"openapi: 3.0.0\npaths: {}\n", "a: b\n", "[1]\n\n", "{"} {
		if got := callTool(t, s, "convert_api_to_tools", object{"api_spec": wrong}); !got.IsError {
			t.Errorf("%q: got %+v", wrong, got)
		}
	}
}

const module = `from __future__ import annotations
from dataclasses import dataclass
from typing import Optional
open("executed", "w")
class Order(BaseModel):
    """An order."""
    id: int
    lines: list[Line]
@dataclass
class Line:
    sku: str
    note: str | None = None
class Unused(BaseModel):
    x: dict
def find(order: int, exact: bool = False, *, tag: Optional[str] = None) -> Order:
    """Finds an order.

    More."""
def _hidden(x): ...
`

func TestAssistant_ConvertPython(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, os.MkdirAll(filepath.Join(folder, "shop", "tools"), 0o700))
	files := map[string]string{"shop/orders.py": strings.Replace(module, "x: dict", "x: int", 1), "shop/tools/__init__.py": "def now() -> str: ...\n",
		"any.py": "def f(x: dict) -> int: ...\n", "bare.py": "def f(x) -> int: ...\n", "none.py": "x = 1\n", "broken.py": "def f(:\n", "result.py": "def f(): ...\n"}
	for name, text := range files {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	s := connect(t, serveHTTP(t, serveAssistant(t, folder)), "", "2026-07-28", nil)
	got := callTool(t, s, "convert_python_to_tools", object{"module_path": "shop.orders"})
	want := `id: shop.orders

types:
  - id: Order
    description: An order.
    properties:
      id: int
      lines: "list[Line]"
  - id: Line
    properties:
      sku: text
      note: text?

tools:
  - type: PythonFunctionTool
    id: shop.orders.find
    name: find
    description: Finds an order.
    function_name: find
    module_path: shop.orders
    inputs:
      - {id: order, type: int}
      - {id: exact, type: "boolean?"}
      - {id: tag, type: "text?"}
    outputs:
      - {id: find_result, type: Order}
`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	valid(t, got.Text)
	if _, err := os.Stat("executed"); err == nil {
		t.Error("the module was run")
	}
	valid(t, callTool(t, s, "convert_python_to_tools", object{"module_path": "shop.tools"}).Text)
	for name, want := range map[string]string{
		"any": "f, parameter x: the type dict has no counterpart", "bare": "f, parameter x has no type annotation", "none": "no public functions found in module 'none'",
		"broken": "the module cannot be parsed: invalid syntax, line 1", "result": "f, result has no type annotation",
		"missing": "no module 'missing' below the working directory", "../shop": "'../shop' is not the dotted path of a module",
	} {
		if got := callTool(t, s, "convert_python_to_tools", object{"module_path": name}); !got.IsError || !strings.Contains(got.Text, want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
