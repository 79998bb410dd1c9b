package diag

import (
	"slices"

	"github.com/qtype-dev/qtype/spec/source"
)

// redaction replaces secrets. Its length does not depend on the secret.
const redaction = "***"

// shownLine is a line of an excerpt with its secrets redacted.
type shownLine struct {
	text   []rune
	hidden [][2]int // ranges of the original line, from and to in characters, in order
}

// lineOf returns line n of a file with secrets redacted.
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

// hiddenIn returns the ranges of a line that contain secrets, adjacent ones merged.
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
	slices.SortStableFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
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

// start maps the start of a span from the original line to the shown one; inside a
// secret it is the start of the redaction.
func (l shownLine) start(at int) int {
	start, _ := l.shown(at)
	return start
}

// end maps the end of a span from the original line to the shown one; inside a
// secret it is the end of the redaction.
func (l shownLine) end(at int) int {
	end, inside := l.shown(at)
	if inside {
		end += len(redaction)
	}
	return end
}

// shown maps a column of the original line to the shown one; for a column inside a
// secret it returns the start of the redaction.
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
