package rerank_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/spec"
)

// call is what a server received.
type call struct {
	path, auth, body string
}

// serve starts a server that gives answers in order, the last one again and again. An
// answer that begins with a number is the status of an error.
func serve(t *testing.T, answers ...string) (url string, calls *[]call) {
	t.Helper()
	calls = new([]call)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := answers[min(len(*calls), len(answers)-1)]
		*calls = append(*calls, call{r.URL.Path, r.Header.Get("Authorization"), string(body)})
		if status, rest, ok := strings.Cut(answer, " "); ok && len(status) == 3 {
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader(map[string]int{"400": 400, "401": 401, "429": 429, "503": 503}[status])
			answer = rest
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// environment returns a Getenv with these variables only.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// options are for the server of a test.
func options(t *testing.T, vars map[string]string) rerank.Options {
	t.Helper()
	client := rerank.NewClient()
	t.Cleanup(client.CloseIdleConnections)
	return rerank.Options{AWS: awsauthtest.Builder, HTTP: client, Getenv: environment(vars)}
}

func TestServices(t *testing.T) {
	key := &spec.BearerTokenAuth{Token: spec.NewSecret("secret-key-0123456789")}
	key.ID = "account"
	for name, c := range map[string]struct {
		method string
		args   map[string]any
		answer []string
		path   string
		body   string
		want   string // the choices or the error
		tokens int
		calls  int
	}{
		"cohere": {"cohere", map[string]any{"max_tokens_per_doc": 100},
			[]string{`{"results":[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.2}],"id":"x","meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1},"tokens":{"input_tokens":17}}}`},
			"/v2/rerank", `{"model":"rerank-v3.5","query":"go <3","documents":["a","b","c"],"top_n":2,"max_tokens_per_doc":100}`, "2:0.9 0:0.2", 17, 1},
		"jina": {"jina", map[string]any{"model_id": "small"},
			[]string{`{"model":"small","object":"list","usage":{"total_tokens":9},"results":[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":0.7}]}`},
			"/v1/rerank", `{"model":"small","query":"go <3","documents":["a","b","c"],"top_n":2,"return_documents":false}`, "0:0.7 1:0.5", 9, 1},
		"tei": {"tei", nil, []string{`[{"index":1,"score":0.99},{"index":0,"score":0.1},{"index":2,"score":0.2}]`},
			"/rerank", `{"query":"go <3","texts":["a","b","c"],"truncate":true}`, "1:0.99 2:0.2", 0, 1},
		"batches": {"jina", map[string]any{"batch_size": 2}, []string{`{"usage":{"total_tokens":4},"results":[{"index":0,"relevance_score":0.1},{"index":1,"relevance_score":0.3}]}`, `{"usage":{"total_tokens":2},"results":[{"index":0,"relevance_score":0.2}]}`},
			"/v1/rerank", "", "1:0.3 2:0.2", 6, 2},
		"retried":      {"cohere", nil, []string{`429 {"message":"slow down"}`, `503 busy`, `{"results":[{"index":0,"relevance_score":1}]}`}, "/v2/rerank", "", "0:1", 0, 3},
		"rejected":     {"cohere", nil, []string{`401 {"message":"invalid api token: secret-****"}`}, "/v2/rerank", "", "error: SERVER/v2/rerank: HTTP 401: invalid api token: ***", 0, 1},
		"detail":       {"tei", nil, []string{`400 {"error":{"message":"too\nlong"}}`}, "/rerank", "", "error: SERVER/rerank: HTTP 400: too long", 0, 1},
		"web page":     {"jina", nil, []string{`<html>`}, "/v1/rerank", "", "error: SERVER/v1/rerank: the answer is not that of a reranker; check base_url", 0, 1},
		"other JSON":   {"jina", nil, []string{`{"object":"list"}`}, "/v1/rerank", "", "error: SERVER/v1/rerank: the answer is not that of a reranker; check base_url", 0, 1},
		"wrong index":  {"tei", nil, []string{`[{"index":3,"score":1}]`}, "/rerank", "", "error: SERVER/rerank: the server returned the index 3 for 3 documents", 0, 1},
		"twice":        {"tei", nil, []string{`[{"index":1,"score":1},{"index":1,"score":0}]`}, "/rerank", "", "error: SERVER/rerank: the server returned the index 1 twice", 0, 1},
		"always fails": {"tei", nil, []string{`503 busy`}, "/rerank", "", "error: SERVER/rerank: HTTP 503: busy (after 4 attempts)", 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, calls := serve(t, c.answer...)
			args := map[string]any{"base_url": url + "/"}
			for k, v := range c.args {
				args[k] = v
			}
			r, err := rerank.New(&spec.Reranker{Method: c.method, Args: args, Auth: spec.Ref[spec.Auth]{To: key}}, options(t, nil))
			if err != nil {
				t.Fatal(err)
			}
			got, usage, err := rerank.Rank(t.Context(), r, rerank.Request{Query: "go <3", Items: texts("a", "b", "c"), Limit: 2})
			text := show(got)
			if err != nil {
				text = "error: " + err.Error()
			}
			if want := strings.ReplaceAll(c.want, "SERVER", url); text != want || usage.Input != c.tokens || len(*calls) != c.calls {
				t.Errorf("got %s, %d tokens, %d calls\nwant %s, %d, %d", text, usage.Input, len(*calls), want, c.tokens, c.calls)
			}
			first := (*calls)[0]
			if first.path != c.path || first.auth != "Bearer secret-key-0123456789" || c.body != "" && first.body != c.body {
				t.Errorf("the server received %+v", first)
			}
		})
	}
}

func TestNew_Credentials(t *testing.T) {
	key := &spec.APIKeyAuth{APIKey: spec.NewSecret("k"), Host: "http://other"}
	key.ID = "account"
	url, calls := serve(t, `{"results":[]}`)
	for name, c := range map[string]struct {
		step *spec.Reranker
		vars map[string]string
		want string // the error, or the credentials that the server receives
	}{
		"no key":                 {&spec.Reranker{Method: "jina"}, nil, "error: no key for https://api.jina.ai: set JINA_API_KEY, or add an auth"},
		"own server":             {&spec.Reranker{Method: "jina", Args: map[string]any{"base_url": url}}, map[string]string{"JINA_API_KEY": "k"}, ""},
		"server of another host": {&spec.Reranker{Method: "cohere", Args: map[string]any{"base_url": url}, Auth: spec.Ref[spec.Auth]{To: key}}, nil, "error: auth account belongs to http://other, but base_url is " + url},
		"version in base_url":    {&spec.Reranker{Method: "jina", Args: map[string]any{"base_url": url + "/v1"}}, nil, ""},
		"wrong argument":         {&spec.Reranker{Method: "jina", Args: map[string]any{"model": "x"}}, nil, "error: args: model: unknown key"},
		"unknown method":         {&spec.Reranker{Method: "jinn"}, nil, "error: method jinn"},
	} {
		t.Run(name, func(t *testing.T) {
			*calls = nil
			r, err := rerank.New(c.step, options(t, c.vars))
			if err == nil {
				_, _, err = rerank.Rank(t.Context(), r, rerank.Request{Query: "q", Items: texts("a")})
			}
			switch {
			case err != nil && (c.want == "" || !strings.HasPrefix("error: "+err.Error(), c.want)):
				t.Error(err)
			case err == nil && ((*calls)[0].auth != c.want || (*calls)[0].path != "/v1/rerank"):
				t.Errorf("%+v", *calls)
			}
		})
	}
}

// TestBedrock compares the request with the one that the AWS SDK for Python sends.
func TestBedrock(t *testing.T) {
	recorded, err := os.ReadFile("testdata/bedrock_request.json")
	if err != nil {
		t.Fatal(err)
	}
	url, calls := serve(t, `{"results":[{"index":2,"relevanceScore":0.25},{"index":0,"relevanceScore":0.75}]}`)
	vars := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": url}
	r, err := rerank.NewBedrock(&spec.BedrockReranker{ModelID: "cohere.rerank-v3-5:0"}, options(t, vars))
	if err != nil {
		t.Fatal(err)
	}
	items := []rerank.Item{jsonItem(`{"isbn":"a1","title":"Go in Action"}`), jsonItem(`{"isbn":"a2","title":"Python Tricks"}`), jsonItem(`{"isbn":"a3","title":"Rust Book"}`)}
	got, _, err := rerank.Rank(t.Context(), r, rerank.Request{Query: "go", Items: items, Limit: 2})
	if show(got) != "2:0.25 0:0.75" || err != nil { // the order of the service
		t.Errorf("got %s, %v", show(got), err)
	}
	sent := (*calls)[0]
	var want bytes.Buffer
	if err := json.Compact(&want, recorded); err != nil {
		t.Fatal(err)
	}
	if sent.body != want.String() || sent.path != "/rerank" {
		t.Errorf("%s\n got %s\nwant %s", sent.path, sent.body, want.String())
	}
	if !strings.HasPrefix(sent.auth, "AWS4-HMAC-SHA256 Credential=a/") || !strings.Contains(sent.auth, "/us-east-1/bedrock/aws4_request") {
		t.Error(sent.auth)
	}
}

func TestBedrock_Requests(t *testing.T) {
	url, calls := serve(t, `{"results":[]}`)
	auth := &spec.AWSAuth{AccessKeyID: spec.NewSecret("a"), SecretAccessKey: spec.NewSecret("b"), Region: "us-gov-west-1"}
	for id, want := range map[string]string{
		"rerank":               "arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/rerank",
		"arn:aws:bedrock:x::y": "arn:aws:bedrock:x::y",
	} {
		*calls = nil
		r, err := rerank.NewBedrock(bedrockStep(auth, id), options(t, map[string]string{"AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": url}))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := rerank.Rank(t.Context(), r, rerank.Request{Query: "q", Items: texts("a plain text")}); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{want, `"inlineDocumentSource":{"type":"TEXT","textDocument":{"text":"a plain text"}}`, `"numberOfResults":1`} {
			if !strings.Contains((*calls)[0].body, part) {
				t.Errorf("%s has no %s", (*calls)[0].body, part)
			}
		}
	}
	r, err := rerank.NewBedrock(bedrockStep(auth, "x"), options(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := rerank.Rank(t.Context(), r, rerank.Request{Items: make([]rerank.Item, 1001)}); err == nil || !strings.Contains(err.Error(), "at most 1000") {
		t.Error(err)
	}
}

func TestCallError(t *testing.T) {
	url, _ := serve(t, `400 {"detail":"no"}`)
	r, err := rerank.New(&spec.Reranker{Method: "tei", Args: map[string]any{"base_url": url}}, options(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = rerank.Rank(t.Context(), r, rerank.Request{Query: "q", Items: texts("a")})
	var failure *rerank.CallError
	if !errors.As(err, &failure) || failure.Status != 400 || failure.Message != "no" || failure.Attempts != 1 {
		t.Errorf("%#v", err)
	}
}

// TestMethods checks that each row of the table has a builder, and what its struct of
// arguments declares as defaults.
func TestMethods(t *testing.T) {
	for _, row := range spec.RankMethods() {
		args := row.Args()
		needed := map[string]any{}
		if row.Name == "bedrock" {
			needed["model_id"] = "x"
		}
		if problems := spec.DecodeArguments(needed, args); len(problems) > 0 {
			t.Errorf("%s: the defaults are invalid: %v", row.Name, problems[0])
		}
		_, err := rerank.New(&spec.Reranker{Method: row.Name, Args: needed}, options(t, map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "COHERE_API_KEY": "k", "JINA_API_KEY": "k"}))
		if err != nil && (row.Name != "model" || err.Error() != "the model is not linked") {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
}

// bedrockStep is a step with an identity and a model.
func bedrockStep(auth *spec.AWSAuth, id string) *spec.BedrockReranker {
	return &spec.BedrockReranker{Auth: spec.Ref[*spec.AWSAuth]{To: auth}, ModelID: id}
}
