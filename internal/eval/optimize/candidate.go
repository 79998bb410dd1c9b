// Package optimize changes texts and values of a document so that an evaluation has better scores. Training rows
// show a model what fails, validation rows select among its proposals, and held-out rows, which are run at the end
// only, decide whether something was found.
package optimize

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Candidate is a changed document that was tried.
type Candidate struct {
	ID         string         `json:"id"`                    // base, or a hash of the values
	Parent     string         `json:"parent,omitempty"`      // the candidate that was changed
	MergedWith string         `json:"merged_with,omitempty"` // another one, whose changes were added
	Changed    []string       `json:"changed,omitempty"`     // addresses that differ from the parent
	Values     map[string]any `json:"values,omitempty"`      // what differs from the document, by address
	Before     *float64       `json:"before,omitempty"`      // the mean of the parent with the same training rows
	Training   *float64       `json:"training,omitempty"`    // the mean with some training rows
	Validation *float64       `json:"validation,omitempty"`  // the mean with all validation rows
	P          *float64       `json:"p,omitempty"`           // of the comparison with the best candidate so far
	Examples   []int64        `json:"examples,omitempty"`    // numbers of the training rows that its texts have
	Verdict    string         `json:"verdict"`

	results map[int][]*evalrun.Result // by row, of all trials
	order   [][]int                   // training sessions, in the order of this candidate
	next    int                       // in order
	turn    int                       // the text that is rewritten next
	perfect bool                      // no training session fails
	valid   bool                      // the document is valid with it
}

// idOf returns a hash of values.
func idOf(values map[string]any) string {
	if len(values) == 0 {
		return "base"
	}
	text, err := textfmt.CompactJSON(values) // sorts the addresses
	if err != nil {
		return "invalid" // unreachable: values of a document are JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// of returns the results of sessions, in their order.
func (c *Candidate) of(sessions [][]int) (all []*evalrun.Result) {
	for _, rows := range sessions {
		for _, row := range rows {
			all = append(all, c.results[row]...)
		}
	}
	return all
}

// score returns the mean of a session, the greater the better; -Inf if it has none.
func (s *search) score(c *Candidate, session []int) float64 {
	v := s.metric.Summarize(c.of([][]int{session}))
	switch {
	case v.Count == 0:
		return math.Inf(-1)
	case s.metric.Lower:
		return -v.Mean
	}
	return v.Mean
}

// fails reports whether a session can be better.
func (s *search) fails(c *Candidate, session []int) bool {
	return s.metric.Unit != "" || s.score(c, session) < 1
}

// mean returns the mean of sessions.
func (s *search) mean(c *Candidate, sessions [][]int) float64 {
	return s.metric.Summarize(c.of(sessions)).Mean
}

// front returns the candidates that are best in some validation session, with the number of these. Candidates are left out
// if others are as good in each of their sessions, the ones with the lowest mean first.
func (s *search) front() (all []*Candidate, wins []int) {
	best := make([][]bool, len(s.pool)) // by candidate, then by session
	for i := range best {
		best[i] = make([]bool, len(s.validation))
	}
	counts := make([]int, len(s.validation))
	for v, session := range s.validation {
		top := math.Inf(-1)
		scores := make([]float64, len(s.pool))
		for i, c := range s.pool {
			scores[i] = s.score(c, session)
			top = max(top, scores[i])
		}
		for i := range s.pool {
			if best[i][v] = scores[i] == top; best[i][v] {
				counts[v]++
			}
		}
	}
	order := make([]int, len(s.pool))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { // of equal ones the newer one leaves first
		return cmpFloat(s.gain(s.pool[a]), s.gain(s.pool[b]), b-a)
	})
	left := map[int]bool{}
	for _, i := range order {
		needed := false
		for v, is := range best[i] {
			needed = needed || is && counts[v] == 1
		}
		if needed {
			continue
		}
		left[i] = true
		for v, is := range best[i] {
			if is {
				counts[v]--
			}
		}
	}
	for i, c := range s.pool {
		if !left[i] {
			n := 0
			for _, is := range best[i] {
				if is {
					n++
				}
			}
			all, wins = append(all, c), append(wins, n)
		}
	}
	return all, wins
}

// gain returns the mean with the validation rows, the greater the better.
func (s *search) gain(c *Candidate) float64 {
	m := s.mean(c, s.validation)
	if s.metric.Lower {
		return -m
	}
	return m
}

func cmpFloat(a, b float64, equal int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return equal
}
