package lint

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/source"
)

// replacement is an edit in bytes of the file.
type replacement struct {
	start, end int
	text       string
	fault      int // which fault it mends
}

// rewrite applies edits to a text and tells how many faults that mends. Of two
// that meet, the later one waits for another round; where two want different
// things of the same place, neither is done. Everything else in the text stays
// as it is, byte for byte.
func rewrite(text []byte, edits []edit) (mended []byte, faults int) {
	all := locate(text, edits)
	refused := conflicts(all)
	var out []byte
	done := 0
	counted := map[int]bool{}
	for i, r := range all {
		if refused[r.fault] || i > 0 && sameEdit(r, all[i-1]) && done > 0 {
			continue
		}
		out = append(append(out, text[done:r.start]...), r.text...)
		done = r.end
		counted[r.fault] = true
	}
	return append(out, text[done:]...), len(counted)
}

// sameEdit tells whether two faults ask for one and the same.
func sameEdit(a, b replacement) bool {
	return a.start == b.start && a.end == b.end && a.text == b.text
}

// locate turns edits into replacements, in the order of the text. Those of a
// fault with an edit that is not to be found in the text are left out.
func locate(text []byte, edits []edit) []replacement {
	skip := len(text) - len(bytes.TrimPrefix(text, []byte("\ufeff")))
	starts := lineStarts(text[skip:])
	var all []replacement
	lost := map[int]bool{}
	for _, e := range edits {
		start, ok := offset(text[skip:], starts, e.fix.Span.File, e.fix.Span.Start)
		end, ok2 := offset(text[skip:], starts, e.fix.Span.File, e.fix.Span.End)
		if !ok || !ok2 || end < start {
			lost[e.fault] = true
			continue
		}
		all = append(all, replacement{skip + start, skip + end, e.fix.NewText, e.fault})
	}
	all = slices.DeleteFunc(all, func(r replacement) bool { return lost[r.fault] })
	slices.SortStableFunc(all, func(a, b replacement) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.text, b.text))
	})
	return all
}

func lineStarts(text []byte) []int {
	starts := []int{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// offset is where a place of a checked file lies in the text that is to be
// mended; false where that line is another one there. The place after the last
// line is the end.
func offset(text []byte, starts []int, f *source.File, at source.Pos) (int, bool) {
	if at.Line == len(starts)+1 && at.Column == 1 {
		return len(text), true
	}
	if at.Line < 1 || at.Line > len(starts) {
		return 0, false
	}
	start := starts[at.Line-1]
	line, _, _ := bytes.Cut(text[start:], []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if at.Column == 1 {
		return start, true
	}
	if string(line) != f.Line(at.Line) {
		return 0, false
	}
	n := 0
	for column := 1; column < at.Column; column++ {
		if n >= len(line) {
			return 0, false
		}
		_, size := utf8.DecodeRune(line[n:])
		n += size
	}
	return start + n, true
}

// conflicts are the faults that have to wait, or are never mended by themselves.
func conflicts(all []replacement) map[int]bool {
	refused := map[int]bool{}
	last := -1 // the last replacement that is not refused
	for i, r := range all {
		switch {
		case last < 0 || r.start > all[last].end || r.start == all[last].end && r.start < r.end && all[last].start < all[last].end:
		case sameEdit(r, all[last]):
			continue
		case r.start == all[last].start && r.end == all[last].end:
			refused[all[last].fault] = true
			refused[r.fault] = true
			continue
		default:
			refused[r.fault] = true
			continue
		}
		last = i
	}
	return refused
}
