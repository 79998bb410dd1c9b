package splitter_test

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/splitter"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
)

// llamaIndexVariable is the environment variable with the folder of a Python environment
// in which llama-index-core is installed.
const llamaIndexVariable = "QTYPE_LLAMA_INDEX"

// job is a document to be divided with LlamaIndex.
type job struct {
	Class string         `json:"class"`
	Args  map[string]any `json:"args"`
	Text  string         `json:"text"`

	Embeddings string         `json:"embeddings,omitempty"` // the base URL of the embedding model
	Model      string         `json:"model,omitempty"`      // its name there
	embedder   model.Embedder // the same model
	name       string         // of the document
}

// answer is what LlamaIndex makes of a job.
type answer struct {
	Chunks []struct {
		Text     string            `json:"text"`
		Metadata map[string]string `json:"metadata"`
	} `json:"chunks"`
	Seconds     float64  `json:"seconds"`
	Definitions [][2]int `json:"definitions"` // ranges of functions and types, in bytes
}

// llamaIndexFolder returns the folder of the Python environment.
func llamaIndexFolder(t testing.TB) string {
	t.Helper()
	folder := os.Getenv(llamaIndexVariable)
	if folder == "" {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatalf("%s is not set", llamaIndexVariable)
		}
		t.Skipf("SKIPPED: set %s to a Python environment with llama-index-core, as .ci/run does", llamaIndexVariable)
	}
	return folder
}

// llamaIndex calls use with each job and the answer to it.
func llamaIndex(t testing.TB, jobs []job, use func(job, answer)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(llamaIndexFolder(t), "bin", "python"), "testdata/llamaindex.py")
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	var messages strings.Builder
	cmd.Stderr = &messages
	testkit.Must(t, cmd.Start())
	written := start(func() error {
		defer func() { _ = in.Close() }() // the program reports a text that was cut
		encoder := json.NewEncoder(in)
		for _, j := range jobs {
			if err := encoder.Encode(j); err != nil {
				return err
			}
		}
		return nil
	})
	lines := bufio.NewReader(out)
	for _, j := range jobs {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			_ = cmd.Wait() // for the rest of the messages; the program has ended
			t.Fatalf("%s of %s: %v\n%s", j.Class, j.name, err, messages.String())
		}
		var a answer
		testkit.Must(t, json.Unmarshal(line, &a))
		use(j, a)
	}
	testkit.Must(t, <-written)
	testkit.Must(t, cmd.Wait())
}

// start runs a function on a goroutine and returns its error on a channel.
func start(run func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	return done
}

// corpus returns real texts: the documentation and the source code of this repository,
// texts in other languages, and, if they are there, the licences of Debian.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, root := range []string{"../../docs", "../../spec", "../../examples", "testdata", "/usr/share/common-licenses"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // the folder does not exist on every system
			}
			if text := testkit.ReadFile(t, path); utf8.ValidString(text) && len(text) < 300_000 && strings.TrimSpace(text) != "" {
				texts[path] = text
			}
			return nil
		})
		testkit.Must(t, err)
	}
	if languages := texts["testdata/languages.txt"]; languages != "" {
		texts["languages in one paragraph"] = strings.Repeat(strings.ReplaceAll(languages, "\n", " "), 4)
	}
	return texts
}

// settings are the parsers that are compared.
func settings() []job {
	size := func(size, overlap int) map[string]any {
		return map[string]any{"chunk_size": size, "chunk_overlap": overlap}
	}
	return []job{
		{Class: "SentenceSplitter", Args: size(1024, 20)},
		{Class: "SentenceSplitter", Args: size(200, 40)},
		{Class: "SentenceSplitter", Args: size(60, 0)},
		{Class: "TokenTextSplitter", Args: size(512, 20)},
		{Class: "TokenTextSplitter", Args: map[string]any{"chunk_size": 100, "chunk_overlap": 50, "include_metadata": false}},
		{Class: "MarkdownNodeParser", Args: map[string]any{}},
		{Class: "SentenceWindowNodeParser", Args: map[string]any{}},
	}
}

// chunk is a chunk as both programs make it.
type chunk struct {
	Text     string
	Metadata map[string]string
}

// ours returns the chunks of this package for a job, without blank ones.
func ours(t testing.TB, j job) []chunk {
	t.Helper()
	var all []chunk
	for c, err := range makeSplitter(t, with(j.Class, 1024, 20, j.Args), j.embedder).Split(t.Context(), splitter.Document{Text: j.Text}) {
		testkit.Must(t, err)
		if c.IsBlank() {
			continue
		}
		metadata := map[string]string{}
		for _, e := range c.Metadata {
			metadata[e.Key] = e.Value
		}
		all = append(all, chunk{c.Text, metadata})
	}
	return all
}

// theirs returns the chunks of LlamaIndex, without blank ones.
func theirs(a answer) []chunk {
	var all []chunk
	for _, c := range a.Chunks {
		if !(splitter.Chunk{Text: c.Text}).IsBlank() {
			all = append(all, chunk{c.Text, c.Metadata})
		}
	}
	return all
}

// compare divides the documents of jobs with both programs.
func compare(t *testing.T, jobs []job) {
	t.Helper()
	documents, total := map[string]int{}, map[string]int{}
	llamaIndex(t, jobs, func(j job, a answer) {
		want := theirs(a)
		documents[j.Class]++
		total[j.Class] += len(want)
		if diff := cmp.Diff(want, ours(t, j)); diff != "" {
			if len(diff) > 2000 {
				diff = diff[:2000] + "…"
			}
			t.Errorf("%s %v of %s (-LlamaIndex +ours):\n%s", j.Class, j.Args, j.name, diff)
		}
	})
	for class, n := range documents {
		t.Logf("%s: %d documents, %d chunks", class, n, total[class])
	}
}

func TestLlamaIndex_Corpus(t *testing.T) {
	testkit.SkipWithRace(t)
	var jobs []job
	for name, text := range corpus(t) {
		for _, j := range settings() {
			if j.Class == "MarkdownNodeParser" && filepath.Ext(name) != ".md" {
				continue
			}
			j.name, j.Text = name, text
			jobs = append(jobs, j)
		}
	}
	compare(t, jobs)
}

// TestLlamaIndex_Structured compares the splitters of HTML and JSON with files of the tests.
func TestLlamaIndex_Structured(t *testing.T) {
	testkit.SkipWithRace(t)
	classes := map[string]string{".json": "JSONNodeParser", ".html": "HTMLNodeParser"}
	var jobs []job
	for _, root := range []string{"../../internal", "../../loader", "../../model"} {
		testkit.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch class := classes[filepath.Ext(path)]; {
			case err != nil:
				return err
			case d.Name() == "node_modules":
				return fs.SkipDir
			case class != "" && d.Type().IsRegular():
				text := testkit.ReadFile(t, path)
				if len(text) < 300_000 && (class != "JSONNodeParser" || json.Valid([]byte(text))) {
					jobs = append(jobs, job{Class: class, Args: map[string]any{}, Text: text, name: path})
				}
			}
			return nil
		}))
	}
	compare(t, jobs)
}

// Texts of signs that have a meaning for the splitters, with chunks of a few tokens.
func TestLlamaIndex_RandomTexts(t *testing.T) {
	testkit.SkipWithRace(t)
	signs := []string{"a", "B", "the", "The", "Mr", "inc", "U.S", "dog", "x", "1", "2.5", "-", "--", ".", ".", ".", "..", "...", ". . .", "!", "?", ",", ";", ":",
		"\"", "'", "“", "”", "«", "’", ")", "(", "[", "]", "}", " ", " ", " ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\u00a0", "\x1c", "é", "Ä", "。", "？", "🏴",
		"*", "#", "&", "`", "_", "e.g", "<|endoftext|>", "\r\n", "\n# H\n", "```"}
	random := rand.New(rand.NewPCG(1, 2))
	var jobs []job
	for range 300 {
		var text strings.Builder
		for range random.IntN(60) {
			text.WriteString(signs[random.IntN(len(signs))])
		}
		size := 6 + random.IntN(12)
		for _, class := range []string{"SentenceSplitter", "TokenTextSplitter", "MarkdownNodeParser", "SentenceWindowNodeParser"} {
			args := map[string]any{"chunk_size": size, "chunk_overlap": random.IntN(size - 2)}
			if class == "MarkdownNodeParser" || class == "SentenceWindowNodeParser" {
				args = map[string]any{}
			}
			text := text.String()
			if class == "MarkdownNodeParser" { // it replaces other white space in headings by spaces
				text = strings.NewReplacer("\t", " ", "\u00a0", " ", "\x1c", " ").Replace(text)
			}
			jobs = append(jobs, job{Class: class, Args: args, Text: text, name: text})
		}
	}
	compare(t, jobs)
}

// FuzzSplitters checks that no text makes a splitter fail, panic or lose its place.
func FuzzSplitters(f *testing.F) {
	for _, text := range []string{"", "One. Two.", "# A\n\ntext\n| a |\n|-|\n", "<p>x<b>y", "{\"a\": [1]}", "\xff\xfe", "a.)b.)", "<|endoftext|>"} {
		f.Add(text, 10, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size, overlap int) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		size = 1 + (size%1000+1000)%1000
		overlap = (overlap%size + size) % size
		places := splitter.NewPlaces(text, []int{0, 5}, true)
		for _, step := range allSplitters() {
			step.ChunkSize, step.ChunkOverlap = max(size, 3), min(overlap, max(size, 3)-1)
			for c, err := range makeSplitter(t, step, nil).Split(t.Context(), splitter.Document{Text: text}) {
				if err != nil {
					t.Fatal(err)
				}
				if c.Start < 0 || c.End > len(text) || c.Start > c.End || !utf8.ValidString(c.Text) {
					t.Fatalf("%s: chunk %q at %d-%d", step.SplitterName, c.Text, c.Start, c.End)
				}
				places.Of(c)
			}
		}
		for _, err := range makeSplitter(t, with("JSONNodeParser", 0, 0, nil), nil).Split(t.Context(), splitter.Document{Text: text}) {
			if err != nil {
				break // most texts are not JSON
			}
		}
	})
}
