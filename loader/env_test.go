package loader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// env is an environment of given variables.
func env(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, found := values[name]
		return value, found
	}
}

var someEnv = map[string]string{"A": "alpha", "EMPTY": "", "MY-KEY": "dash", "A-x": "odd", " A ": "spaced", "PORT": "8080", "L": "[1,2]", "KEY": "id"}

// TestVariables checks every form of a variable against a
// description; an expected "?NAME" is a QT005 for that variable.
func TestVariables(t *testing.T) {
	for _, c := range []struct{ written, want string }{
		{"${A}", "alpha"}, {"x ${A} y ${A}", "x alpha y alpha"}, {"'${A}'", "alpha"}, {`"${A}"`, "alpha"},
		{"|\n  ${A}\n", "alpha\n"}, {">\n  ${A}\n  b\n", "alpha b\n"},
		{"${EMPTY:-d}", ""}, {"${NONE:-d}", "d"}, {"${NONE:-}", ""}, {"${A:-d}", "alpha"},
		{`"${NONE:-a}b}"`, "ab}"},
		{"$A", "$A"}, {"${DOLLAR:-$}{A}", "${A}"}, {"${A-x}", "odd"}, {`"${ A }"`, "spaced"},
		{`'\${A}'`, `\alpha`}, {"${MY-KEY}", "dash"}, {"${PORT}", "8080"}, {`"${L}"`, "[1,2]"},
		{"a # ${NONE}", "a"}, {"${NONE}", "?NONE"}, {`"${NONE} and ${NONE2}"`, "?NONE?NONE2"},
	} {
		t.Run(c.written, func(t *testing.T) {
			result, list := loader.LoadBytes(t.Context(), "app.yaml", []byte("id: x\ndescription: "+c.written), loader.Options{Lookup: env(someEnv), NoDotEnv: true})
			got := ""
			for _, d := range list {
				if d.Code != "QT005" || d.Severity != diag.Warning {
					t.Errorf("unexpected: %v", d)
				}
				got += "?" + strings.TrimSuffix(strings.TrimPrefix(d.Message, "the environment variable "), " is not set")
			}
			if got == "" {
				got = result.Document.Application.Description
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestVariablesInKeysAndElsewhere(t *testing.T) {
	path := write(t, "app.yaml", "${KEY}: app\ndescription: !include_raw raw.txt\nmemories: !include m.yaml\nreferences: [!include '${A}.yaml']\n",
		"raw.txt", "${A}", "m.yaml", "- {id: '${A}', token_limit: '${PORT}'}")
	result, list := loader.Load(t.Context(), path, loader.Options{Lookup: env(someEnv)})
	app := result.Document.Application
	if got := codes(list); len(got) != 1 || got[0] != "QT006" || !strings.Contains(list[0].Message, `"${A}.yaml"`) {
		t.Errorf("the path of an include is taken as it is written, so one found is due: %v", list)
	}
	got := []any{app.ID, app.Description, app.Memories[0].ID, app.Memories[0].TokenLimit}
	if d := cmp.Diff([]any{"app", "${A}", "alpha", 8080}, got); d != "" {
		t.Error(d)
	}
}

// TestUnsetVariables_CauseNoOtherErrors checks that an unknown value has no consequences.
func TestUnsetVariables_CauseNoOtherErrors(t *testing.T) {
	const text = `
id: app
memories: [{id: m, token_limit: "${N}", chat_history_token_ratio: "${N}"}]
models:
  - {id: a, type: Model, provider: "${N}", base_url: "${N}", timeout: "${N}", auth: "${N}", retry: "${N}", rules: "${N}"}
  - {id: b, type: "${N}"}
auths: [{id: c, type: aws, profile_name: "${N}"}, {id: d, type: vertex, service_account_file: "${N}"}]
flows:
  - id: f
    variables: [{id: v, type: "${N}", optional: "${N}", ui: {widget: text}}]
    inputs: ["${N}"]
    steps: ["${N}", {id: s, type: Construct, field_bindings: "${N}", outputs: [{$ref: "${N}"}]}]
`
	for _, strict := range []bool{false, true} {
		result, list := loader.LoadBytes(t.Context(), "app.yaml", []byte(text), loader.Options{Lookup: noEnv, NoDotEnv: true, Strict: strict})
		for _, d := range list {
			if d.Code != "QT005" {
				t.Errorf("a found that follows from an unset variable: %v", d)
			}
		}
		want := strings.Count(text, "${N}")
		if got := list.Errors() + list.Warnings(); got != want {
			t.Errorf("%d of %d places are reported", got, want)
		}
		if strict != (list.Errors() == want) {
			t.Errorf("strict %v gives %d errors", strict, list.Errors())
		}
		app := result.Document.Application
		if m := app.Memories[0]; m.TokenLimit != 100000 || m.ChatHistoryTokenRatio != 0.7 {
			t.Errorf("defaults are due, got %d and %v", m.TokenLimit, m.ChatHistoryTokenRatio)
		}
		if base := app.Models[0].Base(); base.Auth.ID != "" || base.Timeout == 0 {
			t.Errorf("an unknown reference is none, an unknown time its default: %+v", base)
		}
		if v := app.Flows[0].Variables[0]; v.Type.String() != "" || len(app.Models) != 2 {
			t.Errorf("an unknown type is no type: %v", v.Type)
		}
	}
}

func TestUnsetVariableIsMarkedAlone(t *testing.T) {
	_, list := load(t, "id: a\ndescription: \"see ${ONE} and ${TWO}\"\n")
	if len(list) != 2 || list[0].Span.String() != "app.yaml:2:19" || list[1].Span.String() != "app.yaml:2:30" || list[1].Span.End.Column != 36 {
		t.Errorf("got %v", list)
	}
}

// TestSecretsAreNotRepeated gives every kind of found a value that came from
// the environment or from a .env file.
func TestSecretsAreNotRepeated(t *testing.T) {
	const secret = "s3cr3t-VALUE"
	path := write(t, "app.yaml", `
id: app
${S}: 1
memories: [{id: m, token_limit: "${S}", "${S}x": 1}]
models: [{id: a, type: Model, provider: "${S}", base_url: "${S}", timeout: "${S}"}, {id: b, type: "${S}"}]
auths: [{id: k, type: api_key, api_key: ["${S}"]}, {id: "${S}", type: vertex}]
flows: [{id: f, type: "${S}", steps: ["${S}"], variables: [{id: "${S}", type: "list[${S}?]", ui: {}}, {id: w, type: "${S}??", ui: {widget: "${S}"}}]}]
description: ["${S}"]
`, ".env", "S="+secret+"\nthis is "+secret+" no line\nT='unterminated "+secret)
	_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
	var printed strings.Builder
	if err := diag.Text(&printed, list, diag.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := diag.JSON(&printed, list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 12 {
		t.Errorf("only %d diags: %v", len(list), list)
	}
	for line := range strings.SplitSeq(printed.String(), "\n") {
		if strings.Contains(line, secret) {
			t.Errorf("the secret is printed: %s", line)
		}
	}
}

func TestDotEnv(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for name, content := range map[string]string{
		"app/app.yaml":       "id: app\ndescription: \"${OWN}|${FOLDER}|${BOTH}|${CWD}|${QUOTED}|${EXPORTED}|${EXPANDED}\"\nreferences: [!include sub/inc.yaml]\n",
		"app/sub/inc.yaml":   "id: inc\ndescription: ${SUB:-not read}\n",
		"app/.env":           "\ufeffFOLDER=folder\nBOTH=folder\nOWN=file\nQUOTED=\"a b # c\"\nexport EXPORTED=e\nEXPANDED=x${FOLDER}\n",
		"app/sub/.env":       "SUB=read\n",
		".env":               "CWD=cwd\nBOTH=cwd\n",
		"app/elsewhere/.env": "OWN=elsewhere\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	result, list := loader.Load(t.Context(), "app/app.yaml", loader.Options{Lookup: env(map[string]string{"OWN": "process"})})
	if len(list) > 0 {
		t.Error(list)
	}
	app := result.Document.Application
	if d := cmp.Diff("process|folder|folder|cwd|a b # c|e|xfolder", app.Description); d != "" {
		t.Error(d)
	}
	if got := app.References[0].Application.Description; got != "not read" {
		t.Errorf("an included file's folder has no say, got %q", got)
	}
	if value, found := result.Lookup("CWD"); value != "cwd" || !found {
		t.Errorf("the environment of the document has %q", value)
	}
	_, list = loader.Load(t.Context(), "app/app.yaml", loader.Options{Lookup: noEnv, NoDotEnv: true})
	if len(list) != 7 {
		t.Errorf("without .env files seven are unset: %v", list)
	}
}

func TestOddDotEnvFiles(t *testing.T) {
	for name, content := range map[string]string{
		"lines that are none": "GOOD=1\nthis is no line\n",
		"binary":              "GOOD=1\n\x00\xff\xfe=\x01\n",
		"unterminated":        "GOOD=1\nBAD='x\n",
		"only signs":          "GOOD=1\n=\n==\n#\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "app.yaml", "id: app\ndescription: ${GOOD}\n", ".env", content)
			result, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
			if result.Document.Application.Description != "1" || list.Errors() > 0 {
				t.Errorf("got %q and %v", result.Document.Application.Description, list)
			}
			for _, d := range list {
				if d.Code != "QT011" || d.Span.Start.Line < 2 || !strings.HasSuffix(d.Span.File.Path, ".env") {
					t.Errorf("unexpected: %v", d)
				}
			}
		})
	}
	for content, want := range map[string]string{
		"GOOD=1\nthis is no line\n":       "2:6 = is expected here: a line has the form NAME=value; the line is ignored",
		"GOOD=1\nONLY\n":                  "2:1 this line is not of the form NAME=value; the line is ignored",
		"GOOD=1\n  export BAD='x\n":       "2:14 the quote that opens here is not closed; the line is ignored",
		"GOOD=1\n# x\n\n-D=1\nLAST = 2\n": "4:1 a name is expected here, of letters, digits and _; the line is ignored",
	} {
		path := write(t, "app.yaml", "id: app\ndescription: ${GOOD}\n", ".env", content)
		result, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
		if len(list) != 1 || result.Document.Application.Description != "1" {
			t.Fatalf("%q: %v", content, list)
		}
		if got := fmt.Sprintf("%d:%d %s", list[0].Span.Start.Line, list[0].Span.Start.Column, list[0].Message); got != want {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
	path := write(t, "app.yaml", "id: app\n", ".env/x", "a folder")
	if _, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv}); len(list) > 0 {
		t.Errorf("a folder is no .env file: %v", list)
	}
}

// The hint names what the text is likely to mean: an environment variable cannot have every name.
func TestVariables_Hints(t *testing.T) {
	for written, want := range map[string]string{
		"${NONE}":            "set it, or write a default: ${NONE:-…}",
		"${user.name}":       `set it, or write a default: ${user.name:-…}; the input "user.name" of a template is {user.name}, without $`,
		"${ NONE }":          "write ${NONE}, without blanks",
		"${NONE-x}":          "set it, or write a default: ${NONE-x:-…}; ${NONE:-x} is NONE with the default x",
		"${#list[@]}":        "write ${DOLLAR:-$}{#list[@]} for the text ${#list[@]}",
		"${{ name }}":        `the input "name" of a template is {name}, and ${DOLLAR:-$}{name} with a $ before it`,
		"${{ secrets.KEY }}": "write ${DOLLAR:-$}{{ secrets.KEY } for the text ${{ secrets.KEY }",
	} {
		_, list := loader.LoadBytes(t.Context(), "app.yaml", []byte("id: x\ndescription: '"+written+"'"), loader.Options{Lookup: env(someEnv), NoDotEnv: true})
		if len(list) != 1 || list[0].Code != "QT005" || list[0].Hint != want {
			t.Errorf("%s: got %v, want the hint %s", written, list, want)
		}
	}
}
