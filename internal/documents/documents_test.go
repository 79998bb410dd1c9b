package documents_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/documents"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// testEnv is the environment of an application without credentials.
func testEnv() documents.Env {
	return documents.Env{HTTP: func(url string, allowPrivate bool) (*http.Client, error) {
		return tool.Client(tool.Service{Tool: "read", URL: url, AllowPrivate: allowPrivate}, tool.Options{})
	}}
}

// result is what a reader emitted.
type result struct {
	docs   []*documents.Document
	failed []string // errors of documents
	err    error    // of the source
}

// names returns the names of the documents.
func (r result) names() []string {
	var names []string
	for _, d := range r.docs {
		names = append(names, d.Name)
	}
	return names
}

// read runs a reader.
func read(t testing.TB, module string, args, loaderArgs map[string]any) result {
	t.Helper()
	return readIn(t.Context(), module, args, loaderArgs, testEnv())
}

func readIn(ctx context.Context, module string, args, loaderArgs map[string]any, env documents.Env) result {
	var r result
	source, err := documents.Open(&spec.DocumentSource{ReaderModule: module, Args: args, LoaderArgs: loaderArgs}, env)
	if err != nil {
		return result{err: err}
	}
	r.err = source.Read(ctx, func(doc *documents.Document, failed error) error {
		if failed != nil {
			r.failed = append(r.failed, failed.Error())
			return nil
		}
		r.docs = append(r.docs, doc)
		return nil
	})
	return r
}

// folder writes files and returns their folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOpen_EveryReader: each row of the table has what reads, and its name opens it.
func TestOpen_EveryReader(t *testing.T) {
	for _, row := range spec.Readers() {
		_, err := documents.Open(&spec.DocumentSource{ReaderModule: row.Name}, testEnv())
		if err != nil && strings.Contains(err.Error(), "unknown reader") {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
}

func TestOpen_Errors(t *testing.T) {
	for want, c := range map[string]struct {
		module string
		args   map[string]any
	}{
		`unknown reader "x.Y"; known are directory, json`:        {module: "x.Y"},
		"args: neither input_dir nor input_files is set":         {module: "directory"},
		"args: recursiv: unknown key":                            {module: "directory", args: map[string]any{"input_dir": ".", "recursiv": true}},
		"use the reader remote, s3, gcs or azure_blob for s3://": {module: "directory", args: map[string]any{"input_dir": "s3://bucket/docs"}},
		`loader_args: missing key "input_file"`:                  {module: "json"},
		"a.md is not a remote address":                           {module: "remote", args: map[string]any{"url": "a.md"}},
		`"a/b" is not the name of a bucket`:                      {module: "s3", args: map[string]any{"bucket": "a/b"}},
		"ftp://a.example is not an http or https address":        {module: "web", args: map[string]any{"urls": []any{"ftp://a.example"}}},
		"urls is empty":                   {module: "web", args: map[string]any{"urls": []any{}}},
		"connection: ":                    {module: "sql", args: map[string]any{"connection": "nosql://x", "query": "select 1"}},
		"query: ":                         {module: "sql", args: map[string]any{"connection": "sqlite:///x.db", "query": "select 1; select 2"}},
		`is not datasets/OWNER/NAME/FILE`: {module: "huggingface", args: nil},
	} {
		loader := map[string]any(nil)
		if c.module == "huggingface" {
			loader = map[string]any{"path": "datasets/a"}
		}
		if got := read(t, c.module, c.args, loader); got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("got %v, want %q", got.err, want)
		}
	}
}

// TestOpen_Variables: an input with the name of an argument replaces it, others do not.
func TestOpen_Variables(t *testing.T) {
	one, other := folder(t, map[string]string{"a.txt": "A"}), folder(t, map[string]string{"b.txt": "B"})
	env := testEnv()
	env.Variables = map[string]any{"input_dir": other, "question": "why?"}
	got := readIn(t.Context(), "directory", map[string]any{"input_dir": one}, nil, env)
	if got.err != nil || !slices.Equal(got.names(), []string{"b.txt"}) {
		t.Errorf("got %v %v", got.names(), got.err)
	}
	if got := readIn(t.Context(), "directory", map[string]any{"input_dir": one}, map[string]any{"num_workers": 4.0, "show_progress": true}, testEnv()); got.err != nil || !slices.Equal(got.names(), []string{"a.txt"}) {
		t.Errorf("loader_args of LlamaIndex: got %v %v", got.names(), got.err)
	}
	env.Variables = map[string]any{"input_dir": 5.0}
	if got := readIn(t.Context(), "directory", map[string]any{"input_dir": one}, nil, env); got.err == nil || !strings.Contains(got.err.Error(), "input_dir: expected text, got a number") {
		t.Errorf("got %v", got.err)
	}
}

// mustOpen opens a reader.
func mustOpen(t testing.TB, module string, args map[string]any) documents.Source {
	t.Helper()
	source, err := documents.Open(&spec.DocumentSource{ReaderModule: module, Args: args}, testEnv())
	if err != nil {
		t.Fatal(err)
	}
	return source
}
