package ranking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
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

// TestScores_Of expects neighbors that are read in place to be those that are followed one by one, and only live
// documents of a conversation to be neighbors.
func TestScores_Of(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c Corpus
		seconds, next := int64(0), [2]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			session := rapid.SampledFrom([]int32{0, 0, 0, 0, 0, 0, 1}).Draw(t, "session")
			if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
				from := rapid.Int64Range(0, next[session]).Draw(t, "from")
				c.Remove(session, from, from+rapid.Int64Range(0, 2).Draw(t, "more"))
				continue
			}
			next[session]++
			seconds += rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 4000}).Draw(t, "pause")
			c.Add(Document{Session: session, Seq: next[session], Time: time.Unix(seconds, 0), Text: "a dog"})
		}
		r := &ranker{Corpus: &c, query: Query{}, named: []bool{false}, scratch: &scratch{marked: make([]bool, len(c.docs))}}
		r.plain, r.stems, _ = queryTerms("dog")
		s := r.byWords()
		for doc := range int32(len(c.docs)) {
			if got, want := s.of(doc), s.own[doc]+s.apart(doc)*s.damping(doc); !c.dead[doc] && got != want {
				t.Fatalf("document %d: %v, want %v", doc, got, want)
			}
			other := c.next[doc]
			if c.dead[doc] || other < 0 {
				continue
			}
			if a, b := &c.docs[doc], &c.docs[other]; c.dead[other] || a.session != b.session || b.seconds-a.seconds > 3600 || c.previous[other] != doc {
				t.Fatalf("document %d follows %d", other, doc)
			}
		}
	})
}
