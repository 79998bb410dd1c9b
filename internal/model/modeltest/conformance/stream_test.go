package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go/eventstream"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// grows are the fields of a stream whose pieces are joined.
var grows = []string{"text", "content", "reasoning", "reasoning_content", "thinking", "delta", "signature", "data", "redactedContent", "encrypted_content", "thoughtSignature", "thought_signature", "payload"}

// joined returns the pieces of a stream one after another.
func joined(v any, name string, b *strings.Builder) {
	switch v := v.(type) {
	case string:
		if slices.Contains(grows, name) {
			b.WriteString(v)
		}
	case []any:
		for _, child := range v {
			joined(child, name, b)
		}
	case object:
		for _, key := range slices.Sorted(func(yield func(string) bool) {
			for k := range v {
				if !yield(k) {
					return
				}
			}
		}) {
			joined(v[key], key, b)
		}
	}
}

// stream requests an answer as a stream, and returns its records.
func (p *rawClient) stream() (records []object) {
	p.t.Helper()
	body, path := p.request(), p.path()
	switch p.wire {
	case "gemini":
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent", 1) + "?alt=sse"
	case "converse":
		path += "-stream"
	default:
		body["stream"] = true
		path = strings.Replace(path, ":rawPredict", ":streamRawPredict", 1)
	}
	raw, err := json.Marshal(body)
	testkit.Must(p.t, err)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.server.URL+"/"+p.scenario+"/"+p.name+path, bytes.NewReader(raw))
	testkit.Must(p.t, err)
	req.Header.Set("anthropic-version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	testkit.Must(p.t, err)
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%d: %s", resp.StatusCode, got)
	}
	if p.wire == "converse" {
		return p.frames(got)
	}
	for line := range strings.Lines(string(got)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if strings.HasPrefix(line, "{") {
			var record object
			testkit.Must(p.t, json.Unmarshal([]byte(line), &record))
			records = append(records, record)
		}
	}
	return records
}

// frames reads the event stream of AWS.
func (p *rawClient) frames(raw []byte) (records []object) {
	for r := bytes.NewReader(raw); ; {
		m, err := eventstream.NewDecoder().Decode(r, nil)
		if errors.Is(err, io.EOF) {
			return records
		}
		testkit.Must(p.t, err)
		var record object
		testkit.Must(p.t, json.Unmarshal(m.Payload, &record))
		records = append(records, record)
	}
}

// TestServer_Streams: a stream has all texts and all that is opaque of the answer that is sent at once.
func TestServer_Streams(t *testing.T) {
	opaque := regexp.MustCompile(`cWMxC[0-9A-Za-z+/=]+`)
	for _, kind := range kinds {
		for _, scenario := range conformance.Scenarios() {
			t.Run(strings.Join([]string{kind.name, kind.wire, scenario.Name}, "/"), func(t *testing.T) {
				p := kind
				p.t, p.server, p.scenario, p.tools = t, conformance.New(t), scenario.Name, true
				p.say("Where are order 7 and 8?")
				status, answer := p.post(p.request())
				if status != http.StatusOK {
					t.Fatalf("%d: %s", status, message(answer))
				}
				whole, err := json.Marshal(answer)
				testkit.Must(t, err)
				records := p.stream()
				var b strings.Builder
				for _, r := range records {
					joined(r, "", &b)
				}
				for _, want := range append(opaque.FindAllString(string(whole), -1), regexp.MustCompile(`note [0-9A-Za-z]{9}`).FindAllString(string(whole), -1)...) {
					if !strings.Contains(b.String(), want) {
						t.Errorf("the stream has no %s:\n%s", want, b.String())
					}
				}
				if calls := strings.Count(string(whole), `"find_order"`); calls > 0 {
					all, err := json.Marshal(records)
					testkit.Must(t, err)
					if strings.Count(string(all), `"find_order"`) < calls {
						t.Errorf("the stream has not all %d calls", calls)
					}
				}
			})
		}
	}
}

// TestServer_DropBlock: a client that requests it keeps a conversation whose beginning has changed, and learns what
// the model does not see.
func TestServer_DropBlock(t *testing.T) {
	p := opus
	p.t, p.server, p.scenario, p.tools = t, conformance.New(t), "tool", true
	p.header = http.Header{"Anthropic-Beta": {"thinking-binding-controls-2026-08-01"}}
	p.body = object{"thinking": object{"type": "adaptive", "block_binding": object{"prefix_mismatch_behavior": "drop_block"}}}
	p.turn("Where is order 7?")
	p.system = "Be brief. It is noon."
	p.say("Thanks.")
	_, status, answer := p.call()
	dropped, _ := answer["input_transformations"].([]any)
	if status != http.StatusOK || len(dropped) != 2 {
		t.Fatalf("got %d, %v", status, answer)
	}
	if first := dropped[0].(object); first["type"] != "thinking_dropped" || first["path"] != "messages.1.content.0" || first["reason"] != "prefix_binding_mismatch" {
		t.Errorf("got %v", first)
	}
}

// TestServer_Replica: another process knows what this one has issued.
func TestServer_Replica(t *testing.T) {
	for _, kind := range kinds {
		p := kind
		p.t, p.server, p.scenario, p.tools = t, conformance.New(t), "steps", true
		p.say("Where are order 7 and 8?")
		if calls, status, answer := p.call(); !calls {
			t.Fatalf("%s: %d: %s", p.name, status, message(answer))
		}
		p.server = conformance.New(t)
		if _, status, answer := p.call(); status != http.StatusOK || len(violations(p.server)) > 0 {
			t.Errorf("%s: %d: %s %v", p.name, status, message(answer), violations(p.server))
		}
	}
}
