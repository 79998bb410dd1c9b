package mcpserver_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// marker is in all secrets of the leak test.
const marker = "m4rker"

// secrets makes a working folder next to secret files, with links to them.
func secrets(t *testing.T) (folder, outside string) {
	t.Helper()
	parent := t.TempDir()
	folder, outside = filepath.Join(parent, "work"), filepath.Join(parent, "outside")
	testkit.Must(t, os.MkdirAll(filepath.Join(folder, "sub"), 0o700))
	testkit.Must(t, os.MkdirAll(filepath.Join(folder, ".hidden"), 0o700))
	testkit.Must(t, os.Mkdir(outside, 0o700))
	api := "openapi: 3.0.0\ninfo: {title: " + marker + "}\npaths: {/x: {get: {}}}\n"
	python := "import os\nopen('executed', 'w')\ndef " + marker + "() -> str: ...\n"
	files := map[string]string{
		"outside/secret.txt": marker, "outside/api.yaml": api, "outside/evil.py": python, "outside/app.qtype.yaml": "id: " + marker + "\n",
		"work/.env": "LEAK_DOTENV=" + marker + "\n", "work/secret.txt": marker, "work/id_rsa": marker,
		"work/.hidden/api.yaml": api, "work/included.yaml": marker + ": x\n",
	}
	for name, text := range files {
		testkit.Must(t, os.WriteFile(filepath.Join(parent, name), []byte(text), 0o600))
	}
	for link, target := range map[string]string{"link.yaml": "../outside/api.yaml", "sub/link.yaml": "../../outside/api.yaml", "linked": "../outside", "evil.py": "../outside/evil.py"} {
		testkit.Must(t, os.Symlink(target, filepath.Join(folder, link)))
	}
	return folder, outside
}

// hostileDocuments are documents that try to read what the client has not submitted.
func hostileDocuments(folder, outside, url string) []string {
	var all []string
	for _, value := range []string{
		"${LEAK}", "${LEAK:-x}", "'${LEAK}'", "${LEAK_DOTENV}", "!include_raw " + outside + "/secret.txt", "!include_raw secret.txt",
		"!include included.yaml", "!include_raw ./.env", "!include_raw " + folder + "/.env", "!include_raw /proc/self/environ",
		"!include_raw file://" + outside + "/secret.txt", "!include_raw " + url + "/secret", "!include_raw ~/secret.txt",
	} {
		all = append(all,
			"id: x\ndescription: "+value+"\nflows: [{id: f, variables: [{id: a, type: text}], outputs: [a], steps: [{type: PromptTemplate, id: p, template: "+quoteOrTag(value)+", outputs: [a]}]}]\n",
			"id: x\nreferences:\n  - "+value+"\n", value+"\n", "id: "+value+"\n",
			"id: x\nmodels: [{type: Model, id: m, provider: openai, api_key: "+quoteOrTag(value)+"}]\n")
	}
	return append(all, "id: x\nreferences: [{path: "+outside+"/app.qtype.yaml}]\n", "id: x\nreferences: ["+outside+"/app.qtype.yaml, "+url+"]\n")
}

// quoteOrTag returns a value as it may be in a list or mapping of one line.
func quoteOrTag(value string) string {
	if strings.HasPrefix(value, "!") {
		tag, path, _ := strings.Cut(value, " ")
		return tag + " '" + path + "'"
	}
	return "'" + strings.Trim(value, "'") + "'"
}

// hostileCalls are the calls of the leak test.
func hostileCalls(folder, outside, url string) []sdk.CallToolParams {
	var all []sdk.CallToolParams
	add := func(name string, args object) {
		all = append(all, sdk.CallToolParams{Name: name, Arguments: args})
	}
	valid := "id: x\ndescription: y\n"
	for _, d := range hostileDocuments(folder, outside, url) {
		add("validate_qtype_yaml", object{"yaml_content": d})
		add("visualize_qtype_architecture", object{"yaml_content": d})
		add("diff", object{"before": valid, "after": d})
		add("diff", object{"before": d, "after": valid})
		add("convert_api_to_tools", object{"api_spec": "openapi: 3.0.0\ninfo: {title: x}\npaths: {/a: {get: {description: \"" + strings.ReplaceAll(strings.SplitN(d, "\n", 2)[0], `"`, "") + "\"}}}\n"})
		add("convert_api_to_tools", object{"api_spec": "openapi: 3.0.0\n" + d})
	}
	for _, p := range []string{"../outside/api.yaml", outside + "/api.yaml", "link.yaml", "sub/link.yaml", "linked/api.yaml", ".env", "secret.txt", "id_rsa",
		".hidden/api.yaml", "included.yaml", "file://" + outside + "/api.yaml", url + "/api.yaml", "//" + strings.TrimPrefix(url, "http://") + "/x.yaml", "sub/../../outside/api.yaml", "", ".", "/", "\x00.yaml"} {
		add("convert_api_to_tools", object{"api_spec": p})
		add("get_documentation", object{"file_path": p})
		add("get_example", object{"file_path": p})
		add("convert_python_to_tools", object{"module_path": p})
		add("explain", object{"code": p})
		add("search_library", object{"query": p})
		add("get_component_schema", object{"component_name": p})
	}
	for _, ref := range []string{outside + "/api.yaml", "file://" + outside + "/api.yaml", url + "/api.yaml", "included.yaml", "link.yaml#/info"} {
		add("convert_api_to_tools", object{"api_spec": "openapi: 3.0.0\npaths: {/x: {get: {parameters: [{$ref: '" + ref + "'}], responses: {200: {$ref: '" + ref + "'}}}}}\n"})
	}
	for _, m := range []string{"evil", "linked.evil", "..outside.evil", "outside.evil", "os", "sys", "secret"} {
		add("convert_python_to_tools", object{"module_path": m})
	}
	return all
}

// TestAssistant_LeaksNothing sends what makes the Python implementation insert variables
// and files, and more, to the command in a folder with marked secrets. No answer has a
// mark, nothing was fetched, and no module was run.
func TestAssistant_LeaksNothing(t *testing.T) {
	folder, outside := secrets(t)
	var fetched atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_, _ = w.Write([]byte(marker))
	}))
	defer web.Close()
	cmd := testkit.Command(t, qtypeCommand(t), "mcp")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "LEAK="+marker, "HOME="+outside)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	testkit.Must(t, err)
	defer session.Close()
	calls := hostileCalls(folder, outside, web.URL)
	for _, c := range calls {
		r, err := session.CallTool(t.Context(), &c)
		if err != nil {
			t.Fatalf("%s(%v): %v", c.Name, c.Arguments, err)
		}
		raw, err := r.MarshalJSON()
		testkit.Must(t, err)
		if strings.Contains(string(raw), marker) {
			t.Errorf("%s(%v) leaks: %s", c.Name, c.Arguments, raw)
		}
	}
	if n := fetched.Load(); n > 0 {
		t.Errorf("%d addresses were fetched", n)
	}
	for _, name := range []string{"executed", "outside/executed"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			t.Error("a module was run")
		}
	}
	t.Logf("%d calls", len(calls))
}

// Over HTTP no files are read unless a folder is named.
func TestAssistant_NoFolder(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2026-07-28", nil)
	for name, args := range map[string]object{"convert_api_to_tools": {"api_spec": "api.yaml"}, "convert_python_to_tools": {"module_path": "api"}} {
		if got := callTool(t, s, name, args); !got.IsError || !strings.Contains(got.Text, "this server reads no files") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
