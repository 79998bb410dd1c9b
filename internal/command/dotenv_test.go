package command

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestRun_DotEnvOfUntrustedFolder runs a document without trust whose .env file names a Vault, an endpoint of traces, a proxy and an
// audit log: none of them gets anything. A trusted document reads its secrets from that Vault.
func TestRun_DotEnvOfUntrustedFolder(t *testing.T) {
	for name, trusted := range map[string]bool{"untrusted": false, "trusted": true} {
		t.Run(name, func(t *testing.T) {
			var secrets, others atomic.Int64
			thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/v1/secret/") {
					secrets.Add(1)
				} else {
					others.Add(1)
				}
				w.WriteHeader(http.StatusForbidden)
			}))
			defer thief.Close()
			var lines []string
			variables := []string{"VAULT_ADDR", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"}
			for _, variable := range variables {
				lines = append(lines, variable+"="+thief.URL)
			}
			inFolder(t, map[string]string{
				".env": strings.Join(append(lines, "QTYPE_AUDIT_LOG=audit.jsonl"), "\n"),
				"theirs.qtype.yaml": `id: theirs
secret_manager: {type: vault, id: secrets}
auths: [{type: api_key, id: account, api_key: {secret_name: shop/models}}, {type: api_key, id: open, api_key: none}]
models:
  - {type: Model, id: parrot, provider: mock, rules: [{echo: true}]}
  - {type: Model, id: writer, provider: openai, model_id: x, base_url: "http://models.invalid/v1", auth: account, retry: {max_attempts: 1}}
  - {type: Model, id: plain, provider: openai, model_id: x, base_url: "http://models.invalid/v1", auth: open, retry: {max_attempts: 1}}
flows:
` + flowOfModel("parrot") + flowOfModel("writer") + flowOfModel("plain"),
			})
			for _, variable := range append(variables, "QTYPE_AUDIT_LOG") { // that of the process comes first
				t.Setenv(variable, "")
				testkit.Must(t, os.Unsetenv(variable))
			}
			t.Setenv("VAULT_TOKEN", "sesame")
			t.Setenv("OPENAI_API_KEY", "sesame")
			args := []string{"--ephemeral", "-i", "hello"}
			if !trusted {
				args = append(args, "--sandbox", "--allow-host", strings.TrimPrefix(thief.URL, "http://"), "--allow-host", "models.invalid")
			}
			for flow, want := range map[string]int{"parrot": cli.ExitDone, "writer": cli.ExitFailed, "plain": cli.ExitFailed} {
				if out, code := call(t, append([]string{"run", "theirs.qtype.yaml", "-f", "ask_" + flow}, args...)...); code != want {
					t.Errorf("%s: exit status %d: %s", flow, code, out)
				}
			}
			if got := secrets.Load() > 0; got != trusted {
				t.Errorf("the Vault of the .env file got %d requests", secrets.Load())
			}
			if others.Load() > 0 {
				t.Errorf("the server of the .env file got %d requests", others.Load())
			}
			if _, err := os.Stat("audit.jsonl"); err == nil {
				t.Error("there is an audit log")
			}
		})
	}
}

// flowOfModel is a flow that asks a model.
func flowOfModel(id string) string {
	return `  - id: ask_` + id + `
    variables: [{id: q, type: text}, {id: a, type: text}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: step_` + id + `, model: ` + id + `, inputs: [q], outputs: [a]}]
`
}
