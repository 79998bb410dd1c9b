package diag

import (
	"slices"

	"github.com/qtype-dev/qtype/spec/source"
)

// redaction stands where a secret is; its length says nothing about the secret's.
const redaction = "***"

// shownLine is a line as an excerpt may show it: with stars in the place of secrets.
type shownLine struct {
	text   []rune
	hidden [][2]int // stretches of the line in the document, from and to, in characters, in order
}

// lineOf is line n of a file.
func lineOf(f *source.File, n int) shownLine {
	line := []rune(f.Line(n))
	l := shownLine{hidden: hiddenIn(f, n, line)}
	if len(l.hidden) == 0 {
		l.text = line
		return l
	}
	at := 0
	for _, h := range l.hidden {
		l.text = append(append(l.text, line[at:h[0]]...), []rune(redaction)...)
		at = h[1]
	}
	l.text = append(l.text, line[at:]...)
	return l
}

// hiddenIn lists the stretches of a line that are hidden, joined where they meet.
func hiddenIn(f *source.File, n int, line []rune) [][2]int {
	var all [][2]int
	for _, s := range f.Hidden() {
		if s.Start.Line > n || s.End.Line < n {
			continue
		}
		from, to := indentOf(line), len(line)
		if s.Start.Line == n {
			from = s.Start.Column - 1
		}
		if s.End.Line == n {
			to = min(s.End.Column-1, len(line))
		}
		if from < to {
			all = append(all, [2]int{from, to})
		}
	}
	slices.SortFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	joined := all[:0]
	for _, h := range all {
		if last := len(joined) - 1; last >= 0 && h[0] <= joined[last][1] {
			joined[last][1] = max(joined[last][1], h[1])
			continue
		}
		joined = append(joined, h)
	}
	return joined
}

func indentOf(line []rune) int {
	n := slices.IndexFunc(line, func(r rune) bool { return r != ' ' && r != '\t' })
	return max(n, 0)
}

// start is where a stretch begins that begins at a character of the document's
// line; one that begins inside of a secret begins before the stars.
func (l shownLine) start(at int) int {
	start, _ := l.shown(at)
	return start
}

// end is where a stretch ends that ends before a character of the document's
// line; one that ends inside of a secret ends behind the stars.
func (l shownLine) end(at int) int {
	end, inside := l.shown(at)
	if inside {
		end += len(redaction)
	}
	return end
}

// shown is where a character of the document's line stands now; for one inside
// of a secret, where its stars begin.
func (l shownLine) shown(at int) (now int, inside bool) {
	shift := 0
	for _, h := range l.hidden {
		switch {
		case at >= h[1]:
			shift += len(redaction) - (h[1] - h[0])
		case at > h[0]:
			return h[0] + shift, true
		}
	}
	return at + shift, false
}
