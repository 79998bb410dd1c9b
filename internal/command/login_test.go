package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// protected are an MCP server that requires tokens, and its authorization server.
type protected struct{ url, issuer string }

// startProtected starts the servers of protected.mjs.
func startProtected(t *testing.T) protected {
	t.Helper()
	modules, provider := os.Getenv("QTYPE_MCP_NODE"), os.Getenv("QTYPE_OIDC_PROVIDER")
	if modules == "" || provider == "" {
		servertest.Need(t, fmt.Errorf("%w: set QTYPE_MCP_NODE and QTYPE_OIDC_PROVIDER to folders node_modules with @modelcontextprotocol/sdk and oidc-provider", servertest.ErrMissing))
	}
	config, err := json.Marshal(map[string]string{"modules": modules, "provider": provider})
	testkit.Must(t, err)
	cmd := testkit.Command(t, "node", "../../internal/tool/mcp/testdata/protected.mjs", string(config))
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var server, issuer int
		if _, err := fmt.Sscanf(lines.Text(), "listening %d %d", &server, &issuer); err == nil {
			return protected{fmt.Sprintf("http://127.0.0.1:%d/mcp", server), fmt.Sprintf("http://127.0.0.1:%d", issuer)}
		}
	}
	t.Fatal("the servers did not start")
	return protected{}
}

// loginDocument has a tool of a person, another one of the same server, and one of a machine.
const loginDocument = `id: books
auths:
  - {type: oauth2_login, id: reader}
  - {type: oauth2, id: robot, client_id: robot, client_secret: "${ROBOT:-secret-of-robot}", token_url: "ISSUER/token", scopes: [books], resource: "URL"}
tools:
  - {type: MCPTool, id: library, url: "URL", allow_private: true, auth: reader, tools: [who]}
  - {type: MCPTool, id: copy, url: "URL", allow_private: true, auth: reader, tools: [echo]}
  - {type: MCPTool, id: machine, url: "URL", allow_private: true, auth: robot, tools: [who]}
flows:
  - {id: person, variables: [{id: result, type: text}], outputs: [result], steps: [{type: InvokeTool, id: ask, tool: library, output_bindings: {content: result}}]}
  - {id: token, variables: [{id: result, type: text}], outputs: [result], steps: [{type: InvokeTool, id: ask_token, tool: copy, output_bindings: {content: result}}]}
  - {id: robot_flow, variables: [{id: result, type: text}], outputs: [result], steps: [{type: InvokeTool, id: ask_robot, tool: machine, output_bindings: {content: result}}]}
`

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formAbort  = regexp.MustCompile(`<a href="([^"]+/abort)"`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// browse opens an address as a person does who signs in and accepts: it submits the forms
// of all pages, and returns the last one. A person who does not accept aborts.
func browse(t *testing.T, address string, accept bool) string {
	t.Helper()
	forge(t, address)
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	client := &http.Client{Jar: jar}
	resp, err := client.Get(address)
	for {
		if err != nil {
			t.Error(err)
			return ""
		}
		page, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		action := formAction.FindSubmatch(page)
		if action == nil {
			return string(page)
		}
		if abort := formAbort.FindSubmatch(page); abort != nil && !accept {
			resp, err = client.Get(string(abort[1]))
			continue
		}
		form := url.Values{"login": {"ada"}, "password": {"lovelace"}}
		for _, field := range formHidden.FindAllSubmatch(page, -1) {
			form.Set(string(field[1]), string(field[2]))
		}
		resp, err = client.PostForm(string(action[1]), form)
	}
}

// forge sends a code to the address of return, as any page can make a browser do. It must be
// refused, because it has not the state of the request.
func forge(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	testkit.Must(t, err)
	for _, state := range []string{"", "forged"} {
		resp, err := http.Get(u.Query().Get("redirect_uri") + "?code=forged&state=" + state)
		testkit.Must(t, err)
		testkit.Must(t, resp.Body.Close())
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a forged answer: HTTP %d", resp.StatusCode)
		}
	}
	if u.Query().Get("code_challenge_method") != "S256" || u.Query().Get("resource") == "" {
		t.Errorf("the request is %s", address)
	}
}

// addressWriter receives standard error, and calls found with the first address of a line.
type addressWriter struct {
	bytes.Buffer
	once  sync.Once
	found func(address string)
}

func (w *addressWriter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	for line := range strings.Lines(w.String()) {
		if strings.HasPrefix(line, "http://") && strings.HasSuffix(line, "\n") {
			w.once.Do(func() { w.found(strings.TrimSpace(line)) })
		}
	}
	return n, err
}

// TestLogin signs in at a real authorization server with a client that is registered for it,
// and calls a real MCP server that requires tokens.
func TestLogin(t *testing.T) {
	server := startProtected(t)
	folder, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	t.Chdir(folder)
	t.Setenv("QTYPE_HOME", state)
	testkit.Must(t, os.WriteFile("books.qtype.yaml", []byte(strings.NewReplacer("ISSUER", server.issuer, "URL", server.url).Replace(loginDocument)), 0o600))
	command := func(found func(string), args ...string) (code int, out, errs string) {
		var stdout bytes.Buffer
		stderr := &addressWriter{found: found}
		code = Execute(t.Context(), Core(), &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: stderr}}, args)
		return code, stdout.String(), stderr.String()
	}
	run := func(flow string) (int, string, string) { return command(nil, "run", "books.qtype.yaml", "-f", flow) }

	if code, out, errs := run("robot_flow"); code != cli.ExitDone || !strings.Contains(out, "robot books") {
		t.Errorf("client credentials: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := run("person"); code != cli.ExitFailed || !strings.Contains(errs, `there is no sign-in at `+server.url+`: run "qtype login" with the document`) {
		t.Errorf("before the sign-in: exit %d, %s", code, errs)
	}
	login := func(accept bool) (code int, errs, last string) {
		var browser sync.WaitGroup
		code, _, errs = command(func(address string) {
			browser.Go(func() { last = browse(t, address, accept) })
		}, "login", "books.qtype.yaml")
		browser.Wait()
		return code, errs, last
	}
	if code, errs, last := login(false); code != cli.ExitFailed || !strings.Contains(errs, "the authorization server refused: access_denied") || !strings.HasPrefix(last, "The sign-in was refused.") {
		t.Errorf("a person who aborts: exit %d, %s\nthe browser: %s", code, errs, last)
	}
	code, errs, last := login(true)
	if code != cli.ExitDone || !strings.Contains(errs, "library: signed in; the tokens are renewed when they expire\n") || !strings.HasPrefix(last, "You have signed in.") {
		t.Fatalf("exit %d, %s\nthe browser: %s", code, errs, last)
	}
	if strings.Contains(errs, "copy:") {
		t.Errorf("one sign-in is enough for one server:\n%s", errs)
	}
	tokens := readTokens(t, state)
	if code, out, errs := run("person"); code != cli.ExitDone || !strings.Contains(out, "ada books") {
		t.Errorf("after the sign-in: exit %d, %s%s", code, out, errs)
	}
	if code, out, errs := run("token"); code != cli.ExitDone || !strings.Contains(out, "token ***") || strings.Contains(out+errs, tokens["access_token"]) {
		t.Errorf("a tool that returns the token: exit %d, %s%s", code, out, errs)
	}
	resp, err := http.Get(strings.TrimSuffix(server.url, "mcp") + "reject")
	testkit.Must(t, err)
	testkit.Must(t, resp.Body.Close())
	if code, out, errs := run("person"); code != cli.ExitDone || !strings.Contains(out, "ada books") {
		t.Errorf("after the token was rejected: exit %d, %s%s", code, out, errs)
	}
	if renewed := readTokens(t, state); renewed["access_token"] == tokens["access_token"] || renewed["refresh_token"] == "" {
		t.Error("the tokens were not renewed")
	}
	if code, _, errs := command(nil, "login", "books.qtype.yaml", "libary"); code != cli.ExitFailed || !strings.Contains(errs, `did you mean "library"?`) {
		t.Errorf("an unknown tool: exit %d, %s", code, errs)
	}
	if code, out, errs := command(nil, "run", "books.qtype.yaml", "-f", "person", "--sandbox", "--allow-host", strings.TrimPrefix(strings.TrimSuffix(server.url, "/mcp"), "http://")); code != cli.ExitFailed || !strings.Contains(errs, "use the sign-in of the user at "+server.url) {
		t.Errorf("a document that is not trusted: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := command(nil, "login", "books.qtype.yaml", "--remove"); code != cli.ExitDone || len(tokenFiles(t, state)) != 0 {
		t.Errorf("--remove: exit %d, %s", code, errs)
	}
}

// tokenFiles lists the files with tokens.
func tokenFiles(t *testing.T, state string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "signin", "*"))
	testkit.Must(t, err)
	return files
}

// readTokens returns the stored tokens of the only sign-in, which only the user can read.
func readTokens(t *testing.T, state string) map[string]string {
	t.Helper()
	files := tokenFiles(t, state)
	if len(files) != 1 {
		t.Fatalf("there are the files %v", files)
	}
	for path, want := range map[string]os.FileMode{files[0]: 0o600, filepath.Dir(files[0]): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want mode %o", path, info.Mode(), err, want)
		}
	}
	raw, err := os.ReadFile(files[0])
	testkit.Must(t, err)
	var all map[string]any
	testkit.Must(t, json.Unmarshal(raw, &all))
	found := map[string]string{}
	for key, v := range all {
		found[key], _ = v.(string)
	}
	return found
}
