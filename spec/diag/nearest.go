package diag

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that is most likely meant by a misspelled name, ""
// if none is near. It minimizes the optimal string alignment distance (insertions,
// deletions, replacements, swaps of neighbors), ignoring case; ties go to the first
// in alphabetical order. If none is near, it returns a candidate that contains name
// or is contained in it, such as max_attempts for attempts.
func Nearest(name string, candidates []string) string {
	best, bestCost := "", maxDistance(name)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if c == name || c == "" {
			continue
		}
		if cost := distance(name, c, bestCost); cost < bestCost {
			best, bestCost = c, cost
		}
	}
	if best == "" {
		return containing(name, candidates)
	}
	return best
}

// containing returns the candidate with the most similar length that contains name
// or is contained in it. Short words are skipped, as too many others contain them.
func containing(name string, candidates []string) string {
	const least, most = 4, 2 * maxName
	best := ""
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if min(len(c), len(name)) < least || max(len(c), len(name)) > most || c == name {
			continue
		}
		shares := strings.Contains(strings.ToLower(c), strings.ToLower(name)) || strings.Contains(strings.ToLower(name), strings.ToLower(c))
		if shares && (best == "" || abs(len(c)-len(name)) < abs(len(best)-len(name))) {
			best = c
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// maxDistance returns the distance up to which a candidate is near to name, in half
// edits: a different letter case costs one half. It allows no edit in one letter,
// one in a short word, and a third of the letters in longer ones.
func maxDistance(name string) int {
	n := len([]rune(name))
	switch {
	case n <= 1:
		return 1
	case n <= 4:
		return 2
	}
	return 2 * min(n/3, 5)
}

// maxName is the length in characters up to which names are compared.
const maxName = 128

// distance returns twice the number of edits from a to b, plus one if only their
// letter case differs. It returns at least limit if the distance is not below it.
func distance(a, b string, limit int) int {
	s, t := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	gap := len(s) - len(t)
	if len(s) > maxName || len(t) > maxName || 2*abs(gap) >= limit {
		return limit
	}
	cost := 2 * edits(s, t)
	if cost == 0 && a != b {
		cost = 1
	}
	return cost
}

// edits returns the optimal string alignment distance, computed with three rows.
func edits(s, t []rune) int {
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			replace := last[j-1]
			if s[i-1] != t[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}
