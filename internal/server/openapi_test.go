package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// pythonTool returns the path of a program in the Python environment that an environment
// variable names.
func pythonTool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("QTYPE_SCHEMATHESIS"), "bin", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatalf("%s is missing: %v", name, err)
		}
		t.Skip("SKIPPED: set QTYPE_SCHEMATHESIS to a Python environment with schemathesis and openapi-spec-validator, as .ci/run does")
	}
	return path
}

func TestOpenAPI_IsValid(t *testing.T) {
	program := pythonTool(t, "openapi-spec-validator")
	for _, path := range []string{"testdata/app.qtype.yaml", "testdata/recorded.qtype.yaml", "../../examples/support_inbox/app.qtype.yaml"} {
		t.Setenv("PHOENIX", "http://127.0.0.1:1")
		s := serveApp(t, openApp(t, path), server.Options{})
		file := testkit.WriteFile(t, "openapi.json", s.do("GET", "/openapi.json", "").body)
		if out, err := testkit.Command(t, program, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}

// The description has each resource of the runs and streams of the flows.
func TestOpenAPI_Streams(t *testing.T) {
	var got struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	serve(t).do("GET", "/openapi.json", "").into(t, &got)
	for path, method := range map[string]string{
		"/runs/{run}/events": "get", "/runs/{run}/trace": "get", "/flows/talk/stream/{chat}": "get", "/flows/complete/stream/{chat}": "get", "/flows/talk/agui": "post",
	} {
		if got.Paths[path][method] == nil {
			t.Errorf("no %s %s", method, path)
		}
	}
	if got.Paths["/flows/complete/agui"] != nil || got.Paths["/flows/typed/stream/{chat}"] != nil {
		t.Error("there are resources that the server does not have")
	}
}

// Requests that schemathesis makes of the description are never answered with an error of
// the server, nor with a status or a body that the description does not have.
func TestOpenAPI_Schemathesis(t *testing.T) {
	program := pythonTool(t, "schemathesis")
	s := serve(t)
	run := testkit.Command(t, program, "run", s.URL+"/openapi.json", "--max-examples", "5", "--request-timeout", "30", "--seed", "1",
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance")
	run.Dir = t.TempDir()
	out, err := testkit.Output(t, run)
	if err != nil || !strings.Contains(string(out), " passed") {
		t.Errorf("%v\n%s", err, out)
	}
}
