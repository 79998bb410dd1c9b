package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

var updateEvaluation = flag.Bool("update-evaluation", false, "rewrite the table of docs/retrieval.md")

// docsQuestion is a question with the section that answers it.
type docsQuestion struct {
	Question string `json:"question"`
	File     string `json:"file"`
	Heading  string `json:"heading"`
}

// lines is a range of lines of a file, the last one excluded.
type lines struct{ start, end int }

// retriever returns the passages for a question, the best first.
type retriever struct {
	name string
	find func(ctx context.Context, question string) ([]index.Match, error)
}

// bounds are the least values of recall@5 and MRR that the test accepts. They are below the
// measured ones, which change with each page of the documentation.
type bounds struct{ recall, mrr float64 }

// TestAskTheDocs_Evaluation fills the index of examples/ask_the_docs and measures how well
// each kind of search finds the labelled sections, with the vectors of the offline mock. The
// numbers are those of the table in docs/retrieval.md.
func TestAskTheDocs_Evaluation(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", "")
	evaluate(t, root, "evaluation", []bounds{{0.70, 0.55}, {0.37, 0.28}, {0.65, 0.45}, {0.72, 0.55}, {0.35, 0.27}}, "")
}

// rerankedFlow is a flow whose Reranker calls the server of the sentence model, which compares
// the tokens of the question with those of each passage (late interaction).
const rerankedFlow = `
  - id: reranked
    variables:
      - {id: question, type: text}
      - {id: found, type: "list[RAGSearchResult]"}
      - {id: best, type: "list[RAGSearchResult]"}
    inputs: [question]
    outputs: [best]
    steps:
      - {type: VectorSearch, id: search_both, index: docs, mode: hybrid, default_top_k: 20, inputs: [question], outputs: [found]}
      - {type: Reranker, id: sort, method: cohere, args: {model_id: all-MiniLM-L6-v2, base_url: "http://ADDRESS"}, num_results: 20, inputs: [question, found], outputs: [best]}
`

// TestAskTheDocs_SentenceModel is the same with the vectors of a real model. Its first run
// takes a minute, unless QTYPE_MINILM_VECTORS names a folder that keeps vectors and scores.
func TestAskTheDocs_SentenceModel(t *testing.T) {
	testkit.SkipWithRace(t)
	server, err := servertest.MiniLM()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close()) })
	root, err := os.Getwd()
	testkit.Must(t, err)
	t.Setenv("OPENAI_API_KEY", "none")
	t.Setenv("OPENAI_BASE_URL", "http://"+server.Address()+"/v1")
	t.Setenv("DOCS_EMBEDDINGS", "all-MiniLM-L6-v2")
	evaluate(t, root, "evaluation of all-MiniLM-L6-v2", []bounds{{0.70, 0.55}, {0.72, 0.58}, {0.78, 0.64}, {0.77, 0.62}, {0.72, 0.56}, {0.82, 0.70}},
		strings.ReplaceAll(rerankedFlow, "ADDRESS", server.Address()))
}

// evaluate measures the retrievers with an embedding model; section names the table. flow is
// added to the document and measured, too, unless it is empty.
func evaluate(t *testing.T, root, section string, least []bounds, flow string) {
	t.Helper()
	app := ingestDocs(t, root, flow)
	docs, err := app.Index("docs")
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := app.Embedder("vectors")
	if err != nil {
		t.Fatal(err)
	}
	questions, sections := readQuestions(t, root)
	if len(questions) < 100 {
		t.Fatalf("%d questions", len(questions))
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "| Search | recall@5 | MRR |\n| --- | --- | --- |\n")
	compared := retrievers(docs, &remembered{Embedder: vectors, vectors: map[string][]float32{}})
	if flow != "" {
		compared = append(compared, retriever{"hybrid, sorted by Reranker (cohere) with late interaction of the tokens", flowSearch(app, "reranked")})
	}
	for i, r := range compared {
		found, reciprocal := 0, 0.0
		for _, q := range questions {
			matches, err := r.find(t.Context(), q.Question)
			if err != nil {
				t.Fatalf("%s: %q: %v", r.name, q.Question, err)
			}
			if rank := rankOf(matches, q, sections); rank > 0 {
				reciprocal += 1 / float64(rank)
				if rank <= 5 {
					found++
				}
			}
		}
		recall, mrr := float64(found)/float64(len(questions)), reciprocal/float64(len(questions))
		t.Logf("%s: recall@5 %.3f, MRR %.3f", r.name, recall, mrr)
		fmt.Fprintf(&table, "| %s | %.2f | %.2f |\n", r.name, recall, mrr)
		if recall < least[i].recall || mrr < least[i].mrr {
			t.Errorf("%s: recall@5 %.3f and MRR %.3f, want at least %.2f and %.2f", r.name, recall, mrr, least[i].recall, least[i].mrr)
		}
	}
	if *updateEvaluation {
		updateTable(t, root, section, table.String())
	}
}

// remembered is an embedding model that is asked once for each text.
type remembered struct {
	model.Embedder
	vectors map[string][]float32
}

// Embed calls the model for the texts that are new.
func (r *remembered) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	var asked []string
	for _, text := range texts {
		if r.vectors[text] == nil {
			asked = append(asked, text)
		}
	}
	made, usage, err := r.Embedder.Embed(ctx, asked)
	for i, v := range made {
		r.vectors[asked[i]] = v
	}
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = r.vectors[text]
	}
	return all, usage, err
}

// ingestDocs runs the flow ingest of the example with an index in a new folder. flow, which may
// be empty, is added to its flows.
func ingestDocs(t *testing.T, root, flow string) *runtime.App {
	t.Helper()
	t.Chdir(t.TempDir())
	document := testkit.ReadFile(t, filepath.Join(root, "examples", "ask_the_docs", "app.qtype.yaml"))
	testkit.Must(t, os.WriteFile("app.qtype.yaml", []byte(document+flow), 0o600))
	app, err := qtype.Open(t.Context(), "app.qtype.yaml", qtype.WithEphemeral())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.WithoutCancel(t.Context())) })
	rows := slices.Values([]runtime.Input{{Values: map[string]any{"input_dir": filepath.Join(root, "docs")}}})
	n := 0
	for res, err := range app.Run(t.Context(), "ingest", rows) {
		if err != nil {
			t.Fatal(err)
		}
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		n++
	}
	if n < 100 {
		t.Fatalf("the documentation has %d sections", n)
	}
	return app
}

// retrievers are the kinds of searches that are compared.
func retrievers(x index.Index, m model.Embedder) []retriever {
	search := func(mode index.Mode, limit int) func(context.Context, string) ([]index.Match, error) {
		return func(ctx context.Context, question string) ([]index.Match, error) {
			q := index.Query{Mode: mode, Text: question, Limit: limit}
			if mode != index.ByText {
				vectors, _, err := m.Embed(ctx, []string{question})
				if err != nil {
					return nil, err
				}
				q.Vector = vectors[0]
			}
			return x.Search(ctx, q)
		}
	}
	const depth = 20
	combined := func(ctx context.Context, question string) ([]index.Match, error) {
		words, err := search(index.ByText, depth)(ctx, question)
		if err != nil {
			return nil, err
		}
		near, err := search(index.ByVector, depth)(ctx, question)
		if err != nil {
			return nil, err
		}
		return fuse(ctx, words, near)
	}
	return []retriever{
		{"words (BM25)", search(index.ByText, depth)},
		{"vectors", search(index.ByVector, depth)},
		{"hybrid", search(index.Hybrid, depth)},
		{"words and vectors, combined by Reranker (rrf, k 10, weights 2 and 1)", combined},
		{"the same, sorted by Reranker (mmr, lambda 0.9)", func(ctx context.Context, question string) ([]index.Match, error) {
			matches, err := combined(ctx, question)
			if err != nil {
				return nil, err
			}
			return rank(ctx, rerank.Diversity{Lambda: 0.9, Model: m}, question, matches)
		}},
	}
}

// flowSearch returns the results of a flow that makes them of a question.
func flowSearch(app *runtime.App, flow string) func(context.Context, string) ([]index.Match, error) {
	return func(ctx context.Context, question string) ([]index.Match, error) {
		rows := slices.Values([]runtime.Input{{Values: map[string]any{"question": question}}})
		var matches []index.Match
		for res, err := range app.Run(ctx, flow, rows) {
			if err != nil {
				return nil, err
			}
			if res.Err != nil {
				return nil, res.Err
			}
			found, _ := res.Get("best")
			var results []struct {
				Content struct {
					Content  string         `json:"content"`
					Metadata map[string]any `json:"metadata"`
				} `json:"content"`
				Score float64 `json:"score"`
			}
			if err := json.Unmarshal(value.JSON(found), &results); err != nil {
				return nil, err
			}
			for _, r := range results {
				matches = append(matches, index.Match{Entry: index.Entry{Text: r.Content.Content, Metadata: r.Content.Metadata}, Score: r.Score})
			}
		}
		return matches, nil
	}
}

// rank sorts the matches of a search.
func rank(ctx context.Context, r rerank.Ranker, question string, matches []index.Match) ([]index.Match, error) {
	items := make([]rerank.Item, len(matches))
	for i, m := range matches {
		items[i] = rerank.Item{Text: m.Text, Score: m.Score}
	}
	choices, _, err := r.Rank(ctx, rerank.Request{Query: question, Items: items})
	return chosen(matches, choices), err
}

// chosen returns the matches in the order of the choices.
func chosen(matches []index.Match, choices []rerank.Choice) []index.Match {
	sorted := make([]index.Match, len(choices))
	for i, c := range choices {
		sorted[i] = matches[c.Index]
	}
	return sorted
}

// fuse combines two lists as the flow look_up does.
func fuse(ctx context.Context, lists ...[]index.Match) ([]index.Match, error) {
	var all []index.Match
	var items []rerank.Item
	at := map[string]int{}
	for n, list := range lists {
		for place, m := range list {
			i, known := at[m.ID]
			if !known {
				i = len(all)
				at[m.ID] = i
				all, items = append(all, m), append(items, rerank.Item{Ranks: make([]int, len(lists))})
			}
			items[i].Ranks[n] = place + 1
		}
	}
	choices, _, err := rerank.Rank(ctx, rerank.Fusion{K: 10, Weights: []float64{2, 1}}, rerank.Request{Items: items})
	return chosen(all, choices), err
}

// rankOf returns the place of the first passage of the section of a question; 0 for none.
func rankOf(matches []index.Match, q docsQuestion, sections map[docsQuestion]lines) int {
	want := sections[docsQuestion{File: q.File, Heading: q.Heading}]
	for i, m := range matches {
		start, end := number(m.Metadata["line_start"]), number(m.Metadata["line_end"])
		if fmt.Sprint(m.Metadata["file_name"]) == q.File && start < want.end && end >= want.start {
			return i + 1
		}
	}
	return 0
}

func number(v any) int {
	var n int
	_, _ = fmt.Sscan(value.Text(value.FromGo(v)), &n)
	return n
}

// readQuestions reads the labelled questions and finds the lines of their sections.
func readQuestions(t *testing.T, root string) ([]docsQuestion, map[docsQuestion]lines) {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "examples", "ask_the_docs", "questions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var questions []docsQuestion
	sections := map[docsQuestion]lines{}
	for scan := bufio.NewScanner(file); scan.Scan(); {
		var q docsQuestion
		if err := json.Unmarshal(scan.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q)
		sections[docsQuestion{File: q.File, Heading: q.Heading}] = sectionLines(t, root, q)
	}
	return questions, sections
}

var heading = regexp.MustCompile(`^#{1,6} (.*)$`)

// sectionLines returns the lines of a section: from its heading to the next one.
func sectionLines(t *testing.T, root string, q docsQuestion) lines {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", q.File))
	if err != nil {
		t.Fatal(err)
	}
	var found lines
	code := false
	all := strings.Split(string(text), "\n")
	for i, line := range all {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		m := heading.FindStringSubmatch(line)
		switch {
		case code || m == nil:
		case found.start > 0:
			return lines{found.start, i + 1}
		case m[1] == q.Heading:
			found.start = i + 1
		}
	}
	if found.start == 0 {
		t.Fatalf("%s has no heading %q: correct examples/ask_the_docs/questions.jsonl", q.File, q.Heading)
	}
	return lines{found.start, len(all) + 1}
}

// updateTable replaces the table of docs/retrieval.md.
func updateTable(t *testing.T, root, section, table string) {
	t.Helper()
	begin, end := "<!-- "+section+" -->\n", "<!-- /"+section+" -->"
	path := filepath.Join(root, "docs", "retrieval.md")
	text := testkit.ReadFile(t, path)
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("docs/retrieval.md has no %s", strings.TrimSpace(begin))
	}
	testkit.Must(t, os.WriteFile(path, []byte(before+begin+"\n"+table+"\n"+end+after), 0o600))
}

// TestAskTheDocs_Citations checks that the answers of the example name the passages that
// they cite, by file and lines: of the agent with its tool, and of the flow with a search.
func TestAskTheDocs_Citations(t *testing.T) {
	root, err := os.Getwd()
	testkit.Must(t, err)
	t.Setenv("OPENAI_API_KEY", "")
	app := ingestDocs(t, root, "")
	for _, flow := range []string{"ask", "look_up"} {
		rows := slices.Values([]runtime.Input{{Values: map[string]any{"question": "Which key encrypts the messages in a store?"}, Session: "ada"}})
		for res, err := range app.Run(t.Context(), flow, rows) {
			testkit.Must(t, err)
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			output, _ := res.Get("answer")
			answer, ok := output.(chat.Message)
			if !ok {
				t.Fatalf("%s: the answer is %T", flow, output)
			}
			var cited []string
			for _, b := range answer.Blocks {
				if b.Type != "text" {
					cited = append(cited, fmt.Sprintf("%s %v", b.Type, b))
				}
			}
			if len(cited) != 1 || !strings.Contains(cited[0], "memory-stores.md") || !strings.Contains(answer.Text(), "[1]") {
				t.Errorf("%s: %q cites %q", flow, answer.Text(), cited)
			}
		}
	}
}
