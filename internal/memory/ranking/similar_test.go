package ranking

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/vectors"
)

// TestScores_Best expects the best documents of a large corpus to be those of a comparison of all.
func TestScores_Best(t *testing.T) {
	t.Parallel()
	nouns := []string{"puppy", "violin", "aspirin", "train", "bread", "rent", "harbor", "cousin", "garden", "invoice", "piano", "otter", "climb", "paint"}
	random := rand.New(rand.NewPCG(1, 2))
	var c Corpus
	for i := range 2 * maxSample {
		text := fmt.Sprint("item", random.IntN(100))
		for range 1 + random.IntN(12) {
			text += " " + nouns[random.IntN(len(nouns))]
		}
		c.Add(Document{Session: int32(random.IntN(3)), Seq: int64(i), Time: time.Unix(int64(i)*int64(random.IntN(100)), 0), Name: []string{"Ana", "Ben"}[i%2], Text: text})
	}
	c.Remove(1, 100, 5000)
	for _, query := range []string{"medicine of the doctor", "what did Ana play?", "a dog", "🙂"} {
		for name, match := range map[string]func(int) bool{"all": nil, "few": func(doc int) bool { return doc%1000 == 7 }} {
			q := Query{Text: query, Match: match}
			r := &ranker{Corpus: &c, query: q, named: []bool{query == "what did Ana play?", false},
				scratch: &scratch{marked: make([]bool, len(c.docs))}}
			r.plain, r.stems, _ = queryTerms(query)
			for kind, s := range map[string]*scores{"words": r.byWords(), "meaning": r.bySimilarity()} {
				got, top := s.best(50), vectors.NewTop(50)
				slices.SortFunc(got, func(a, b vectors.Match) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
				for doc := range c.docs {
					if score := s.of(int32(doc)); score > 0 && r.mayMatch(int32(doc)) {
						top.Offer(vectors.Match{ID: int64(doc), Score: score})
					}
				}
				if want := top.Sorted(); !slices.Equal(got, want) || kind == "meaning" && (len(want) == 0) != (query == "🙂") {
					t.Errorf("%s, %s, %s: %v, want %v", query, name, kind, got, want)
				}
			}
		}
	}
}
