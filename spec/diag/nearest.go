package diag

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Nearest returns the candidate that is most likely meant by a misspelled name, ""
// if none is near. It minimizes the optimal string alignment distance (insertions,
// deletions, replacements, swaps of neighbors), ignoring case; ties go to the first
// in alphabetical order. If none is near, it returns a candidate that contains name
// or is contained in it, such as max_attempts for attempts.
func Nearest(name string, candidates []string) string {
	best, bestCost := "", maxDistance(name)+1
	letters := lettersOf(name)
	for _, c := range candidates {
		if c == name || c == "" || 2*leastEdits(letters, lettersOf(c)) > bestCost {
			continue
		}
		if cost := distance(name, c, bestCost+1); cost < bestCost || cost == bestCost && c < best {
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
	for _, c := range candidates {
		if min(len(c), len(name)) < least || max(len(c), len(name)) > most || c == name {
			continue
		}
		shares := strings.Contains(strings.ToLower(c), strings.ToLower(name)) || strings.Contains(strings.ToLower(name), strings.ToLower(c))
		gap, bestGap := abs(len(c)-len(name)), abs(len(best)-len(name))
		if shares && (best == "" || gap < bestGap || gap == bestGap && c < best) {
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
	m, n := utf8.RuneCountInString(a), utf8.RuneCountInString(b)
	if m > maxName || n > maxName || 2*abs(m-n) >= limit {
		return limit
	}
	cost := 2 * edits([]rune(strings.ToLower(a)), []rune(strings.ToLower(b)))
	if cost == 0 && a != b {
		cost = 1
	}
	return cost
}

// lettersOf returns a set of the letters of a name, in which some letters share a bit.
func lettersOf(name string) (set uint64) {
	for _, r := range name {
		if r >= utf8.RuneSelf || 'A' <= r && r <= 'Z' {
			r = unicode.ToLower(r)
		}
		set |= 1 << (r & 63)
	}
	return set
}

// leastEdits returns a number of edits that names with these letters need at least: an edit
// adds at most one letter and removes at most one. It is much faster than counting edits.
func leastEdits(a, b uint64) int { return max(bits.OnesCount64(a&^b), bits.OnesCount64(b&^a)) }

// edits returns the optimal string alignment distance, computed with three rows.
func edits(s, t []rune) int {
	var rows [3][maxName + 1]uint8 // on the stack; no distance is larger than maxName
	before, last, row := rows[0][:len(t)+1], rows[1][:len(t)+1], rows[2][:len(t)+1]
	for j := range last {
		last[j] = uint8(j)
	}
	for i := 1; i <= len(s); i++ {
		row[0] = uint8(i)
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
	return int(last[len(t)])
}
