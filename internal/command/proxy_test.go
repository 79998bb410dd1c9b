package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

const proxyDocument = `id: bot
models: [{type: Model, id: clerk, provider: openai, model_id: some, base_url: "${MODEL}", auth: key}]
auths: [{type: api_key, id: key, api_key: some}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: clerk, inputs: [message], outputs: [answer]}]
  - id: count
    variables: [{id: text, type: text}, {id: words, type: int}]
    inputs: [text]
    outputs: [words]
    steps: [{type: Transform, id: size, set: {words: "len(text)"}, inputs: [text], outputs: [words]}]
`

// TestProxies serves an application behind the proxies of docs/howto/reverse-proxies.md.
func TestProxies(t *testing.T) {
	const host = "bot.example.com"
	page := testkit.ReadFile(t, "../../docs/howto/reverse-proxies.md")
	block := func(language string) string {
		_, text, ok := strings.Cut(page, "```"+language+"\n")
		if !ok {
			t.Fatalf("the page has no block of %s", language)
		}
		text, _, _ = strings.Cut(text, "```")
		return text
	}
	model := newHeldModel(t)
	t.Setenv("MODEL", model.URL)
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(proxyDocument), 0o600))
	backend := servertest.Serve(t, folder, "--ephemeral", "--trusted-proxy", "127.0.0.1", "--allowed-host", host).URL
	toBackend := func(text string) string {
		return strings.ReplaceAll(text, "127.0.0.1:8000", strings.TrimPrefix(backend, "http://"))
	}
	for name, start := range map[string]func() (*servertest.Server, error){
		"nginx": func() (*servertest.Server, error) {
			return servertest.Nginx(regexp.MustCompile(`(?m)^ *ssl_.*\n`).ReplaceAllString(toBackend(block("nginx")), ""))
		},
		"Caddy": func() (*servertest.Server, error) { return servertest.Caddy(host, toBackend(block("caddy"))) },
	} {
		t.Run(name, func(t *testing.T) {
			proxy, err := start()
			servertest.Need(t, err)
			t.Cleanup(func() { _ = proxy.Close() })
			c := &proxyClient{t, proxy.Port, "http://" + net.JoinHostPort(host, strconv.Itoa(proxy.Port)), model}
			c.rest()
			c.page()
			c.addresses()
			c.mcp()
			c.streams()
			c.bodies()
		})
	}
}

// heldModel is a model of chat completions that writes a word, and the rest after it was told to.
type heldModel struct {
	*httptest.Server
	rest chan struct{}
}

func newHeldModel(t *testing.T) *heldModel {
	m := &heldModel{rest: make(chan struct{})}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		word := func(text, finish string) {
			_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":%s}]}`+"\n\n", text, finish)
			_ = http.NewResponseController(w).Flush()
		}
		word("First ", "null")
		select {
		case <-m.rest:
		case <-r.Context().Done():
		}
		word("second.", `"stop"`)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(m.Close)
	return m
}

// proxyClient calls an application below the prefix /bot of a proxy.
type proxyClient struct {
	t      *testing.T
	port   int
	origin string
	model  *heldModel
}

// send sends a request and returns the answer, whose body is closed after the test.
func (c *proxyClient) send(method, path, body string, headers ...string) *http.Response {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	c.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, c.origin+path, strings.NewReader(body))
	testkit.Must(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)))
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	testkit.Must(c.t, err)
	c.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// text sends a request, whose answer must have a status, and returns its body.
func (c *proxyClient) text(status int, method, path, body string, headers ...string) string {
	c.t.Helper()
	res := c.send(method, path, body, headers...)
	raw, err := io.ReadAll(res.Body)
	testkit.Must(c.t, err)
	if res.StatusCode != status {
		c.t.Errorf("%s %s: status %d, want %d: %.300s", method, path, res.StatusCode, status, raw)
	}
	return string(raw)
}

func (c *proxyClient) rest() {
	if got := c.text(http.StatusOK, "POST", "/bot/flows/count", `{"text":"four"}`); !strings.Contains(got, `"words":4`) {
		c.t.Errorf("got %s", got)
	}
	c.text(http.StatusNotFound, "POST", "/bot/flows/nothing", `{}`)
}

// page loads the web interface and all files that it names.
func (c *proxyClient) page() {
	if to := c.send("GET", "/bot", "").Header.Get("Location"); to != "/bot/" && to != c.origin+"/bot/" {
		c.t.Errorf("/bot leads to %q", to)
	}
	page := c.text(http.StatusOK, "GET", "/bot/", "", "Accept", "text/html")
	files := regexp.MustCompile(`(?:src|href)="\.?/?([\w./-]+\.(?:js|css))"`).FindAllStringSubmatch(page, -1)
	if len(files) < 2 {
		c.t.Errorf("the page names the files %q:\n%s", files, page)
	}
	for _, file := range files {
		if strings.HasPrefix(file[0][strings.Index(file[0], `"`):], `"/`) {
			c.t.Errorf("%s is not below the prefix", file[0])
		}
		c.text(http.StatusOK, "GET", "/bot/"+file[1], "")
	}
}

// addresses reads those that the server writes: they have the name and the prefix of the proxy.
func (c *proxyClient) addresses() {
	var card struct {
		Interfaces []struct{ URL string } `json:"supportedInterfaces"`
	}
	testkit.Must(c.t, json.Unmarshal([]byte(c.text(http.StatusOK, "GET", "/bot/.well-known/agent-card.json", "")), &card))
	if len(card.Interfaces) == 0 || card.Interfaces[0].URL != c.origin+"/bot/a2a" {
		c.t.Errorf("the agent card has the addresses %v, want %s", card.Interfaces, c.origin+"/bot/a2a")
	}
	if got := c.text(http.StatusOK, "POST", "/bot/a2a", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}`); !strings.Contains(got, "-32001") {
		c.t.Errorf("A2A: %s", got)
	}
}

func (c *proxyClient) mcp() {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"text":"four"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	got := c.text(http.StatusOK, "POST", "/bot/mcp", call, "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "count")
	if !strings.Contains(got, `"words":4`) {
		c.t.Errorf("MCP: %s", got)
	}
}

// streams reads the first word of a stream before the model writes the second.
func (c *proxyClient) streams() {
	user := `{"id":"m","role":"user",`
	for path, body := range map[string]string{
		"/bot/flows/talk/stream":   `{"id":"c","trigger":"submit-message","messages":[` + user + `"parts":[{"type":"text","text":"Hello"}]}]}`,
		"/bot/flows/talk/agui":     `{"threadId":"a","runId":"r","messages":[` + user + `"content":"Hello"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`,
		"/bot/v1/chat/completions": `{"model":"talk","stream":true,"messages":[{"role":"user","content":"Hello"}]}`,
	} {
		res := c.send("POST", path, body)
		if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
			c.t.Errorf("%s: status %d, %s", path, res.StatusCode, kind)
			continue
		}
		var seen strings.Builder
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			seen.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "First ") && !strings.Contains(seen.String(), "second.") {
				select {
				case c.model.rest <- struct{}{}:
				case <-res.Request.Context().Done():
				}
			}
		}
		if !strings.Contains(seen.String(), "second.") {
			c.t.Errorf("%s:\n%s", path, seen.String())
		}
	}
}

// bodies sends a body that is larger than the default of nginx.
func (c *proxyClient) bodies() {
	c.text(http.StatusOK, "POST", "/bot/flows/count", `{"text":"`+strings.Repeat("x", 20<<20)+`"}`)
}
