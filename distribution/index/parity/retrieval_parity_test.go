package parity_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

var updateRetrieval = flag.Bool("update-retrieval", false, "rewrite testdata/retrieval/recorded.json from QType (Python)")

// originalVariable is the environment variable with the path of a Python in which QType
// (Python) is installed, of more than 1 GB, so that the CI does not have it:
//
//	UV_LINK_MODE=copy uv pip install 'qtype[interpreter]==0.1.18' 'llama-cloud<0.2'
const originalVariable = "QTYPE_ORIGINAL"

const (
	retrievalFolder   = "testdata/retrieval"
	retrievalRecorded = retrievalFolder + "/recorded.json"
)

// retrievalRun is a run of a flow, and which of its rows' values are compared.
type retrievalRun struct {
	Flow   string           `json:"flow"`
	Inputs []map[string]any `json:"inputs"`
	key    string           // the chunk or document of each row; empty for answers
	added  []string         // keys of the metadata that QType (Python) does not have
}

// retrievalExamples are the documents, with the runs of each.
func retrievalExamples() map[string][]retrievalRun {
	ask := func(questions ...string) retrievalRun {
		run := retrievalRun{Flow: "ask"}
		for _, q := range questions {
			message := map[string]any{"role": "user", "blocks": []any{map[string]any{"type": "text", "content": q}}}
			run.Inputs = append(run.Inputs, map[string]any{"message": message})
		}
		return run
	}
	places := []string{"char_start", "char_end", "line_start", "line_end"}
	return map[string][]retrievalRun{
		"notes": {{Flow: "read_notes", key: "note"}},
		"recipes": {{Flow: "fill", key: "indexed", added: append(places, "heading_path")},
			ask("Which soup has carrot and onion?", "And which one has café honey?")},
		"dataset": {{Flow: "fill", key: "indexed", added: append(places, "file_path", "file_name")}, ask("What is the answer about lentil stew?")},
	}
}

// TestRetrieval_Recorded runs the examples and compares documents, chunks, requests to the
// model, answers and search results with those of QType (Python) 0.1.18. What differs on
// purpose is in docs/retrieval.md.
func TestRetrieval_Recorded(t *testing.T) {
	var want map[string][]string
	testkit.Must(t, json.Unmarshal([]byte(testkit.ReadFile(t, retrievalRecorded)), &want))
	for name, runs := range retrievalExamples() {
		t.Run(name, func(t *testing.T) {
			server, folder := startRetrieval(t)
			app, err := qtype.Open(distribution.With(t.Context()), filepath.Join(retrievalFolder, name+".qtype.yaml"), qtype.WithEphemeral())
			testkit.Must(t, err)
			t.Cleanup(func() { _ = app.Close(context.Background()) })
			results := retrieval{folder: folder, chunks: map[string]string{}}
			for _, r := range runs {
				var rows []map[string]any
				inputs := r.Inputs
				if len(inputs) == 0 {
					inputs = []map[string]any{{}}
				}
				for _, row := range run(t, app, r.Flow, "one", inputs) {
					if row.Err != nil {
						t.Fatal(row.Err)
					}
					values := map[string]any{}
					for variable, v := range row.Outputs() {
						values[variable.ID] = value.ToGo(v)
					}
					rows = append(rows, values)
				}
				results.add(t, r, rows, true)
			}
			results.addChats(server.chats)
			if d := cmp.Diff(want[name], results.lines); d != "" {
				t.Errorf("(-QType (Python) +qtype):\n%s", d)
			}
		})
	}
}

// TestRetrieval_Original runs the examples with QType (Python) itself and compares with the
// recorded results, which it rewrites with -update-retrieval.
func TestRetrieval_Original(t *testing.T) {
	python := os.Getenv(originalVariable)
	if python == "" {
		t.Skipf("SKIPPED, NOT TESTED: set %s to a Python with qtype[interpreter]", originalVariable)
	}
	got := map[string][]string{}
	for name, runs := range retrievalExamples() {
		server, folder := startRetrieval(t)
		document := testkit.ReadFile(t, filepath.Join(retrievalFolder, name+".qtype.yaml"))
		// Its reader takes the address from HF_ENDPOINT.
		document = regexp.MustCompile(`(?m)^ *args: \{endpoint: .*\n`).ReplaceAllString(document, "")
		results := retrieval{folder: folder, chunks: map[string]string{}}
		for i, rows := range runOriginal(t, python, testkit.WriteFile(t, "app.qtype.yaml", document), folder, runs) {
			results.add(t, runs[i], rows, false)
		}
		results.addChats(server.chats)
		got[name] = results.lines
	}
	if *updateRetrieval {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		testkit.Must(t, encoder.Encode(got))
		testkit.Must(t, os.WriteFile(retrievalRecorded, out.Bytes(), 0o600))
		return
	}
	var want map[string][]string
	testkit.Must(t, json.Unmarshal([]byte(testkit.ReadFile(t, retrievalRecorded)), &want))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-recorded +QType (Python)):\n%s", d)
	}
}

// startRetrieval writes the documents, starts the servers and sets the environment.
func startRetrieval(t *testing.T) (server *retrievalServer, folder string) {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	retrievalFiles(t, folder)
	server = startRetrievalServer(t, folder)
	for name, v := range map[string]string{"RETRIEVAL_FOLDER": folder, "RETRIEVAL_QDRANT": server.URL, "RETRIEVAL_HUB": server.URL, "HF_ENDPOINT": server.URL,
		"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": server.URL + "/v1", "OPENAI_API_BASE": server.URL + "/v1"} {
		t.Setenv(name, v)
	}
	return server, folder
}

// runOriginal runs flows with QType (Python) and returns the rows of each.
func runOriginal(t *testing.T, python, document, folder string, runs []retrievalRun) [][]map[string]any {
	t.Helper()
	var in, out, problems bytes.Buffer
	for _, r := range runs {
		testkit.Must(t, json.NewEncoder(&in).Encode(r))
	}
	command := exec.CommandContext(t.Context(), python, filepath.Join(retrievalFolder, "original.py"), document)
	command.Env = append(os.Environ(), "HF_HOME="+filepath.Join(folder, "hub"), "HF_HUB_DISABLE_XET=1", "HF_HUB_DISABLE_TELEMETRY=1")
	command.Stdin, command.Stdout, command.Stderr = &in, &out, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, problems.Bytes())
	}
	var all [][]map[string]any
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var rows []map[string]any
		testkit.Must(t, decoder.Decode(&rows))
		all = append(all, rows)
	}
	return all
}

// retrieval collects the results of an example as lines, without what differs in each run.
type retrieval struct {
	folder string
	chunks map[string]string // a line for each chunk, by its id
	lines  []string
}

// record is a document, a chunk or a search result of either program.
type record struct {
	Content    any            `json:"content"`
	FileID     string         `json:"file_id"`
	FileName   string         `json:"file_name"`
	URI        *string        `json:"uri"`
	Type       string         `json:"type"`
	ChunkID    string         `json:"chunk_id"`
	DocumentID string         `json:"document_id"`
	Vector     []float32      `json:"vector"`
	Metadata   map[string]any `json:"metadata"`
}

// add adds the rows of a run. Chunks are sorted, because those of QType (Python) leave a
// step with workers in any order. Ours have more metadata.
func (x *retrieval) add(t *testing.T, r retrievalRun, rows []map[string]any, ours bool) {
	t.Helper()
	for _, row := range rows {
		if row["error"] != nil {
			t.Fatalf("flow %s: %v", r.Flow, row["error"])
		}
		if r.key == "" {
			x.addAnswer(t, row, ours)
			continue
		}
		one := convert[record](t, row[r.key])
		if one.ChunkID == "" {
			x.lines = append(x.lines, x.document(one))
			continue
		}
		if ours {
			removeAdded(t, one.Metadata, r.added)
		}
		x.chunks[one.ChunkID] = x.chunk(t, one)
	}
	if r.key != "" && len(x.chunks) > 0 {
		x.lines = append(x.lines, slices.Sorted(maps.Values(x.chunks))...)
	}
}

// removeAdded removes keys that only this program writes.
func removeAdded(t *testing.T, metadata map[string]any, added []string) {
	t.Helper()
	for _, key := range added {
		if _, ok := metadata[key]; !ok && key != "heading_path" { // the beginning of a text has no heading
			t.Errorf("the metadata has no %s: %v", key, metadata)
		}
		delete(metadata, key)
	}
}

// document returns the line of a document.
func (x *retrieval) document(d record) string {
	return x.relative(fmt.Sprintf("%s %s %v %s %s %s", d.FileID, d.FileName, d.URI, d.Type, digest(d.Content), metadataLine(d.Metadata)))
}

// chunk returns the line of a chunk: with the number from which its id follows, because the
// ids of documents depend on the folder, or are random in QType (Python).
func (x *retrieval) chunk(t *testing.T, c record) string {
	t.Helper()
	namespace, number := uuid.MustParse("12345678-1234-5678-1234-567812345678"), 0
	for uuid.NewSHA1(namespace, fmt.Appendf(nil, "%s_%d", c.DocumentID, number)).String() != c.ChunkID {
		if number++; number > 1000 {
			t.Fatalf("the id of chunk %s does not follow from its document %s", c.ChunkID, c.DocumentID)
		}
	}
	document := "row"
	if strings.HasPrefix(c.DocumentID, x.folder) {
		document = c.DocumentID
	}
	return x.relative(fmt.Sprintf("%s#%d %s %s %s", document, number, digest(c.Content), digest(c.Vector), metadataLine(c.Metadata)))
}

// metadataLine returns keys and values, without the values of dates.
func metadataLine(metadata map[string]any) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if strings.HasSuffix(key, "_date") {
			all = append(all, key)
			continue
		}
		all = append(all, fmt.Sprintf("%s=%v", key, metadata[key]))
	}
	return strings.Join(all, " ")
}

// addAnswer adds a question, its search results and the reply. In QType (Python) the doc_id
// of a result is the id of the chunk, because the index has no other.
func (x *retrieval) addAnswer(t *testing.T, row map[string]any, ours bool) {
	t.Helper()
	x.lines = append(x.lines, fmt.Sprintf("question %v", row["question"]))
	type result struct {
		Content record  `json:"content"`
		DocID   string  `json:"doc_id"`
		Score   float64 `json:"score"`
	}
	for _, r := range convert[[]result](t, row["found"]) {
		line, ok := x.chunks[r.Content.ChunkID]
		if !ok || !strings.Contains(line, digest(r.Content.Content)) || r.Content.Vector != nil {
			t.Errorf("the result %+v is no chunk of the index", r)
		}
		if r.DocID != r.Content.DocumentID || ours == (r.DocID == r.Content.ChunkID) {
			t.Errorf("doc_id %s, document_id %s, chunk_id %s", r.DocID, r.Content.DocumentID, r.Content.ChunkID)
		}
		x.lines = append(x.lines, fmt.Sprintf("found %.5f %s", r.Score, line))
	}
	reply := row["reply"].(map[string]any)
	x.lines = append(x.lines, fmt.Sprintf("reply %v %v", reply["role"], reply["blocks"].([]any)[0].(map[string]any)["content"]))
}

// addChats adds the requests to the chat model. Search results in a prompt are JSON here, and
// the text of Python's objects in QType (Python).
func (x *retrieval) addChats(chats []map[string]any) {
	found := regexp.MustCompile(`(?s)<found>.+</found>`)
	for _, c := range chats {
		x.lines = append(x.lines, fmt.Sprintf("chat %v temperature %v max_tokens %v", c["model"], c["temperature"], c["max_tokens"]))
		for _, m := range c["messages"].([]any) {
			message := m.(map[string]any)
			x.lines = append(x.lines, fmt.Sprintf("%v: %s", message["role"], found.ReplaceAllString(fmt.Sprint(message["content"]), "FOUND")))
		}
	}
}

func (x *retrieval) relative(line string) string { return strings.ReplaceAll(line, x.folder+"/", "") }

// digest returns a short hash of the JSON of a value.
func digest(v any) string {
	data, _ := json.Marshal(v)
	return fmt.Sprintf("%x", sha256.Sum256(data))[:12]
}

// convert converts a value by its JSON.
func convert[V any](t *testing.T, from any) V {
	t.Helper()
	data, err := json.Marshal(from)
	testkit.Must(t, err)
	var v V
	testkit.Must(t, json.Unmarshal(data, &v))
	return v
}
