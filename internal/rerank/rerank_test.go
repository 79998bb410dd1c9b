package rerank_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// texts makes items of texts.
func texts(all ...string) []rerank.Item {
	items := make([]rerank.Item, len(all))
	for i, text := range all {
		items[i] = rerank.Item{Text: text, Ranks: []int{i + 1}}
	}
	return items
}

// show lists choices as index:score.
func show(choices []rerank.Choice) string {
	var parts []string
	for _, c := range choices {
		parts = append(parts, fmt.Sprintf("%d:%.4g", c.Index, c.Score))
	}
	return strings.Join(parts, " ")
}

func TestRank_NoItems(t *testing.T) {
	choices, usage, err := rerank.Rank(t.Context(), nil, rerank.Request{Query: "go"}) // a call would panic
	if len(choices) != 0 || usage != (rerank.Usage{}) || err != nil {
		t.Errorf("%v, %v, %v", choices, usage, err)
	}
}

func TestFusion(t *testing.T) {
	// a is first in both lists, b and c are in one of them, d is last in both.
	items := []rerank.Item{{Ranks: []int{1, 1}}, {Ranks: []int{2, 0}}, {Ranks: []int{0, 2}}, {Ranks: []int{3, 3}}}
	for name, c := range map[string]struct {
		fusion rerank.Fusion
		limit  int
		want   string
	}{
		"equal":    {rerank.Fusion{K: 60}, 0, "0:0.03279 3:0.03175 1:0.01613 2:0.01613"},
		"weighted": {rerank.Fusion{K: 60, Weights: []float64{0, 1}}, 0, "0:0.01639 2:0.01613 3:0.01587 1:0"},
		"small k":  {rerank.Fusion{K: 1}, 2, "0:1 3:0.5"},
	} {
		got, _, err := c.fusion.Rank(t.Context(), rerank.Request{Items: items, Limit: c.limit})
		if show(got) != c.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", name, show(got), err, c.want)
		}
	}
	if _, _, err := (rerank.Fusion{K: 60, Weights: []float64{1}}).Rank(t.Context(), rerank.Request{Items: items}); err == nil {
		t.Error("no error for one weight and two lists")
	}
}

// embedder returns fixed vectors of texts.
type embedder map[string][]float32

func (e embedder) Info() model.Info { return model.Info{ID: "vectors"} }

func (e embedder) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	var all [][]float32
	for _, text := range texts {
		all = append(all, e[text])
	}
	return all, model.Usage{Input: len(texts), Model: "other"}, nil
}

func TestDiversity(t *testing.T) {
	m := embedder{"q": {1, 0, 0}, "a": {0.9, 0.4, 0}, "copy of a": {0.9, 0.4, 0}, "b": {0.7, 0, 0.7}, "far": {0, 0, 1}}
	for name, c := range map[string]struct {
		lambda float64
		want   string // the order
	}{
		"relevance only":  {1, "0 1 2 3"},
		"balance":         {0.5, "0 2 1 3"},
		"difference only": {0, "0 3 2 1"},
	} {
		got, usage, err := rerank.Diversity{Lambda: c.lambda, Model: m}.Rank(t.Context(), rerank.Request{Query: "q", Items: texts("a", "copy of a", "b", "far")})
		var order []string
		for _, choice := range got {
			order = append(order, fmt.Sprint(choice.Index))
		}
		if strings.Join(order, " ") != c.want || err != nil || usage != (rerank.Usage{Input: 5, Model: "other"}) {
			t.Errorf("%s: got %s, %v, %v, want %s", name, show(got), usage, err, c.want)
		}
	}
}

func TestDiversity_VectorsOfResults(t *testing.T) {
	items := []rerank.Item{{Score: 9, Vector: []float32{1, 0}}, {Score: 8, Vector: []float32{1, 0}}, {Score: 5, Vector: []float32{0, 1}}}
	got, _, err := rerank.Diversity{Lambda: 0.5}.Rank(t.Context(), rerank.Request{Items: items, Limit: 2})
	if show(got) != "0:0.5 2:0" || err != nil {
		t.Errorf("got %s, %v", show(got), err)
	}
	items[1].Vector = nil
	if _, _, err := (rerank.Diversity{}).Rank(t.Context(), rerank.Request{Items: items}); err == nil || err.Error() != "the results have no vectors: set embedding_model" {
		t.Error(err)
	}
}

// TestRank_Properties checks what holds for all rankers that need no server: each item is
// chosen at most once, the number of choices is the limit, and those of a smaller limit
// are the first ones of a greater.
func TestRank_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "items")
		items := make([]rerank.Item, n)
		for i := range items {
			items[i] = rerank.Item{Text: fmt.Sprint(i), Score: rapid.Float64Range(-5, 5).Draw(t, "score"),
				Vector: []float32{rapid.Float32Range(-1, 1).Draw(t, "x"), 1}, Ranks: []int{i + 1, rapid.IntRange(0, n).Draw(t, "rank")}}
		}
		ranker := rapid.SampledFrom([]rerank.Ranker{rerank.Fusion{K: 60}, rerank.Diversity{Lambda: 0.7}}).Draw(t, "ranker")
		limit := rapid.IntRange(0, n+2).Draw(t, "limit")
		all, _, err := rerank.Rank(context.Background(), ranker, rerank.Request{Items: items})
		if err != nil {
			t.Fatal(err)
		}
		some, _, err := rerank.Rank(context.Background(), ranker, rerank.Request{Items: items, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		want := n
		if limit > 0 {
			want = min(n, limit)
		}
		if len(all) != n || len(some) != want || show(all[:want]) != show(some) {
			t.Fatalf("%s\n%s", show(all), show(some))
		}
		seen := map[int]bool{}
		for _, c := range all {
			if seen[c.Index] || math.IsNaN(c.Score) {
				t.Fatalf("item %d is chosen twice or its score is not a number: %s", c.Index, show(all))
			}
			seen[c.Index] = true
		}
	})
}

// script is a chat model that gives answers in order.
type script struct {
	answers []string
	asked   []model.Request
}

func (s *script) Info() model.Info { return model.Info{ID: "judge"} }

func (s *script) Generate(_ context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		s.asked = append(s.asked, req)
		if len(s.asked) > len(s.answers) {
			yield(model.Event{}, errors.New("no more answers"))
			return
		}
		yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, s.answers[len(s.asked)-1]), Usage: model.Usage{Input: 10, Output: 2}}}, nil)
	}
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		batch   int
		want    string // the choices or the error
		calls   int
	}{
		"valid":         {[]string{`{"scores":[{"passage":1,"score":2},{"passage":2,"score":9},{"passage":3,"score":5}]}`}, 10, "1:0.9 2:0.5 0:0.2", 1},
		"two calls":     {[]string{`{"scores":[{"passage":1,"score":2},{"passage":2,"score":9}]}`, `{"scores":[{"passage":1,"score":10}]}`}, 2, "2:1 1:0.9 0:0.2", 2},
		"in a fence":    {[]string{"Here you are:\n```json\n{\"scores\":[{\"passage\":3,\"score\":7}]}\n```"}, 10, "2:0.7 0:0 1:0", 1},
		"only a list":   {[]string{`[{"passage":2,"score":1}]`}, 10, "1:0.1 0:0 2:0", 1},
		"out of range":  {[]string{`{"scores":[{"passage":7,"score":9},{"passage":2,"score":99},{"passage":1,"score":-3},{"passage":1.5,"score":4},{"passage":null},"x",{"score":1}]}`}, 10, "1:1 0:0 2:0", 1},
		"repaired":      {[]string{"I like the second one.", `{"scores":[{"passage":2,"score":8}]}`}, 10, "1:0.8 0:0 2:0", 2},
		"never valid":   {[]string{"no", `{"scores":"none"}`}, 10, `error: the model judge gave no scores that can be read: it has no list "scores"`, 2},
		"empty list":    {[]string{`{"scores":[]}`, `{"scores":[]}`}, 10, "error: the model judge gave no scores that can be read: no scores", 2},
		"error of call": {nil, 10, "error: no more answers", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := &script{answers: c.answers}
			got, usage, err := rerank.Judge{Model: m, BatchSize: c.batch, MaxLength: 4, Instructions: "Prefer short texts."}.
				Rank(t.Context(), rerank.Request{Query: "which?", Items: texts("one", "two", "three and more")})
			text := show(got)
			if err != nil {
				text = "error: " + err.Error()
			}
			if text != c.want || len(m.asked) != c.calls || usage.Output != 2*min(c.calls, len(c.answers)) {
				t.Errorf("got %s after %d calls with %v\nwant %s", text, len(m.asked), usage, c.want)
			}
			question := m.asked[0].Messages[1].Text()
			if c.batch == 10 && !strings.Contains(question, "<passage number=\"3\">\nthre…\n</passage>") || !strings.Contains(m.asked[0].Messages[0].Text(), "Prefer short texts.") {
				t.Errorf("the model was asked %s", question)
			}
		})
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(`{"scores":[{"passage":1,"score":2}]}`)
	f.Add("```json\n[{\"passage\":2,\"score\":1e309}]\n```")
	f.Add(`{"scores":{"1":2}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		got, _, err := rerank.Judge{Model: &script{answers: []string{answer, answer}}, BatchSize: 5, MaxLength: 9}.
			Rank(t.Context(), rerank.Request{Query: "q", Items: texts("a", "b")})
		if err == nil && len(got) != 2 {
			t.Errorf("%v", got)
		}
		for _, c := range got {
			if c.Score < 0 || c.Score > 1 || math.IsNaN(c.Score) {
				t.Errorf("score %v", c.Score)
			}
		}
	})
}

// jsonItem makes an item of a JSON object.
func jsonItem(text string) rerank.Item { return rerank.Item{Text: text, JSON: json.RawMessage(text)} }
