package diag

import (
	"slices"
	"strings"
)

// Nearest is the candidate that a writer of name most likely meant, or "" where
// nothing is near. It counts the insertions, deletions, replacements and swaps
// of neighbouring characters (Damerau and Levenshtein's distance, each stretch
// edited once), letter case apart; of equally near ones the first in the
// alphabet wins. Where none is near, one that holds the name or is held by it is
// taken: max_attempts for attempts.
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
		return holding(name, candidates)
	}
	return best
}

// holding finds the candidate that shares most with name among those that hold
// it or that it holds; short words are found in too many others.
func holding(name string, candidates []string) string {
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

// maxDistance is how many mistakes a name of this length may hold: none in one
// letter, one in a short word, a third of the letters in a longer one. The unit
// is a half, for a wrong letter case costs half a mistake at most once.
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

// maxName bounds the work for absurdly long names, in characters.
const maxName = 128

// distance is twice the number of edits from a to b, plus one where only the
// letter case of them differs somewhere; at least limit where it is not below.
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

// edits is the optimal string alignment distance, in three rows.
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
