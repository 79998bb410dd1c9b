package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
)

const secretApp = `
id: app
secret_manager: {%s}
auths: [{type: api_key, id: account, api_key: {secret_name: llm%s}}]
models: [{type: Model, id: writer, provider: openai, auth: account, base_url: "%s", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: message, type: text}, {id: answer, type: text}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, model: writer, inputs: [message], outputs: [answer]}]
`

// TestSecretManager_ResolvesSecrets: the key reaches the server, and errors do not
// contain the secret.
func TestSecretManager_ResolvesSecrets(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"llm": "sk-from-file\n", "llm_json": `{"openai": "sk-from-json", "n": 3}`, "llm_big": strings.Repeat("x", 70_000)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("APP_llm", "sk-from-env")
	t.Setenv("APP_llm_json", `{"openai": "sk-json-env"}`)
	file := fmt.Sprintf("type: file, id: secrets, directory: %q", folder)
	for _, c := range []struct{ manager, name, want string }{
		{"type: env, id: secrets, prefix: APP_", "", "Bearer sk-from-env"},
		{"type: env, id: secrets, prefix: APP_", "_json, key: openai", "Bearer sk-json-env"},
		{file, "", "Bearer sk-from-file"},
		{file, "_json, key: openai", "Bearer sk-from-json"},
		{"type: env, id: secrets", "", "secret llm: the environment variable llm is not set"},
		{file, "_none", "secret llm_none: " + filepath.Join(folder, "llm_none") + ": no such file or directory"},
		{file, "_json, key: mistral", "secret llm_json has no key mistral"},
		{file, "_json, key: n", "key n of secret llm_json is not a string"},
		{file, ", key: openai", "secret llm is not a JSON object, so it has no key openai"},
		{file, "/../../x", "the name must be that of a file in " + folder},
		{file, "_big", "is larger than 65536 bytes"},
		{"type: aws_secret_manager, id: secrets, auth: account", "", "needs an auth of type aws"},
	} {
		t.Run(c.want, func(t *testing.T) {
			got := "nothing was sent"
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("Authorization")
				_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`))
			}))
			defer server.Close()
			app, err := qtype.Open(t.Context(), writeFile(t, fmt.Sprintf(secretApp, c.manager, c.name, server.URL)), qtype.WithEphemeral(), qtype.WithHTTP(server.Client()))
			if err == nil {
				defer func() { _ = app.Close(t.Context()) }()
				for row, failed := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"message": "hello"})})) {
					if err = failed; err == nil && row.Err != nil {
						err = row.Err
					}
				}
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || err != nil && strings.Contains(got, "sk-") {
				t.Errorf("got %s", got)
			}
		})
	}
}
