package loader_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// TestExcerpts_HideSecrets checks diagnostics next to, on, or before a
// secret, in the text form, which prints whole lines.
func TestExcerpts_HideSecrets(t *testing.T) {
	const secret = "sk-very-secret-4711"
	for name, text := range map[string]string{
		"next to it":               "- {id: a, type: api_key, api_key: SECRET, hosst: x}\n",
		"quoted":                   "- {id: a, type: api_key, api_key: \"SECRET\", hosst: x}\n",
		"before it":                "- {id: a, type: api_key, hosst: x, api_key: SECRET}\n",
		"two of them":              "- {id: a, type: oauth2, client_secret: SECRET, hosst: x, client_secret: \"SECRET\", token_url: u}\n",
		"a misspelt key":           "- {id: a, type: api_key, api_kye: SECRET}\n",
		"a misspelt type":          "- {id: a, type: api_kye, api_key: SECRET}\n",
		"no type":                  "id: app\nauths: [{id: a, client_secret: SECRET, hosst: x}]\n",
		"in place of a reference":  "id: app\nmodels: [{type: Model, id: m, provider: openai, auth: {id: a, api_key: SECRET}}]\n",
		"in a section unknown":     "id: app\nauth: [{id: a, type: api_key, api_key: SECRET}]\n",
		"not a list":               "id: app\nauths: {id: a, type: api_key, api_key: SECRET}\n",
		"in a list of two kinds":   "- {id: m, type: Model, provider: openai}\n- {id: a, type: api_key, api_key: SECRET}\n",
		"in a list of no kind":     "- {steps: [], token: SECRET}\n",
		"written twice":            "- {id: a, type: api_key, api_key: SECRET, api_key: \"${KEY:-}\"}\n",
		"no YAML":                  "- {id: a, type: api_key, api_key: SECRET, host: x]\n",
		"no YAML, over lines":      "- id: a\n  api_key: SECRET\n   host: [x\n",
		"a header":                 "- {id: t, type: APITool, name: t, description: d, endpoint: e, headers: {Authorization: SECRET}, tmeout: 3s}\n",
		"a parameter":              "- {id: m, type: Model, provider: openai, inference_params: {api_key: SECRET}, basurl: x}\n",
		"an environment variable":  "- {id: t, type: MCPTool, command: c, env: {ANY: SECRET}, tmeout: 3s}\n",
		"a store with a password":  "id: app\nmemories: [{id: m, store: \"postgres://u:SECRET@host/db\", tll: 3h}]\n",
		"a number":                 "- {id: a, type: api_key, api_key: 4711, hosst: x}\n",
		"the default of a setting": "- {id: a, type: api_key, api_key: \"${KEY:-SECRET}\", hosst: x}\n",
		"a colon without a space":  "id: app\napi_key:SECRET\nmodels: []\n",
		"only a text":              "api_key:SECRET\n",
		"an address":               "id: app\nflows: [{id: f, steps: [{type: FileSource, id: s, path: {uri: \"ftp://u:SECRET@host/x.csv\"}}]}]\n",
		"a variable":               "id: app\nflows: [{id: f, variables: [{api_key: SECRET}]}]\n",
		"a block":                  "- id: a\n  type: api_key\n  hosst: x\n  api_key: |\n    SECRET\n",
	} {
		t.Run(name, func(t *testing.T) {
			text = strings.ReplaceAll(text, "SECRET", secret)
			_, list := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte(text), loader.Options{Lookup: noEnv, NoDotEnv: true})
			if list.Errors()+list.Warnings() == 0 {
				t.Fatal("nothing was reported")
			}
			for _, form := range []func(*strings.Builder) error{
				func(b *strings.Builder) error { return diag.Text(b, list, diag.TextOptions{}) },
				func(b *strings.Builder) error { return diag.JSON(b, list) },
				func(b *strings.Builder) error { return diag.GitHub(b, list) },
				func(b *strings.Builder) error { return diag.SARIF(b, list, diag.Tool{Rules: loader.Rules()}) },
			} {
				var b strings.Builder
				if err := form(&b); err != nil {
					t.Fatal(err)
				}
				if out := b.String(); strings.Contains(out, secret) || strings.Contains(out, "4711") {
					t.Errorf("the secret is shown:\n%s", out)
				}
			}
		})
	}
}

// TestExcerpts_CaretsAfterSecrets checks that text after the stars is underlined.
func TestExcerpts_CaretsAfterSecrets(t *testing.T) {
	_, list := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte("- {id: a, type: api_key, api_key: sk-very-secret, hosst: x}\n"), loader.Options{Lookup: noEnv, NoDotEnv: true})
	var b strings.Builder
	if err := diag.Text(&b, list, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	want := "1 | - {id: a, type: api_key, api_key: ***, hosst: x}\n" +
		"  |                                        ^^^^^ did you mean \"host\"?\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("got\n%s", b.String())
	}
}

// TestSecret_Sources: only what the document itself holds is in clear.
func TestSecret_Sources(t *testing.T) {
	for text, want := range map[string]bool{
		"sk-1": true, `"sk-1"`: true, "${KEY}": false, "${NONE}": false, "${NONE:-sk-1}": false, "Bearer ${KEY}": false,
		"{secret_name: key}": false, `""`: false,
	} {
		opts := loader.Options{NoDotEnv: true}
		opts.Lookup = func(name string) (string, bool) { return "sk-2", name == "KEY" }
		loaded, _ := loader.LoadBytes(t.Context(), "auths.qtype.yaml", []byte("- id: a\n  type: api_key\n  api_key: "+text+"\n"), opts)
		if got := loaded.Document.Auths[0].(*spec.APIKeyAuth).APIKey.Literal(); got != want {
			t.Errorf("%s: written is %v", text, got)
		}
	}
}
