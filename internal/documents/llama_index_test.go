package documents_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// llamaCase is a call of a reader, here and in LlamaIndex.
type llamaCase struct {
	Reader     string         `json:"reader"`
	Args       map[string]any `json:"args"`
	LoaderArgs map[string]any `json:"loader_args"`
}

// llamaResult is what LlamaIndex's reader returned.
type llamaResult struct {
	Error     string `json:"error"`
	Documents []struct {
		ID       string         `json:"id"`
		Text     string         `json:"text"`
		Metadata map[string]any `json:"metadata"`
	} `json:"documents"`
}

// TestLlamaIndex compares the readers with those of LlamaIndex: the same documents in the
// same order, with the same texts and metadata, and with filename_as_id the same ids.
//
// Differences on purpose are not part of it: docs/retrieval.md lists them.
func TestLlamaIndex(t *testing.T) {
	compareWithLlamaIndex(t, llamaCases(t))
}

// TestLlamaIndex_LoadDocuments compares the reader with LlamaIndex's as the example load_documents of QType
// (Python) calls it: with the 139 pages of the documentation in its source distribution.
func TestLlamaIndex_LoadDocuments(t *testing.T) {
	from := os.Getenv("QTYPE_ORIGINAL_EXAMPLES")
	if from == "" {
		t.Skip("SKIPPED: set QTYPE_ORIGINAL_EXAMPLES to the source distribution of QType (Python) 0.1.18, as a step of .ci/run does")
	}
	folder := filepath.Join(t.TempDir(), "docs") // LlamaIndex finds nothing below a hidden folder, such as that of a cache
	testkit.Must(t, os.CopyFS(folder, os.DirFS(filepath.Join(from, "docs"))))
	args := map[string]any{"input_dir": folder, "required_exts": []any{".md"}, "recursive": true}
	byName := maps.Clone(args)
	byName["filename_as_id"] = true
	if n := compareWithLlamaIndex(t, []llamaCase{{Reader: "directory", Args: args}, {Reader: "directory", Args: byName}}); n != 2*139 {
		t.Errorf("%d documents in two calls", n)
	}
}

// compareWithLlamaIndex compares calls, and returns the number of documents that are equal.
func compareWithLlamaIndex(t *testing.T, cases []llamaCase) (equal int) {
	t.Helper()
	folder := testkit.External(t, "QTYPE_LLAMA_INDEX", "a Python environment with llama-index-core and llama-index-readers-json")
	theirs := runLlamaIndex(t, filepath.Join(folder, "bin", "python"), cases)
	for i, c := range cases {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, c.Reader, c.Args, c.LoaderArgs)
		if theirs[i].Error != "" {
			if got.err == nil {
				t.Errorf("%s: no error, but %q in LlamaIndex", raw, theirs[i].Error)
			}
			continue
		}
		if got.err != nil || len(got.failed) > 0 || len(got.docs) != len(theirs[i].Documents) {
			t.Errorf("%s: %d documents, %v %v; %d in LlamaIndex", raw, len(got.docs), got.failed, got.err, len(theirs[i].Documents))
			continue
		}
		for k, want := range theirs[i].Documents {
			doc := got.docs[k]
			if d := cmp.Diff(want.Text, doc.Text); d != "" {
				t.Errorf("%s: text of document %d: %s", raw, k, d)
			}
			if d := cmp.Diff(want.Metadata, throughJSON(t, doc.Metadata)); d != "" {
				t.Errorf("%s: metadata of document %d: %s", raw, k, d)
			}
			if c.Args["filename_as_id"] == true && want.ID != doc.ID {
				t.Errorf("%s: id %q, want %q", raw, doc.ID, want.ID)
			}
			equal++
		}
	}
	t.Logf("%d calls compared, with %d documents", len(cases), equal)
	return equal
}

// llamaCases returns calls with every argument.
func llamaCases(t *testing.T) []llamaCase {
	files := tree()
	delete(files, "latin1.txt") // detected here, cut there
	delete(files, "drafts2/e.md")
	dir := folder(t, files)
	var cases []llamaCase
	for _, args := range []map[string]any{
		{}, {"recursive": true}, {"recursive": true, "required_exts": []any{".md"}}, {"required_exts": []any{".none"}},
		{"exclude_hidden": false}, {"exclude_hidden": false, "recursive": true}, {"exclude_empty": true},
		{"exclude": []any{"*.txt"}}, {"exclude": []any{"drafts", "*.tmp"}, "recursive": true}, {"exclude": []any{"[ab].*", "?.txt"}},
		{"exclude": []any{"deep/*"}, "recursive": true}, {"exclude": []any{"**/x.md"}, "recursive": true}, {"exclude": []any{"a"}, "recursive": true},
		{"filename_as_id": true, "recursive": true}, {"num_files_limit": int64(100)},
	} {
		args["input_dir"] = dir
		cases = append(cases, llamaCase{Reader: "directory", Args: args})
	}
	cases = append(cases, llamaCase{Reader: "directory", Args: map[string]any{"input_files": []any{filepath.Join(dir, "b.md"), filepath.Join(dir, "a.txt")}, "filename_as_id": true}},
		llamaCase{Reader: "directory", Args: map[string]any{"input_dir": filepath.Join(dir, "none")}})
	path := filepath.Join(dir, "sample.json")
	if err := os.WriteFile(path, []byte(sampleJSON), 0o666); err != nil {
		t.Fatal(err)
	}
	lines := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(lines, []byte("{\"a\": 1.0}\n[2, \"ü\"]\n\"text\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range []map[string]any{
		{}, {"clean_json": false}, {"ensure_ascii": true}, {"clean_json": false, "ensure_ascii": true},
		{"levels_back": int64(0)}, {"levels_back": int64(2)}, {"levels_back": int64(0), "collapse_length": int64(20)}, {"levels_back": int64(1), "collapse_length": int64(1000)},
	} {
		cases = append(cases, llamaCase{Reader: "json", Args: args, LoaderArgs: map[string]any{"input_file": path, "extra_info": map[string]any{"k": "v"}}})
	}
	return append(cases, llamaCase{Reader: "json", Args: map[string]any{"is_jsonl": true}, LoaderArgs: map[string]any{"input_file": lines}})
}

// runLlamaIndex calls LlamaIndex's readers.
func runLlamaIndex(t *testing.T, python string, cases []llamaCase) []llamaResult {
	t.Helper()
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	command := exec.CommandContext(t.Context(), python, "testdata/read_documents.py")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &out, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, problems.Bytes())
	}
	var results []llamaResult
	// LlamaIndex prints about failed files before the result.
	if err := json.Unmarshal(out.Bytes()[max(0, bytes.Index(out.Bytes(), []byte("[{"))):], &results); err != nil || len(results) != len(cases) {
		t.Fatalf("%d results, %v: %s", len(results), err, out.Bytes())
	}
	return results
}

// throughJSON returns metadata as JSON represents it.
func throughJSON(t *testing.T, metadata map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(metadata)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}
