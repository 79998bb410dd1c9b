package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/model"
)

// embed makes an embedding model of the server, with retries.
func (s server) embed(t *testing.T, name string, params map[string]any) model.Embedder {
	t.Helper()
	known, _ := catalogue.Lookup("openai", name)
	made, err := openai.NewEmbedder(openai.Config{Info: model.Info{ID: "vec", Provider: "openai", Name: name, Dimensions: 2, Known: known}, BaseURL: s.URL + "/v1",
		Key: "sk-proj-very-secret-0123456789", Credential: "OPENAI_API_KEY", HTTP: s.Client(), Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return model.WithBatches(made, model.Batch{}, model.CallPolicy{Timeout: time.Minute, MaxAttempts: 3, InitialDelay: time.Millisecond, MaxDelay: 2 * time.Second})
}

// inBase64 encodes a vector as OpenAI does.
func inBase64(numbers ...float32) string {
	var raw []byte
	for _, x := range numbers {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	text, _ := json.Marshal(base64.StdEncoding.EncodeToString(raw)) // a string always encodes
	return string(text)
}

func TestEmbeddings(t *testing.T) {
	for name, body := range map[string]string{
		"numbers":          `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1]},{"object":"embedding","index":1,"embedding":[2,3]}],"usage":{"prompt_tokens":7,"total_tokens":7}}`,
		"base64":           fmt.Sprintf(`{"data":[{"index":0,"embedding":%s},{"index":1,"embedding":%s}],"usage":{"prompt_tokens":7}}`, inBase64(0.5, -1), inBase64(2, 3)),
		"in another order": `{"data":[{"index":1,"embedding":[2,3]},{"index":0,"embedding":[0.5,-1]}],"usage":{"prompt_tokens":7}}`,
		"without indexes":  `{"data":[{"embedding":[0.5,-1]},{"embedding":[2,3]}],"usage":{"prompt_tokens":7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, status(200, body))
			got, usage, err := s.embed(t, "nomic-embed-text", nil).Embed(t.Context(), []string{"a", "b"})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([][]float32{{0.5, -1}, {2, 3}}, got); d != "" {
				t.Error(d)
			}
			if usage != (model.Usage{Input: 7}) {
				t.Errorf("usage %+v", usage)
			}
			if d := cmp.Diff(map[string]any{"model": "nomic-embed-text", "input": []any{"a", "b"}}, s.Requests()[0].Body); d != "" {
				t.Error(d)
			}
			if s.Requests()[0].Path != "/v1/embeddings" || s.Requests()[0].Header.Get("Authorization") != "Bearer sk-proj-very-secret-0123456789" {
				t.Errorf("called %s with %v", s.Requests()[0].Path, s.Requests()[0].Header)
			}
		})
	}
}

// Only models that accept the parameter get the dimensions; other requests have only what
// the document sets.
func TestEmbedder_SendsDimensions(t *testing.T) {
	const body = `{"data":[{"index":0,"embedding":[1,0]}]}`
	for name, tt := range map[string]struct {
		model  string
		params map[string]any
		want   map[string]any
	}{
		"by itself":      {"text-embedding-3-small", nil, map[string]any{"dimensions": 2.0}},
		"an older model": {"text-embedding-ada-002", nil, map[string]any{}},
		"by the document": {"jina-v3", map[string]any{"dimensions": 2, "task": "retrieval.query", "encoding_format": "base64"},
			map[string]any{"dimensions": 2.0, "task": "retrieval.query", "encoding_format": "base64"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, status(200, body))
			if _, _, err := s.embed(t, tt.model, tt.params).Embed(t.Context(), []string{"a"}); err != nil {
				t.Fatal(err)
			}
			tt.want["model"], tt.want["input"] = tt.model, []any{"a"}
			if d := cmp.Diff(tt.want, s.Requests()[0].Body); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEmbedder_InvalidResponses(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
		calls  int
	}{
		"401":           {status(401, `{"error":{"message":"Incorrect API key provided: sk-proj-very-secret-0123456789"}}`), "model vec: HTTP 401: the server rejected the credential OPENAI_API_KEY: Incorrect API key provided: *** (URL/v1)", 1},
		"429":           {status(429, busy), "model vec: HTTP 429: Rate limit reached (URL/v1), tried 3 times", 3},
		"page":          {raw2(200, "text/html", "<html>"), "model vec: the response is a web page instead of JSON; check base_url (URL/v1)", 1},
		"a chat":        {status(200, hello), "model vec: invalid list of embeddings: no data (URL/v1)", 1},
		"too few":       {status(200, `{"data":[]}`), "model vec: invalid list of embeddings: 0 vectors for 1 texts (URL/v1)", 1},
		"wrong index":   {status(200, `{"data":[{"index":4,"embedding":[1,2]}]}`), "model vec: invalid list of embeddings: index 4 is not one of 1 texts, or is repeated (URL/v1)", 1},
		"no numbers":    {status(200, `{"data":[{"embedding":{"a":1}}]}`), "model vec: invalid list of embeddings: an embedding is not a list of numbers (URL/v1)", 1},
		"null":          {status(200, `{"data":[{"embedding":null}]}`), "model vec: invalid list of embeddings: an embedding is not a list of numbers (URL/v1)", 1},
		"no base64":     {status(200, `{"data":[{"embedding":"a b"}]}`), "model vec: invalid list of embeddings: an embedding is neither a list of numbers nor float32 in base64 (URL/v1)", 1},
		"other length":  {status(200, `{"data":[{"embedding":[1,2,3]}]}`), "model vec: the vectors have 3 dimensions, but the document declares 2", 1},
		"half a vector": {status(200, `{"data":[{"embedding":`+inBase64(1)+`}]}`), "model vec: the vectors have 1 dimensions, but the document declares 2", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answer)
			_, _, err := s.embed(t, "m", nil).Embed(t.Context(), []string{"a"})
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, which is not a model error", err)
			}
			if got := strings.ReplaceAll(e.Error(), s.URL, "URL"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if s.Calls() != tt.calls {
				t.Errorf("%d calls, want %d", s.Calls(), tt.calls)
			}
		})
	}
}
