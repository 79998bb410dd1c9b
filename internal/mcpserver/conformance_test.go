package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// conformanceServer are the scenarios of the suite that do not pass for qtype serve, and why.
var conformanceServer = map[string]string{
	"elicitation-sep1034-defaults":  "outputs of a ClientTool have no defaults",
	"elicitation-sep1330-enums":     "outputs of a ClientTool have no choices",
	"json-schema-2020-12":           "schemas follow from the variables of the flow",
	"prompts-get-embedded-resource": "a prompt is a text", "prompts-get-with-image": "a prompt is a text",
	"resources-read-binary": "resources are sessions of memories", "resources-read-text": "resources are sessions of memories",
	"resources-templates-read": "resources are sessions of memories",
	"resources-subscribe":      "not supported", "resources-unsubscribe": "not supported",
	"server-sse-polling": "a stream is not resumed", "tools-call-with-logging": "events are notifications of progress",
	"tools-call-audio": "no step makes a sound without a model", "tools-call-image": "no step makes an image without a model",
	"tools-call-embedded-resource": "outputs are no resources", "tools-call-mixed-content": "outputs are no resources",
	"tools-call-sampling": "the server has its own models", "input-required-result-basic-sampling": "the server has its own models",
	"input-required-result-capability-check":        "the server has its own models",
	"input-required-result-basic-list-roots":        "the server reads no files of clients",
	"input-required-result-basic-elicitation":       "the scenario prescribes the key of a question",
	"input-required-result-ignore-extra-params":     "the scenario prescribes the key of a question",
	"input-required-result-multiple-input-requests": "questions are put one after the other",
	"input-required-result-non-tool-request":        "prompts ask nothing",
	"http-custom-header-server-validation":          "arguments are not repeated in headers",
	"server-stateless":                              "the required capability is elicitation, the scenario's is sampling",
}

// conformanceClient are those for an MCPTool.
var conformanceClient = map[string]string{
	"auth/basic-cimd":                     "qtype has no public address for the metadata of the client",
	"auth/pre-registration":               "the document has no client_id",
	"auth/scope-step-up":                  "the sign-in is a command, and its server refuses the first request",
	"auth/scope-retry-limit":              "the sign-in is a command, and its server refuses the first request",
	"auth/authorization-server-migration": "the sign-in is a command",
	"json-schema-2020-12-preservation":    "a mock model does not repeat the schema of a tool",
	"sse-retry":                           "depends on time",
}

// suite runs the conformance suite of MCP and returns the scenarios that did not pass, with the checks that failed, and
// the number of all.
func suite(t *testing.T, args ...string) (failed map[string][]string, scenarios int) {
	t.Helper()
	modules := testkit.External(t, "QTYPE_MCP_CONFORMANCE", "the node_modules of @modelcontextprotocol/conformance")
	out := t.TempDir()
	shim, err := filepath.Abs("testdata/conformance_node20.mjs")
	testkit.Must(t, err)
	program := filepath.Join(modules, "@modelcontextprotocol/conformance/dist/index.js")
	cmd := testkit.Command(t, "node", slices.Concat([]string{"--import", shim, program}, args, []string{"--suite", "all", "-o", out})...)
	text, _ := cmd.CombinedOutput() // fails, as some scenarios do not pass
	failed = map[string][]string{}
	testkit.Must(t, filepath.WalkDir(out, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		name, err := filepath.Rel(out, filepath.Dir(path))
		testkit.Must(t, err)
		name = regexp.MustCompile(`^server-|-\d{4}-\d\d-\d\dT[\w-]+$`).ReplaceAllString(name, "")
		var checks []struct{ ID, Status, ErrorMessage string }
		testkit.Must(t, json.Unmarshal([]byte(testkit.ReadFile(t, path)), &checks))
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				failed[name] = append(failed[name], c.ID+": "+c.ErrorMessage)
			}
		}
		scenarios++
		return nil
	}))
	if scenarios == 0 {
		t.Fatalf("no results\n%s", text)
	}
	return failed, scenarios
}

// explained fails for scenarios that did not pass and have no reason, and adds the others to used.
func explained(t *testing.T, failed map[string][]string, reasons map[string]string, used map[string]bool) {
	t.Helper()
	for name, checks := range failed {
		used[name] = true
		if reasons[name] == "" {
			t.Errorf("%s:\n%s", name, strings.Join(checks, "\n"))
		}
	}
}

// unused fails for reasons that no scenario has.
func unused(t *testing.T, reasons map[string]string, used map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !used[name] {
			t.Errorf("%s passes, but has a reason not to", name)
		}
	}
}

// startServe starts qtype serve and returns its address.
func startServe(t *testing.T, document string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, qtypeCommand(t), "serve", "--port", "0", "--ephemeral", document)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	errs, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		if found := address.FindString(lines.Text()); found != "" {
			return found
		}
	}
	t.Fatal("the server did not start")
	return ""
}

// The server at /mcp passes the scenarios of both generations of the protocol, except those with a reason.
func TestConformance_Server(t *testing.T) {
	url := startServe(t, "testdata/conformance.qtype.yaml") + "/mcp"
	used := map[string]bool{}
	for version, all := range map[string]int{"2025-11-25": 33, "2026-07-28": 40} {
		failed, scenarios := suite(t, "server", "--url", url, "--spec-version", version, "--timeout", "60000")
		if scenarios != all {
			t.Errorf("%s: %d scenarios, want %d", version, scenarios, all)
		}
		explained(t, failed, conformanceServer, used)
	}
	unused(t, conformanceServer, used)
}

// An MCPTool and qtype login pass the scenarios for clients.
func TestConformance_Client(t *testing.T) {
	script, err := filepath.Abs("testdata/conformance_client.sh")
	testkit.Must(t, err)
	command := strings.Join([]string{"sh", script, qtypeCommand(t)}, " ")
	used := map[string]bool{"sse-retry": true}
	for version, all := range map[string]int{"2025-11-25": 19, "2026-07-28": 33} {
		failed, scenarios := suite(t, "client", "--command", command, "--spec-version", version, "--timeout", "120000")
		if scenarios != all {
			t.Errorf("%s: %d scenarios, want %d", version, scenarios, all)
		}
		explained(t, failed, conformanceClient, used)
	}
	unused(t, conformanceClient, used)
}
