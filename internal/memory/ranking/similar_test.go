package ranking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
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
		if i%500 == 0 {
			text += " zebra"
		}
		c.Add(Document{Session: int32(random.IntN(3)), Seq: int64(i), Time: time.Unix(int64(i)*int64(random.IntN(100)), 0), Name: []string{"Ana", "Ben"}[i%2], Text: text})
	}
	c.Remove(1, 100, 5000)
	for _, query := range []string{"medicine of the doctor", "what did Ana play?", "a dog", "zebra", "🙂"} {
		for name, match := range map[string]func(int) bool{"all": nil, "few": func(doc int) bool { return doc%1000 == 7 }} {
			q := Query{Text: query, Match: match}
			r := &ranker{Corpus: &c, query: q, named: []bool{query == "what did Ana play?", false},
				scratch: &scratch{marked: make([]bool, len(c.docs))}}
			r.plain, r.stems, _ = queryTerms(query)
			for kind, s := range map[string]*scores{"words": r.byWords(), "meaning": r.bySimilarity()} {
				const n = 50
				var best top
				got := s.bestOf(n, &best)
				var want []scored
				for doc := range int32(len(c.docs)) {
					if score := s.of(doc); score > 0 && r.mayMatch(doc) {
						want = append(want, newScored(doc, score))
					}
				}
				slices.Sort(got)
				slices.Sort(want)
				if want = want[max(len(want)-n, 0):]; !slices.Equal(got, want) || kind == "meaning" && (len(want) == 0) != (query == "🙂") {
					t.Errorf("%s, %s, %s: %v, want %v", query, name, kind, got, want)
				}
				if kind == "words" && (s.hits == nil) != (query == "what did Ana play?" && kind == "words") {
					t.Errorf("%s: %d documents are listed", query, len(s.hits))
				}
			}
		}
	}
}
