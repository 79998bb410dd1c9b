package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/qtype-dev/qtype"

// wing tells which half of the house a package belongs to.
type wing string

const (
	ground   wing = ""         // everybody may use it
	checking wing = "checking" // reads and checks documents
	running  wing = "running"  // runs them
	meeting  wing = "meeting"  // where the wings may meet
)

// house gives every package of the module its floor and its wing. A package
// imports only packages of lower floors, and the wings never import each other:
// a checker needs no driver and no database, a running application no parser.
// Parts of one noun (memory/sqlite) stand between the floors.
var house = map[string]struct {
	floor float64
	wing  wing
}{
	"spec/source":                  {0, ground},
	"internal/tokenizer":           {0, ground},
	"internal/prompttemplate":      {0, ground},
	"internal/sqlquery":            {0, ground},
	"internal/jsonpath":            {0, ground},
	"internal/httpx":               {0, ground},
	"internal/remotefs":            {0.1, ground},
	"internal/servertest":          {0, ground},
	"spec":                         {1, ground},
	"spec/chat":                    {1, ground},
	"internal/stepcache":           {2, running},
	"internal/expression":          {2, ground},
	"spec/diag":                    {1, checking},
	"spec/diag/diagtest":           {1.1, checking},
	"loader":                       {2, checking},
	"internal/semdiff":             {2, checking},
	"internal/diagram":             {2, checking},
	"internal/scaffold":            {0, ground},
	"memory":                       {2, running},
	"internal/vectors":             {1.9, running},
	"internal/storage":             {2.05, running},
	"internal/storage/storagetest": {2.1, running},
	"memory/sqlite":                {2.1, running},
	"memory/postgres":              {2.1, running},
	"memory/redis":                 {2.1, running},
	"memory/encrypted":             {2.1, running},
	"memory/storeurl":              {2.2, running},
	"memory/storetest":             {2.1, running},
	"internal/memoryview/replay":   {2.2, running},
	"internal/memoryview/show":     {2.1, running},
	"internal/memoryview/explain":  {2.2, running},
	"model":                        {2, running},
	"model/internal/wire":          {2.05, running},
	"model/mock":                   {2.1, running},
	"model/anthropic":              {2.1, running},
	"model/googleai":               {2.1, running},
	"model/ollama":                 {2.1, running},
	"model/modeltest":              {2.1, running},
	"model/openai":                 {2.1, running},
	"model/langchain":              {2.1, running},
	"model/provider":               {2.2, running},
	"internal/sqlitefile":          {0, ground},
	"internal/subprocess":          {0, ground},
	"tool":                         {2, running},
	"tool/command":                 {2.1, running},
	"tool/builtin":                 {2.1, running},
	"tool/mcp":                     {2.1, running},
	"tool/python":                  {2.1, running},
	"tool/factory":                 {2.2, running},
	"spec/value":                   {2, running},
	"internal/sqldb":               {2.1, running},
	"internal/records":             {2, running},
	"internal/journal":             {2, running},
	"validate":                     {3, checking},
	"internal/convert":             {3, checking},
	"internal/convert/input":       {2.1, checking},
	"internal/convert/document":    {2.1, checking},
	"internal/convert/jq":          {2.2, checking},
	"internal/convert/airefinery":  {2.3, checking},
	"internal/convert/xflow":       {2.3, checking},
	"validate/lint":                {4, checking},
	"validate/lint/generate":       {4.1, checking},
	"internal/lsp/protocol":        {0, ground},
	"internal/lsp/outline":         {0, ground},
	"internal/lsp/lsptest":         {0, ground},
	"internal/lsp":                 {5, checking},
	"steps":                        {3, running},
	"runtime":                      {4, running},
	"internal/schemagen":           {5, ground},
	"internal/schemagen/generate":  {5.1, meeting},
	"":                             {5, meeting},
	"internal/apptest":             {5.5, meeting},
	"cmd/qtype":                    {6, meeting},
	"internal/bench":               {6, meeting},
	"internal/e2e":                 {6, meeting},
}

func TestFloors(t *testing.T) {
	packages := list(t)
	for path, imports := range packages {
		here, ok := house[path]
		if !ok {
			t.Errorf("package %q has no floor: give it one in the table of this test", path)
			continue
		}
		for _, used := range imports {
			there, ok := house[used]
			switch {
			case !ok: // told once, for the package itself
			case there.floor >= here.floor:
				t.Errorf("%q (floor %v) imports %q (floor %v): only lower floors may be imported", path, here.floor, used, there.floor)
			case here.wing != meeting && there.wing != ground && there.wing != here.wing:
				t.Errorf("%q (%s wing) imports %q (%s wing): the wings meet only in spec and at the front door",
					path, here.wing, used, there.wing)
			}
		}
	}
	for path := range house {
		if _, ok := packages[path]; !ok {
			t.Errorf("the table of this test has a floor for %q, which is no package", path)
		}
	}
}

// list asks go for the module's packages and what each imports of the module,
// test files aside; paths are relative to the module.
func list(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		found[local(p.ImportPath)] = ours(p.Imports)
	}
	return found
}

// local is a path within the module.
func local(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// ours keeps the imports that are packages of this module.
func ours(imports []string) []string {
	imports = slices.DeleteFunc(imports, func(p string) bool { return p != module && !strings.HasPrefix(p, module+"/") })
	for i, p := range imports {
		imports[i] = local(p)
	}
	return imports
}
