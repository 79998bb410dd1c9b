package e2e_test

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go/eventstream"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// clouds answers for the services that the examples of QType (Python) call, at their own
// names: it is the proxy for outgoing calls, and has certificates for all names.
type clouds struct {
	proxy string // its address
	ca    string // file with the certificate of its authority

	mu    sync.Mutex
	calls map[string]bool // names of the services called since the last reset
}

// startClouds starts the proxy, and servers at the two local addresses that examples name.
func startClouds(t *testing.T) *clouds {
	t.Helper()
	c := &clouds{calls: map[string]bool{}}
	mux := http.NewServeMux()
	c.mount(mux)
	authority := newAuthority(t)
	c.ca = testkit.WriteFile(t, "ca.pem", authority.pem())
	inside := httptest.NewUnstartedServer(c.record(mux))
	inside.TLS = &tls.Config{GetCertificate: authority.issue, MinVersion: tls.VersionTLS12}
	inside.StartTLS()
	t.Cleanup(func() { testkit.CloseServer(inside) })
	proxy := httptest.NewServer(tunnel(inside.Listener.Addr().String()))
	t.Cleanup(func() { testkit.CloseServer(proxy) })
	c.proxy = proxy.URL
	listenAt(t, "127.0.0.1:6006", c.record(mux))
	points := http.NewServeMux()
	servertest.MountQdrant(points)
	listenAt(t, "127.0.0.1:6333", c.record(points))
	return c
}

// listenAt serves at a fixed address, which another run of the tests may have for a moment.
func listenAt(t *testing.T, address string, h http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); l, err = net.Listen("tcp", address) {
		time.Sleep(50 * time.Millisecond)
	}
	testkit.Must(t, err)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(func() { testkit.CloseServer(s) })
}

// record notes the name and the port of the service of each call.
func (c *clouds) record(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := h.(*http.ServeMux).Handler(r)
		c.mu.Lock()
		if c.calls[r.Host] = true; pattern == "" {
			c.calls[r.Method+" "+r.Host+r.URL.Path+" (unexpected)"] = true
		}
		c.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// called returns the names of the services called since the last time.
func (c *clouds) called() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.calls {
		names = append(names, name)
	}
	clear(c.calls)
	slices.Sort(names)
	return names
}

// tunnel is a proxy that connects all calls to one server.
func tunnel(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only HTTPS", http.StatusMethodNotAllowed)
			return
		}
		server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", to)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = server.Close() }()
		client, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = client.Close() }()
		_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
	})
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testkit.Must(t, err)
	cert, err := x509.ParseCertificate(der)
	testkit.Must(t, err)
	return &authority{key, cert}
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// issue returns a certificate for the name that a client calls.
func (a *authority) issue(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{hello.ServerName},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}, nil
}

// serviceAccount returns a file of a service account of Google.
func serviceAccount(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.Must(t, err)
	text, err := json.Marshal(map[string]string{"type": "service_account", "project_id": "shop", "private_key_id": "1", "client_email": "writer@shop.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": "https://oauth2.googleapis.com/token"})
	testkit.Must(t, err)
	return testkit.WriteFile(t, "google.json", string(text))
}

// mount adds the services, at their names.
func (c *clouds) mount(mux *http.ServeMux) {
	const bedrock = "POST bedrock-runtime.us-east-1.amazonaws.com/model/{model}/"
	mux.HandleFunc(bedrock+"converse", signed(converse))
	mux.HandleFunc(bedrock+"converse-stream", signed(converseStream))
	mux.HandleFunc(bedrock+"invoke", signed(titan))
	mux.HandleFunc("POST api.openai.com/v1/chat/completions", needing("Bearer openai-key", chatCompletion))
	mux.HandleFunc("POST oauth2.googleapis.com/token", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"access_token": "google-token", "token_type": "Bearer", "expires_in": 3600})
	})
	mux.HandleFunc("POST us-central1-aiplatform.googleapis.com/v1/projects/{project}/locations/us-central1/publishers/google/models/{call}", needing("Bearer google-token", gemini))
	mux.HandleFunc("POST api.tavily.com/search", needing("Bearer tavily-key", func(w http.ResponseWriter, _ map[string]any) {
		send(w, map[string]any{"query": "q", "response_time": 1.5, "results": []any{map[string]any{"title": "Go", "url": "https://go.dev", "content": "A language.", "score": 0.9}}})
	}))
	mux.HandleFunc("GET huggingface.co/datasets/AlignmentLab-AI/llama-index/resolve/main/modified_dataset.jsonl", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, `{"instruction":"Question %d","output":"Answer %d"}`+"\n", i, i)
		}
	})
	for _, sink := range []string{"localhost/v1/traces", "cloud.langfuse.com/api/public/otel/v1/traces", "otlp.arize.com/v1/traces"} {
		mux.HandleFunc("POST "+sink, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	}
}

// needing calls a handler with the body of a request that has a credential.
func needing(credential string, h func(http.ResponseWriter, map[string]any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		switch err := json.NewDecoder(r.Body).Decode(&body); {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case !strings.HasPrefix(r.Header.Get("Authorization"), credential):
			http.Error(w, `{"message":"no valid credential"}`, http.StatusForbidden)
		default:
			h(w, body)
		}
	}
}

// signed calls a handler with the body of a request to Bedrock that is signed.
func signed(h func(http.ResponseWriter, map[string]any)) http.HandlerFunc {
	day := time.Now().UTC().Format("20060102")
	return needing("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"+day+"/us-east-1/bedrock/aws4_request", h)
}

// answerTo returns the answer of all models: JSON where the prompt requires it, else the
// last message and the system message, so that answers depend on requests.
func answerTo(body map[string]any) string {
	raw, _ := json.Marshal(body)
	if bytes.Contains(raw, []byte("Return ONLY the JSON object")) {
		return `{"sentiment":"positive","confidence":0.9,"key_points":["fast"],"rating":5}`
	}
	messages, _ := cmp.Or(body["messages"], body["contents"]).([]any)
	if len(messages) == 0 {
		return "An answer."
	}
	answer := "An answer to " + textIn(messages[len(messages)-1])
	first, _ := messages[0].(map[string]any)
	if system := cmp.Or(body["system"], body["systemInstruction"]); system != nil {
		answer += ", as " + textIn(system)
	} else if first["role"] == "system" {
		answer += ", as " + textIn(first)
	}
	return answer
}

// textIn returns the texts in a message of any of the protocols.
func textIn(message any) string {
	switch m := message.(type) {
	case string:
		return m
	case []any:
		var all strings.Builder
		for _, part := range m {
			all.WriteString(textIn(part))
		}
		return all.String()
	case map[string]any:
		return textIn(cmp.Or(m["content"], m["parts"], m["text"]))
	}
	return ""
}

func converse(w http.ResponseWriter, body map[string]any) {
	if problem := converseProblem(body); problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		send(w, map[string]any{"message": problem})
		return
	}
	send(w, map[string]any{"output": map[string]any{"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"text": answerTo(body)}}}},
		"stopReason": "end_turn", "usage": map[string]any{"inputTokens": 9, "outputTokens": 3, "totalTokens": 12}, "metrics": map[string]any{"latencyMs": 1}})
}

// converseProblem checks what Bedrock rejects: no messages, empty texts, roles that do not
// alternate, or that do not begin with the user.
func converseProblem(body map[string]any) string {
	messages, _ := body["messages"].([]any)
	if len(messages) == 0 {
		return "no messages"
	}
	for i, m := range messages {
		m, _ := m.(map[string]any)
		if m["role"] != []string{"user", "assistant"}[i%2] {
			return fmt.Sprintf("message %d is of %v", i, m["role"])
		}
		content, _ := m["content"].([]any)
		for _, block := range content {
			if block, _ := block.(map[string]any); block["text"] == "" {
				return "an empty text"
			}
		}
		if len(content) == 0 {
			return "a message without content"
		}
	}
	return ""
}

func converseStream(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for _, e := range []struct {
		name    string
		payload map[string]any
	}{
		{"messageStart", map[string]any{"role": "assistant"}},
		{"contentBlockDelta", map[string]any{"delta": map[string]any{"text": answerTo(body)}, "contentBlockIndex": 0}},
		{"contentBlockStop", map[string]any{"contentBlockIndex": 0}},
		{"messageStop", map[string]any{"stopReason": "end_turn"}},
		{"metadata", map[string]any{"usage": map[string]any{"inputTokens": 9, "outputTokens": 3, "totalTokens": 12}}},
	} {
		payload, _ := json.Marshal(e.payload)
		m := eventstream.Message{Payload: payload}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue(e.name))
		_ = eventstream.NewEncoder().Encode(w, m)
	}
}

// titan answers with a vector of the length that the request has, else of 1024 as Titan does.
func titan(w http.ResponseWriter, body map[string]any) {
	size, ok := body["dimensions"].(float64)
	if !ok {
		size = 1024
	}
	text, _ := body["inputText"].(string)
	vector := make([]float64, int(size))
	for i, letter := range []byte(text) {
		vector[(i+int(letter))%len(vector)]++
	}
	send(w, map[string]any{"embedding": vector, "inputTextTokenCount": len(text)})
}

func chatCompletion(w http.ResponseWriter, body map[string]any) {
	send(w, map[string]any{"id": "c", "object": "chat.completion", "created": 1, "model": body["model"],
		"choices": []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": answerTo(body)}, "finish_reason": "stop"}},
		"usage":   map[string]int{"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}})
}

func gemini(w http.ResponseWriter, body map[string]any) {
	content := map[string]any{"role": "model", "parts": []any{map[string]any{"text": answerTo(body)}}}
	send(w, map[string]any{"candidates": []any{map[string]any{"index": 0, "content": content, "finishReason": "STOP"}},
		"usageMetadata": map[string]any{"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}})
}

// send writes a value as JSON.
func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
