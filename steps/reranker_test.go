package steps_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// reverse ranks the last item first, and records what it was asked.
type reverse struct {
	asked []rerank.Request
	err   error
}

func (r *reverse) Rank(_ context.Context, req rerank.Request) ([]rerank.Choice, rerank.Usage, error) {
	r.asked = append(r.asked, req)
	var choices []rerank.Choice
	for i := len(req.Items) - 1; i >= 0 && (req.Limit == 0 || len(choices) < req.Limit); i-- {
		choices = append(choices, rerank.Choice{Index: i, Score: float64(i)})
	}
	return choices, rerank.Usage{Input: 7}, r.err
}

// rankers returns an Env whose steps use a ranker.
func rankers(l layout, r rerank.Ranker) *steps.Env {
	return &steps.Env{Slots: l, Ranker: func(spec.Step, func(rerank.Options) (rerank.Ranker, error)) (rerank.Ranker, error) { return r, nil }}
}

// results makes a value of type list[SearchResult] or list[RAGSearchResult] of JSON.
func results(t *testing.T, typ, text string) any {
	t.Helper()
	parsed, err := value.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := value.Coerce(spec.Type{Elem: &spec.Type{Name: typ}}, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const twoChunks = `[{"content":{"vector":[1.0],"content":"cut","metadata":{"page":2},"chunk_id":"c1","document_id":"d1"},"doc_id":"d1","score":0.5},` +
	`{"content":{"content":"kept","chunk_id":"c2","document_id":"d1"},"doc_id":"d1","score":0.4}]`

func TestReranker(t *testing.T) {
	l := declare(t, nil, "question: text", "chunks: list[RAGSearchResult]", "documents: list[SearchResult]", "best: list[RAGSearchResult]", "all: list[SearchResult]")
	documents := `[{"content":{"title":"Go"},"doc_id":"b1","score":3.0},{"content":{"content":"kept","chunk_id":"c2","document_id":"d1","metadata":{"page":9},"lang":"en"},"doc_id":"c2","score":2.0},{"content":"plain","doc_id":"b2","score":1.0}]`
	row := func() *steps.Row {
		return l.row(map[string]any{"question": "which?", "chunks": results(t, "RAGSearchResult", twoChunks), "documents": results(t, "SearchResult", documents)})
	}
	two := 2
	for name, c := range map[string]struct {
		inputs []string
		output string
		limit  *int
		texts  string // what was compared
		ranks  string
		want   string // the output
	}{
		"chunks": {[]string{"question", "chunks"}, "best", nil, "cut|kept", "[1] [2]",
			`[{"content":{"vector":null,"content":"kept","metadata":{},"chunk_id":"c2","document_id":"d1"},"doc_id":"d1","score":1},{"content":{"vector":[1],"content":"cut","metadata":{"page":2},"chunk_id":"c1","document_id":"d1"},"doc_id":"d1","score":0}]`},
		"documents": {[]string{"documents", "question"}, "all", &two, `{"title":"Go"}|{"content":"kept","chunk_id":"c2","document_id":"d1","metadata":{"page":9},"lang":"en"}|plain`, "[1] [2] [3]",
			`[{"content":"plain","doc_id":"b2","score":2},{"content":{"content":"kept","chunk_id":"c2","document_id":"d1","metadata":{"page":9},"lang":"en"},"doc_id":"c2","score":1}]`},
		"both as chunks": {[]string{"question", "documents", "chunks"}, "best", &two, "", "[1 0] [2 2] [3 0] [0 1]",
			`[{"content":{"vector":[1],"content":"cut","metadata":{"page":2},"chunk_id":"c1","document_id":"d1"},"doc_id":"d1","score":3},{"content":{"vector":null,"content":"plain","metadata":{},"chunk_id":"b2","document_id":"b2"},"doc_id":"b2","score":2}]`},
		"both as documents": {[]string{"chunks", "documents"}, "all", &two, "", "[1 0] [2 2] [0 1] [0 3]",
			`[{"content":"plain","doc_id":"b2","score":3},{"content":{"title":"Go"},"doc_id":"b1","score":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reverse{}
			s := build(t, &spec.Reranker{StepBase: l.base("sort", c.inputs, []string{c.output}), NumResults: c.limit}, rankers(l, r))
			var used []steps.Event
			ctx := steps.WithEvents(t.Context(), func(ev steps.Event) { used = append(used, ev) }, steps.EventUsage)
			out := driveCtx(ctx, t, s, row())[0]
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			got, _ := l.ref(c.output), 0
			if text := string(value.JSON(out.Values[l.Slot(got.To)])); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
			var texts, ranks []string
			for _, item := range r.asked[0].Items {
				texts, ranks = append(texts, item.Text), append(ranks, fmt.Sprint(item.Ranks))
			}
			if c.texts != "" && strings.Join(texts, "|") != c.texts || strings.Join(ranks, " ") != c.ranks {
				t.Errorf("compared %q with the places %v", texts, ranks)
			}
			if len(used) != 1 || used[0].Input != 7 || used[0].Step != "sort" {
				t.Errorf("usage %+v", used)
			}
		})
	}
}

func TestReranker_Chunk(t *testing.T) {
	l := declare(t, nil, "question: text", "documents: list[SearchResult]", "best: list[RAGSearchResult]")
	s := build(t, &spec.Reranker{StepBase: l.base("sort", []string{"question", "documents"}, []string{"best"})}, rankers(l, &reverse{}))
	in := results(t, "SearchResult", `[{"content":{"content":"kept","chunk_id":"c2","document_id":"d1","metadata":{"page":9},"lang":"en"},"doc_id":"x","score":2.0},{"content":{"title":"Go"},"doc_id":"b1","score":3.0}]`)
	out := driveRows(t, s, l.row(map[string]any{"question": "which?", "documents": in}))[0]
	want := `[{"content":{"vector":null,"content":"{\"title\":\"Go\"}","metadata":{},"chunk_id":"b1","document_id":"b1"},"doc_id":"b1","score":1},` +
		`{"content":{"vector":null,"content":"kept","metadata":{"page":9,"lang":"en"},"chunk_id":"c2","document_id":"d1"},"doc_id":"x","score":0}]`
	if got := string(value.JSON(out.Values[2])); out.Err != nil || got != want {
		t.Errorf("%v\ngot  %s\nwant %s", out.Err, got, want)
	}
}

func TestReranker_Rows(t *testing.T) {
	l := declare(t, nil, "question: text", "found: list[SearchResult]", "best: list[SearchResult]")
	r := &reverse{}
	s := build(t, &spec.BedrockReranker{StepBase: l.base("sort", []string{"question", "found"}, []string{"best"})}, rankers(l, r))
	rows := []*steps.Row{
		l.row(map[string]any{"question": "q", "found": []any{}}),
		l.row(map[string]any{"question": "q"}),
		l.row(map[string]any{"found": []any{}}),
		l.row(map[string]any{"question": "q", "found": results(t, "SearchResult", `[{"content":"","doc_id":"a","score":1.0}]`)}),
		l.row(map[string]any{"question": "q", "found": "text"}),
	}
	expect(t, "rows", drive(t, l, s, rows...),
		`{"question":"q","found":[],"best":[]}`,
		"error: variable found is not set",
		"error: variable question is not set",
		"error: result 1 of found has no content to compare",
		"error: found is not a list of search results")
	if len(r.asked) != 0 {
		t.Errorf("an empty list made a call: %v", r.asked)
	}
	r.err = fmt.Errorf("the service is down")
	expect(t, "error", drive(t, l, s, l.row(map[string]any{"question": "q", "found": results(t, "SearchResult", `[{"content":"a","doc_id":"a","score":1.0}]`)})), "error: the service is down")
}
