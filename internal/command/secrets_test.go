package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// marked are the secrets of the application leaky, by the place where each is declared.
var marked = map[string]string{
	"auth of the environment": "marker-auth-Qk4/9+x=",
	"auth in the document":    "marker-literal-7716",
	"provider's variable":     "sk-marker-provider-5512",
	".env file":               "marker-dotenv-9927",
	"secret manager":          "marker-managed-3301",
	"header":                  "marker-header-4418",
	"path of a URL":           "Mk7Qx2Zp9Lw4Ht6Rv1Bn",
	"query of a URL":          "marker-query-6643",
	"inference_params":        "marker-param-8850",
	"argument of a program":   "marker-arg-2294",
	"environment of a tool":   "marker-toolenv-1175",
}

// leaky uses each of the marked secrets against a server that repeats all that it receives.
const leaky = `id: leaky
secret_manager: {type: file, id: vault, directory: secrets}
auths:
  - {type: api_key, id: account, api_key: "${ACCOUNT}"}
  - {type: api_key, id: literal, api_key: "marker-literal-7716"}
  - {type: api_key, id: managed, api_key: {secret_name: managed}}
  - {type: api_key, id: local, api_key: "${LOCAL}"}
memories: [{id: chat_memory, audit_log: audit.jsonl}]
models:
  - {type: Model, id: writer, provider: openai, model_id: m, base_url: "SERVER/v1", auth: account, inference_params: {user_token: "${PARAM}"}, retry: {max_attempts: 1}}
  - {type: Model, id: broken, provider: openai, model_id: m, base_url: "SERVER/fail/${HOOK}", auth: literal, retry: {max_attempts: 1}}
  - {type: Model, id: refused, provider: openai, model_id: m, base_url: "SERVER/fail", retry: {max_attempts: 1}}
tools:
  - {type: APITool, id: hook, name: hook, description: d, endpoint: "SERVER/hooks/${HOOK}?api_key=${QUERY}", auth: managed, allow_private: true, headers: {X-Shop-Key: "${HEADER}"}, outputs: [{id: seen, type: text}]}
  - {type: APITool, id: fails, name: fails, description: d, endpoint: "SERVER/fail/${HOOK}?api_key=${QUERY}", auth: local, allow_private: true, headers: {X-Shop-Key: "${HEADER}"}, outputs: [{id: seen, type: text}]}
  - {type: CommandTool, id: program, name: program, description: d, program: ./repeat, args: [--token, "${ARG}"], env: {ANY: "${TOOLENV}"}, outputs: [{id: seen, type: text}]}
  - {type: CommandTool, id: crash, name: crash, description: d, program: ./repeat, args: [--token, "${ARG}", crash], env: {ANY: "${TOOLENV}"}, outputs: [{id: seen, type: text}]}
telemetry: {id: traces, provider: OTLP, endpoint: "SERVER/otlp"}
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, model: writer, memory: chat_memory, inputs: [question], outputs: [answer]}]
FLOWS`

// leakyFlows are the flows of leaky with one step each.
func leakyFlows() string {
	var b strings.Builder
	for _, id := range []string{"broken", "refused"} {
		fmt.Fprintf(&b, "  - id: m_%s\n    variables: [{id: question, type: text}, {id: answer, type: text}]\n    inputs: [question]\n    outputs: [answer]\n    steps: [{type: LLMInference, id: ask_%[1]s, model: %[1]s, inputs: [question], outputs: [answer]}]\n", id)
	}
	for _, id := range []string{"hook", "fails", "program", "crash"} {
		fmt.Fprintf(&b, "  - id: t_%s\n    variables: [{id: question, type: text}, {id: seen, type: text}]\n    inputs: [question]\n    outputs: [seen]\n    steps: [{type: InvokeTool, id: call_%[1]s, tool: %[1]s, output_bindings: {seen: seen}, cache_config: {}}]\n", id)
	}
	return b.String()
}

// repeatProgram writes its arguments and environment.
const repeatProgram = `#!/bin/sh
cat >/dev/null
if [ "$3" = crash ]; then echo "cannot start with $* and $ANY" >&2; exit 3; fi
printf '{"seen": "%s and %s"}\n' "$*" "$ANY"
`

// echoServer repeats what it receives in all forms of a text, and keeps the traces.
type echoServer struct {
	mu     sync.Mutex
	traces bytes.Buffer
}

func (e *echoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.HasPrefix(r.URL.Path, "/otlp") {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.traces.Write(body)
		return
	}
	text := repeated(r, body)
	switch {
	case strings.HasPrefix(r.URL.Path, "/fail"):
		w.WriteHeader(http.StatusBadRequest)
		testkitEncode(w, map[string]any{"error": map[string]any{"message": text}})
	case strings.HasPrefix(r.URL.Path, "/hooks"):
		testkitEncode(w, map[string]any{"seen": text})
	case bytes.Contains(body, []byte(`"stream":true`)):
		w.Header().Set("Content-Type", "text/event-stream")
		for part := range slices.Chunk([]rune(text), 5) {
			delta, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"content": string(part)}}}})
			fmt.Fprintf(w, "data: %s\n\n", delta)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	default:
		testkitEncode(w, map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop"}}})
	}
}

func testkitEncode(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }

// repeated returns the credentials of a request in all forms.
func repeated(r *http.Request, body []byte) string {
	var params struct {
		UserToken string `json:"user_token"`
	}
	_ = json.Unmarshal(body, &params)
	secrets := []string{r.Header.Get("Authorization"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Shop-Key"), r.URL.Query().Get("api_key"), params.UserToken, r.URL.RequestURI()}
	secrets = append(secrets, strings.Split(r.URL.Path, "/")...)
	var all []string
	for _, s := range secrets {
		if len(s) >= 12 {
			all = append(all, formsOf(s)...)
		}
	}
	return strings.Join(all, " ; ")
}

// formsOf returns the forms in which a secret could be written.
func formsOf(s string) []string {
	return []string{s, strings.ToUpper(s), strings.ToLower(s), strings.Join(strings.Split(s, ""), " "), url.QueryEscape(s), url.PathEscape(s),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte("a:" + s)), hex.EncodeToString([]byte(s))}
}

// leaks returns the places of the marked secrets that a text has in any form.
func leaks(text string) []string {
	plain := strings.ToLower(strings.Join(strings.Fields(text), ""))
	var found []string
	for place, secret := range marked {
		for _, form := range formsOf(secret) {
			form = strings.ToLower(strings.Join(strings.Fields(form), ""))
			if core := form[2 : len(form)-4]; strings.Contains(plain, core) { // without what is next to it in base64
				found = append(found, place)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// leakyFolder writes the application and returns its server.
func leakyFolder(t *testing.T) *echoServer {
	t.Helper()
	echo := &echoServer{}
	s := httptest.NewServer(echo)
	t.Cleanup(s.Close)
	inFolder(t, map[string]string{
		"leaky.qtype.yaml":      strings.ReplaceAll(strings.Replace(leaky, "FLOWS", leakyFlows(), 1), "SERVER", s.URL),
		".env":                  "LOCAL=" + marked[".env file"] + "\n",
		"rows.jsonl":            "{\"question\": \"one\"}\n{\"question\": \"two\"}\n",
		"leaky.qtype-eval.yaml": "app: leaky.qtype.yaml\ndata: rows.jsonl\nflow: t_hook\nmetrics: [{type: contains, output: seen, value: \"${QUERY}\"}]\n",
		"leaky.qtype-test.yaml": "app: leaky.qtype.yaml\nrecordings: calls.json\nallow: [program]\ntests:\n  - name: t\n    flow: talk\n    turns: [{input: one, expect: ['answer.text == \"x\"']}]\n" +
			"  - name: h\n    flow: t_hook\n    turns: [{input: one, expect: ['seen == \"x\"']}]\n",
	})
	testkit.Must(t, os.Mkdir("secrets", 0o700))
	testkit.Must(t, os.WriteFile("secrets/managed", []byte(marked["secret manager"]+"\n"), 0o600))
	testkit.Must(t, os.WriteFile("repeat", []byte(repeatProgram), 0o700))
	for name, place := range map[string]string{"ACCOUNT": "auth of the environment", "PARAM": "inference_params", "HOOK": "path of a URL",
		"QUERY": "query of a URL", "HEADER": "header", "ARG": "argument of a program", "TOOLENV": "environment of a tool", "OPENAI_API_KEY": "provider's variable"} {
		t.Setenv(name, marked[place])
	}
	return echo
}

// declared are the files of the folder in which secrets are declared.
var declared = regexp.MustCompile(`^(secrets/|\.env$|leaky\.qtype\.yaml$|.*\.broken\.yaml$)`)

// checkFiles reports secrets in files that were written.
func checkFiles(t *testing.T) {
	t.Helper()
	testkit.Must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || declared.MatchString(filepath.ToSlash(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if found := leaks(string(text)); len(found) > 0 {
			t.Errorf("the file %s has secrets: %s", path, strings.Join(found, ", "))
		}
		return err
	}))
}

// command runs a command and reports secrets in its output.
func checkCommand(t *testing.T, in string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	s := &cli.Streams{Streams: terminal.Streams{In: strings.NewReader(in), Out: &out, Err: &out}}
	Execute(t.Context(), observed(), s, args)
	if found := leaks(out.String()); len(found) > 0 {
		t.Errorf("%s: the output has secrets: %s\n%s", strings.Join(args, " "), strings.Join(found, ", "), out.String())
	}
	return out.String()
}

// TestSecrets_Commands uses marked secrets against a server that repeats them, and searches
// the output of the commands, the files that they write, and the traces that they send.
func TestSecrets_Commands(t *testing.T) {
	testkit.SkipWithRace(t)
	echo := leakyFolder(t)
	t.Setenv("QTYPE_AUDIT_LOG", "calls.audit.jsonl")
	const app = "leaky.qtype.yaml"
	shown := ""
	for _, flow := range []string{"talk", "m_broken", "m_refused", "t_hook", "t_fails", "t_program", "t_crash"} {
		shown += checkCommand(t, "", "run", app, "-f", flow, "-i", `{"question": "one"}`, "--session", "s", "--trace", "--verbose")
		for i, extra := range [][]string{{"-o", "out.jsonl", "--trace=trace.jsonl"}, {"-o", "out.csv", "--trace=trace.html"}, {"--format", "json"}} {
			args := append([]string{"run", app, "-f", flow, "-I", "rows.jsonl", "--errors", fmt.Sprintf("%s%d.errors.jsonl", flow, i), "--session", "s"}, extra...)
			shown += checkCommand(t, "", args...)
		}
		checkFiles(t)
	}
	if strings.Count(shown, redact.Mask) < 100 {
		t.Errorf("the server repeats nothing: %s", shown)
	}
	checkCommand(t, "one\ntwo\n", "chat", app, "--session", "s")
	for _, args := range [][]string{{"memory", "list", app}, {"memory", "show", app, "--memory", "chat_memory", "--session", "s"}, {"memory", "history", app, "--memory", "chat_memory", "--session", "s"},
		{"memory", "export", app, "--memory", "chat_memory", "--session", "s"}, {"cost", app, "--data", "rows.jsonl"}, {"visualize", app}, {"visualize", app, "-o", "app.html"},
		{"eval", "leaky.qtype-eval.yaml", "-o", "eval.json", "--html", "eval.html"}, {"eval", "leaky.qtype-eval.yaml", "--format", "json"}, {"clean", app, "--dry-run", "--older-than", "1ns"},
		{"validate", app}, {"cache", "stats", app}, {"diff", app, "app.qtype.yaml"}, {"test", ".", "--record", "--trace", "--allow-effects"}, {"run", app, "-f", "none"}, {"run", app, "-i", "{"}} {
		checkCommand(t, "", args...)
	}
	checkFiles(t)
	for path, part := range map[string]string{"calls.audit.jsonl": "call_hook", "eval.json": redact.Mask, "eval.html": "t_hook"} {
		if text := testkit.ReadFile(t, path); !strings.Contains(text, part) {
			t.Errorf("%s has no %s: %s", path, part, text)
		}
	}
	echo.mu.Lock()
	defer echo.mu.Unlock()
	if found := leaks(echo.traces.String()); len(found) > 0 || echo.traces.Len() == 0 {
		t.Errorf("the traces of %d bytes have secrets: %s", echo.traces.Len(), strings.Join(found, ", "))
	}
}

// TestSecrets_Server searches the responses of the server and its log.
func TestSecrets_Server(t *testing.T) {
	leakyFolder(t)
	var log bytes.Buffer
	c := &serveCommand{Streams: &cli.Streams{Streams: terminal.Streams{Err: &log}}, logFormat: cli.NewEnumFlag("text"), logLevel: cli.NewEnumFlag("debug")}
	ctx, flush := c.Redact(t.Context())
	p, list := qtype.Check(ctx, "leaky.qtype.yaml", qtype.WithStrict())
	testkit.Must(t, list.Err())
	app, err := c.open(p)
	testkit.Must(t, err)
	s := server.New(app, server.Options{Log: c.logger(), Telemetry: observed().Telemetry})
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		testkit.Must(t, s.Shutdown(context.Background()))
		testkit.Must(t, app.Close(context.Background()))
	})
	question := `{"question": "one"}`
	for _, path := range []string{"talk", "m_broken", "m_refused", "t_hook", "t_fails"} { // programs are tools of the client here
		checkRequest(t, web.URL, http.MethodPost, "/flows/"+path, question)
		checkRequest(t, web.URL, http.MethodPost, "/flows/"+path+"/stream", question)
	}
	checkRequest(t, web.URL, http.MethodPost, "/v1/chat/completions", `{"model": "talk", "stream": true, "messages": [{"role": "user", "content": "one"}]}`)
	for _, path := range []string{"/app", "/flows", "/runs", "/sessions", "/sessions/s", "/metrics", "/openapi.json", "/flows/talk/graph", "/flows/none", "/hooks/" + marked["path of a URL"]} {
		checkRequest(t, web.URL, http.MethodGet, path, "")
	}
	flush()
	if found := leaks(log.String()); len(found) > 0 || log.Len() == 0 {
		t.Errorf("the log of %d bytes has secrets: %s\n%s", log.Len(), strings.Join(found, ", "), log.String())
	}
}

// checkRequest reports secrets in a response.
func checkRequest(t *testing.T, address, method, path, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", "s")
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { testkit.Must(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	testkit.Must(t, err)
	if found := leaks(string(text) + fmt.Sprint(res.Header)); len(found) > 0 {
		t.Errorf("%s %s: status %d has secrets: %s\n%s", method, path, res.StatusCode, strings.Join(found, ", "), text)
	}
}

// brokenDocuments have the secret SECRET next to an error.
var brokenDocuments = map[string]string{
	"wrong shape":          "id: a\nauths: [{type: api_key, id: x, api_key: [SECRET]}]\n",
	"wrong shape of map":   "id: a\nauths: [{type: api_key, id: x, api_key: {name: SECRET}}]\n",
	"headers as a list":    "id: a\ntools: [{type: APITool, id: t, name: t, description: d, endpoint: \"https://a.example\", headers: [\"Authorization: SECRET\"]}]\n",
	"token_url":            "id: a\nauths: [{type: oauth2, id: x, client_id: c, client_secret: s, token_url: \"http//u:SECRET@host/token\", hosst: x}]\n",
	"token_url with query": "id: a\nauths: [{type: oauth2, id: x, client_id: c, client_secret: s, token_url: \"https://host/token?client_secret=SECRET\", hosst: x}]\n",
	"endpoint":             "id: a\ntools: [{type: APITool, id: t, name: t, description: d, endpoint: \"https://u:SECRET@a.example/{x}\", hosst: x}]\n",
	"query of an endpoint": "id: a\ntools: [{type: APITool, id: t, name: t, description: d, endpoint: \"https://a.example/?api_key=SECRET\", mehtod: GET}]\n",
	"inference_params":     "id: a\nmodels: [{type: Model, id: m, provider: openai, inference_params: {api_key: SECRET}, basurl: x}]\n",
	"params as a list":     "id: a\nmodels: [{type: Model, id: m, provider: openai, inference_params: [{api_key: SECRET}]}]\n",
	"MCP arguments":        "id: a\ntools: [{type: MCPTool, id: t, command: c, args: [--token, SECRET], tmeout: 3s}]\n",
	"MCP joined":           "id: a\ntools: [{type: MCPTool, id: t, command: c, args: [--api-key=SECRET], tmeout: 3s}]\n",
	"command":              "id: a\ntools: [{type: CommandTool, id: t, name: t, description: d, program: p, args: [-H, \"Authorization: Bearer SECRET\"], tmeout: 3s}]\n",
	"no YAML":              "id: a\nauths: [{type: api_key, id: x, api_key: SECRET\n",
	"no YAML in a block":   "id: a\nauths:\n  - type: api_key\n    api_key: SECRET\n   id: x\n",
	"unclosed quote":       "id: a\nauths:\n  - type: api_key\n    api_key: \"SECRET\n    id: x\n",
	"included":             "id: a\nauths: [{type: api_key, id: x, api_key: !include secret.txt, hosst: x}]\n",
	"included file":        "id: a\nauths: !include secret.broken.yaml\n",
	"included raw":         "id: a\nauths: [{type: api_key, id: x, api_key: !include_raw secret.txt, hosst: x}]\n",
	"included address":     "id: a\ntools: [{type: APITool, id: t, name: t, description: d, endpoint: !include_raw secret.url}]\n",
	"store":                "id: a\nmemories: [{id: m, store: \"redis://u:SECRET@host/0\", tll: 3h}]\n",
	"unknown key":          "id: a\nauths: [{type: api_key, id: x, api_kye: SECRET}]\n",
}

// TestSecrets_Diagnostics searches the diagnostics of broken documents in all formats.
func TestSecrets_Diagnostics(t *testing.T) {
	testkit.SkipWithRace(t)
	const secret = "marker-literal-7716"
	for name, text := range brokenDocuments {
		t.Run(name, func(t *testing.T) {
			inFolder(t, map[string]string{"x.broken.yaml": strings.ReplaceAll(text, "SECRET", secret), "secret.txt": secret, "secret.url": "https://u:" + secret + "@a.example/{nope}", "secret.broken.yaml": "api_key: " + secret + "\n: ["})
			for _, format := range []string{"text", "json", "sarif", "github"} {
				if out := checkCommand(t, "", "validate", "x.broken.yaml", "--format", format); !strings.Contains(out, "QT") {
					t.Errorf("no diagnostic: %s", out)
				}
			}
			checkCommand(t, "", "run", "x.broken.yaml", "-i", "x")
			checkCommand(t, editorSession(t, "x.broken.yaml"), "lsp")
		})
	}
}

// TestSecrets_Editor searches the answers of the language server about a correct document.
func TestSecrets_Editor(t *testing.T) {
	leakyFolder(t)
	checkCommand(t, editorSession(t, "leaky.qtype.yaml"), "lsp")
}

// editorSession is what an editor sends that opens a document and requests texts for each line.
func editorSession(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	testkit.Must(t, err)
	text := testkit.ReadFile(t, path)
	id := 0
	var b strings.Builder
	send := func(method string, params any, request bool) {
		message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
		if request {
			id++
			message["id"] = id
		}
		body, err := json.Marshal(message)
		testkit.Must(t, err)
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	document := map[string]any{"uri": "file://" + whole}
	send("initialize", map[string]any{"capabilities": map[string]any{}, "rootUri": "file://" + filepath.Dir(whole)}, true)
	send("initialized", map[string]any{}, false)
	send("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": document["uri"], "languageId": "yaml", "version": 1, "text": text}}, false)
	send("textDocument/diagnostic", map[string]any{"textDocument": document}, true)
	send("textDocument/documentSymbol", map[string]any{"textDocument": document}, true)
	for n, line := range strings.Split(text, "\n") {
		for _, word := range []string{"type", "id:", "marker", "${", "tok", "endpoint", "auth"} {
			if at := strings.Index(line, word); at >= 0 {
				where := map[string]any{"textDocument": document, "position": map[string]any{"line": n, "character": at + 2}}
				send("textDocument/hover", where, true)
				send("textDocument/completion", where, true)
			}
		}
	}
	send("shutdown", nil, true)
	send("exit", nil, false)
	return b.String()
}
