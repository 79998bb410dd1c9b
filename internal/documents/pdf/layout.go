package pdf

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The layout of a page is found from the places of its glyphs alone, because the order in
// which a file draws them is often not that of reading: glyphs become words, words rows,
// rows are divided where a gutter between columns continues over several of them, and
// the rows of a column become paragraphs.

// word is a sequence of glyphs without space.
type word struct {
	text        string
	left, right float64
	size        float64
	bold        bool
}

// row is the words of one baseline, from left to right.
type row struct {
	y     float64
	size  float64
	words []word
}

// maxRows is the maximum number of rows of a page that are searched for columns.
const maxRows = 3000

// layout returns the blocks of a page. Text of each direction is read separately, upright
// text first, unless there is little of it.
func layout(glyphs []glyph) []Block {
	groups := map[int][]glyph{}
	for _, g := range glyphs {
		groups[g.angle] = append(groups[g.angle], g)
	}
	angles := make([]int, 0, len(groups))
	for angle := range groups {
		angles = append(angles, angle)
	}
	weight := func(angle int) int {
		if angle == 0 {
			return 4 * len(groups[0])
		}
		return len(groups[angle])
	}
	slices.SortFunc(angles, func(a, b int) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	var blocks []Block
	for _, angle := range angles {
		rows := rowsOf(groups[angle])
		blocks = append(blocks, divide(rows, 0)...)
	}
	return blocks
}

// rowsOf groups glyphs by their baselines and joins them to words.
func rowsOf(glyphs []glyph) []row {
	slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(b.y, a.y) })
	var rows []row
	for start := 0; start < len(glyphs); {
		end, size := start+1, glyphs[start].size
		for end < len(glyphs) && glyphs[start].y-glyphs[end].y < 0.4*max(size, glyphs[end].size) {
			size = max(size, glyphs[end].size)
			end++
		}
		part := glyphs[start:end]
		slices.SortStableFunc(part, func(a, b glyph) int { return cmp.Compare(a.x, b.x) })
		for _, layer := range layers(part) {
			if words := wordsOf(layer); len(words) > 0 {
				rows = append(rows, sized(mainBaseline(layer), words))
			}
		}
		start = end
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.y, a.y) })
	return rows
}

// layers divides the glyphs of a row, from left to right, where texts are printed one over the other: at least three
// glyphs of a run, and a third of it, overlap others of another run that are not the same.
func layers(glyphs []glyph) [][]glyph {
	length, overlaps := map[int]int{}, map[[2]int]int{}
	last := -1
	for i, g := range glyphs {
		if strings.TrimSpace(g.text) == "" {
			continue
		}
		length[g.run]++
		if last >= 0 && g.run != glyphs[last].run && !g.repeats(glyphs[last]) &&
			glyphs[last].x+glyphs[last].width-g.x > 0.3*min(g.width, glyphs[last].width) {
			overlaps[[2]int{min(g.run, glyphs[last].run), max(g.run, glyphs[last].run)}]++
		}
		last = i
	}
	above := map[int][]int{} // runs and the earlier ones that they overlap
	for pair, n := range overlaps {
		if n >= 3 && 3*n >= min(length[pair[0]], length[pair[1]]) {
			above[pair[1]] = append(above[pair[1]], pair[0])
		}
	}
	if len(above) == 0 {
		return [][]glyph{glyphs}
	}
	layerOf := map[int]int{}
	for _, run := range slices.Sorted(maps.Keys(above)) {
		for _, below := range above[run] {
			layerOf[run] = max(layerOf[run], layerOf[below]+1)
		}
	}
	var out [][]glyph
	for _, g := range glyphs {
		for len(out) <= layerOf[g.run] {
			out = append(out, nil)
		}
		out[layerOf[g.run]] = append(out[layerOf[g.run]], g)
	}
	return out
}

// repeats reports whether a glyph is another one printed again, for bold text.
func (g glyph) repeats(other glyph) bool {
	return g.text == other.text && math.Abs(g.x-other.x) < 0.12*g.size && math.Abs(g.y-other.y) < 0.12*g.size
}

// mainBaseline returns the baseline of the largest glyph.
func mainBaseline(glyphs []glyph) float64 {
	return slices.MaxFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.size, b.size) }).y
}

// wordsOf joins glyphs on a baseline to words.
func wordsOf(glyphs []glyph) []word {
	var words []word
	var text strings.Builder
	current, end, open := word{}, 0.0, false
	accent := "" // drawn before its letter, as TeX does
	flush := func() {
		if open && strings.TrimSpace(text.String()) != "" {
			current.text, current.right = text.String(), end
			words = append(words, current)
		}
		text.Reset()
		open = false
	}
	for i, g := range glyphs {
		if i > 0 && g.repeats(glyphs[i-1]) {
			continue // bold by printing twice
		}
		if strings.TrimSpace(g.text) == "" {
			flush()
			continue
		}
		gap := 0.16
		if isIdeographic(g.text) {
			gap = 0.5
		}
		if open && g.x-end > gap*min(g.size, max(current.size, 0.5*g.size)) {
			flush()
		}
		if !open {
			current, open = word{left: g.x, size: g.size, bold: g.bold}, true
			end = g.x
		}
		current.size = max(current.size, g.size)
		if combining := combiningAccent(g.text); combining != "" && i+1 < len(glyphs) && glyphs[i+1].x < g.x+0.9*g.width {
			accent = combining
			continue
		}
		text.WriteString(norm.NFC.String(expandLigatures(strings.TrimSpace(g.text)) + accent))
		accent = ""
		end = max(end, g.x+g.width)
	}
	flush()
	return words
}

// combiningAccent returns the combining form of an accent; empty for other text.
func combiningAccent(s string) string {
	switch s {
	case "¨":
		return "\u0308"
	case "´":
		return "\u0301"
	case "`":
		return "\u0300"
	case "ˆ":
		return "\u0302"
	case "˜":
		return "\u0303"
	case "ˇ":
		return "\u030c"
	case "˚":
		return "\u030a"
	}
	return ""
}

// isIdeographic reports whether text is of a script without spaces between words.
func isIdeographic(s string) bool {
	for _, r := range s {
		return r >= 0x2e80 && r <= 0x9fff || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xffef || r >= 0x20000 && r <= 0x3ffff
	}
	return false
}

// expandLigatures replaces ligatures that are one character by their letters.
func expandLigatures(s string) string {
	for _, r := range s {
		if r >= 0xfb00 && r <= 0xfb06 || r >= 0x2f00 && r <= 0x2fdf || r == 0xad {
			return ligatures().Replace(s)
		}
	}
	return s
}

func ligatures() *strings.Replacer {
	return strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st", "\u00ad", "-")
}

// divide returns the blocks of rows: it searches rows that a gutter divides into columns
// and reads those column by column.
func divide(rows []row, depth int) []Block {
	if depth > 8 || len(rows) > maxRows || len(rows) < minColumnRows {
		return paragraphs(rows)
	}
	var blocks []Block
	pending := 0
	for i := 0; i < len(rows); {
		end, gutter := columnsFrom(rows[i:])
		if end == 0 {
			i++
			continue
		}
		blocks = append(blocks, paragraphs(rows[pending:i])...)
		left, right := splitRows(rows[i:i+end], gutter)
		blocks = append(blocks, divide(left, depth+1)...)
		blocks = append(blocks, divide(right, depth+1)...)
		i += end
		pending = i
	}
	return append(blocks, paragraphs(rows[pending:])...)
}

// minColumnRows is the minimum number of rows of a column.
const minColumnRows = 3

// interval is a part of a row without text.
type interval struct{ left, right float64 }

// columnsFrom returns how many of the rows, from the first one on, a gutter divides, and
// its place; 0 if they are not columns of text.
func columnsFrom(rows []row) (int, float64) {
	left, right := math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		left, right = min(left, r.words[0].left), max(right, r.words[len(r.words)-1].right)
	}
	gaps := []interval{{left, right}}
	least := 0.7 * medianSize(rows)
	best, gutter := 0, 0.0
	for i, r := range rows {
		gaps = intersect(gaps, r.gaps(left, right), least)
		if len(gaps) == 0 {
			break
		}
		if i+1 < minColumnRows {
			continue
		}
		widest := slices.MaxFunc(gaps, func(a, b interval) int {
			return cmp.Compare(inside(a, rows[:i+1]), inside(b, rows[:i+1]))
		})
		if inside(widest, rows[:i+1]) > 0 {
			best, gutter = i+1, (widest.left+widest.right)/2
		}
	}
	if best > 0 {
		best = trimColumns(rows[:best], gutter)
	}
	if best < minColumnRows || !isProse(rows[:best], gutter) {
		return 0, 0
	}
	return best, gutter
}

// trimColumns returns how many of the rows belong to the columns: rows at the end that
// have text on one side only and a distance from the others do not, such as a heading
// below the columns. It is 0 if the first row is of that kind, or if the text of the two
// sides is not next to each other.
func trimColumns(rows []row, gutter float64) int {
	const both = 3
	sides := make([]int, len(rows)) // 1: left, 2: right
	adjacent, last := 0, 0
	for i, r := range rows {
		if r.words[0].left < gutter {
			sides[i] |= 1
		}
		if r.words[len(r.words)-1].right > gutter {
			sides[i] |= 2
		}
		if sides[i] == both || i > 0 && sides[i]+sides[i-1] == both {
			adjacent++
			last = i
		}
	}
	if adjacent < minColumnRows || adjacent*3 < last {
		return 0
	}
	if distance := rows[0].y - rows[1].y; distance > 2.5*rows[1].size || sides[0] != both && isApart(rows[0], rows[1]) {
		return 0
	}
	for i := 1; i < len(rows); i++ {
		if sides[i] != both && isApart(rows[i-1], rows[i]) {
			return i
		}
	}
	return len(rows)
}

// isApart reports whether the distance of two rows is more than that of lines.
func isApart(above, below row) bool { return above.y-below.y > 1.8*max(above.size, below.size) }

// medianSize returns the median of the sizes of rows.
func medianSize(rows []row) float64 {
	all := make([]float64, len(rows))
	for i, r := range rows {
		all[i] = r.size
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// inside returns the width of a gap that has text on both sides in enough rows; else 0.
func inside(gap interval, rows []row) float64 {
	before, after := 0, 0
	for _, r := range rows {
		if r.words[0].left < gap.left {
			before++
		}
		if r.words[len(r.words)-1].right > gap.right {
			after++
		}
	}
	if before < minColumnRows || after < minColumnRows {
		return 0
	}
	return gap.right - gap.left
}

// gaps returns the parts of a row without text.
func (r row) gaps(left, right float64) []interval {
	var out []interval
	at := left
	for _, w := range r.words {
		if w.left > at {
			out = append(out, interval{at, w.left})
		}
		at = max(at, w.right)
	}
	if at < right {
		out = append(out, interval{at, right})
	}
	return out
}

// intersect returns the common parts of two lists that are at least as wide as least.
func intersect(a, b []interval, least float64) []interval {
	var out []interval
	for i, j := 0, 0; i < len(a) && j < len(b); {
		common := interval{max(a[i].left, b[j].left), min(a[i].right, b[j].right)}
		if common.right-common.left >= least {
			out = append(out, common)
		}
		if a[i].right < b[j].right {
			i++
		} else {
			j++
		}
	}
	return out
}

// isProse reports whether the rows on both sides of a gutter are lines of text, not
// cells of a table: most of them fill their column.
func isProse(rows []row, gutter float64) bool {
	left, right := splitRows(rows, gutter)
	return fills(left) && fills(right)
}

// fills reports whether most rows are nearly as wide as the widest, and of several words.
func fills(rows []row) bool {
	if len(rows) < minColumnRows {
		return false
	}
	widest := 0.0
	for _, r := range rows {
		widest = max(widest, r.width())
	}
	full, words := 0, 0
	for _, r := range rows {
		if r.width() > 0.6*widest {
			full++
		}
		words += len(r.words)
		if isIdeographic(r.words[0].text) {
			words += 4
		}
	}
	return full*2 > len(rows) && words >= 3*len(rows)
}

func (r row) width() float64 { return r.words[len(r.words)-1].right - r.words[0].left }

// splitRows divides rows at a gutter.
func splitRows(rows []row, gutter float64) (left, right []row) {
	for _, r := range rows {
		at := slices.IndexFunc(r.words, func(w word) bool { return w.left > gutter })
		if at < 0 {
			at = len(r.words)
		}
		if at > 0 {
			left = append(left, sized(r.y, r.words[:at]))
		}
		if at < len(r.words) {
			right = append(right, sized(r.y, r.words[at:]))
		}
	}
	return left, right
}

// sized makes a row of words.
func sized(y float64, words []word) row {
	r := row{y: y, words: words}
	for _, w := range words {
		r.size = max(r.size, w.size)
	}
	return r
}
