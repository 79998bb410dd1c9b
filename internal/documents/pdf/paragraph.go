package pdf

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// paragraphs joins the rows of a column to paragraphs and tables.
func paragraphs(rows []row) []Block {
	if len(rows) == 0 {
		return nil
	}
	left, leading := math.Inf(1), leadingOf(rows)
	for _, r := range rows {
		left = min(left, r.words[0].left)
	}
	var blocks []Block
	var open []row
	flush := func() {
		if len(open) > 0 {
			blocks = append(blocks, blockOf(open))
		}
		open = nil
	}
	for i := 0; i < len(rows); i++ {
		if n := tableRows(rows[i:]); n > 0 {
			flush()
			blocks = append(blocks, tableOf(rows[i:i+n]))
			i += n - 1
			continue
		}
		if len(open) > 0 && begins(open, rows[i], left, leading) {
			flush()
		}
		open = append(open, rows[i])
	}
	flush()
	return blocks
}

// leadingOf returns the usual distance of baselines, in sizes of the text.
func leadingOf(rows []row) float64 {
	var steps []float64
	for i := 1; i < len(rows); i++ {
		if step := (rows[i-1].y - rows[i].y) / rows[i].size; step > 0.5 && step < 3 {
			steps = append(steps, step)
		}
	}
	if len(steps) == 0 {
		return 1.2
	}
	slices.Sort(steps)
	return min(steps[len(steps)/2], 1.8)
}

// begins reports whether a row begins a new paragraph after the rows of an open one.
func begins(open []row, next row, left, leading float64) bool {
	last := open[len(open)-1]
	step := (last.y - next.y) / next.size
	if step > leading*1.3+0.05 || step < 0 || math.Abs(last.size-next.size) > 0.15*last.size || startsItem(next) {
		return true
	}
	if last.words[0].bold != next.words[0].bold && allBold(last) != allBold(next) {
		return true
	}
	indent := next.words[0].left - left
	lastIndent := last.words[0].left - left
	return indent > 0.8*next.size && indent < 4*next.size && lastIndent < 0.3*next.size && !startsItem(open[0])
}

func allBold(r row) bool {
	return !slices.ContainsFunc(r.words, func(w word) bool { return !w.bold })
}

// bullets are the characters that begin items of lists.
const bullets = "•●○▪■□◦‣⁃–·*-\uf0b7\uf0a7\uf0d8\uf076"

// startsItem reports whether a row begins with a bullet or a number like "2.".
func startsItem(r row) bool {
	return startsBullet(r) || len(r.words) > 1 && itemNumber().MatchString(r.words[0].text)
}

// itemNumber matches the number of an item of a list.
var itemNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,2}[.)]$`) })

func startsBullet(r row) bool {
	first, size := utf8.DecodeRuneInString(r.words[0].text)
	return len(r.words) > 1 && size == len(r.words[0].text) && strings.ContainsRune(bullets, first)
}

// blockOf joins the rows of a paragraph.
func blockOf(rows []row) Block {
	var b bytes.Buffer
	sizes := map[float64]int{}
	for i, r := range rows {
		words := r.words
		if i == 0 && startsBullet(r) {
			b.WriteString("- ")
			words = words[1:]
		}
		join(&b, lineText(words))
		for _, w := range words {
			sizes[math.Round(w.size*2)/2] += len(w.text)
		}
	}
	size, most := 0.0, 0
	for s, n := range sizes {
		if n > most || n == most && s > size {
			size, most = s, n
		}
	}
	return Block{Text: strings.TrimSpace(b.String()), Size: size}
}

// join appends a line to a paragraph. A word that was divided at the end of the line
// before is joined.
func join(b *bytes.Buffer, line string) {
	before := b.Bytes()
	last, size := utf8.DecodeLastRune(before)
	first, _ := utf8.DecodeRuneInString(line)
	switch {
	case len(before) == 0 || last == ' ':
	case last == '-' || last == '\u2010':
		beforeHyphen, _ := utf8.DecodeLastRune(before[:len(before)-size])
		if unicode.IsLetter(beforeHyphen) && unicode.IsLower(first) {
			b.Truncate(len(before) - size)
		}
	case isIdeographic(string(last)) && isIdeographic(string(first)):
	default:
		b.WriteByte(' ')
	}
	b.WriteString(line)
}

// lineText joins words. Words of scripts that run to the left are in visual order in the
// file; they are put in the order of reading.
func lineText(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	for start := 0; start < len(texts); start++ {
		if !isRightToLeft(texts[start]) {
			continue
		}
		for start > 0 && isNumber(texts[start-1]) { // a number before a word is behind it
			start--
		}
		end := start
		for ; end < len(texts) && (isRightToLeft(texts[end]) || isNumber(texts[end])); end++ {
			texts[end] = reverse(texts[end])
		}
		slices.Reverse(texts[start:end])
		start = end
	}
	return strings.Join(texts, " ")
}

// isRightToLeft reports whether a word has letters of a script that runs to the left.
func isRightToLeft(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= 0x590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac) })
}

// isNumber reports whether a word is a number in the digits of such a script.
func isNumber(s string) bool {
	return strings.TrimFunc(s, func(r rune) bool { return r >= '٠' && r <= '٩' || r >= '۰' && r <= '۹' || r == '.' || r == '٫' }) == ""
}

// reverse returns a word in the other direction: brackets are mirrored, and numbers keep theirs.
func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	const open, closing = "([{«<", ")]}»>"
	for i, c := range r {
		if at := strings.IndexRune(open, c); at >= 0 {
			r[i], _ = utf8.DecodeRuneInString(closing[at:])
		} else if at := strings.IndexRune(closing, c); at >= 0 {
			r[i], _ = utf8.DecodeRuneInString(open[at:])
		}
	}
	for i := 0; i < len(r); i++ {
		end := i
		for end < len(r) && unicode.IsDigit(r[end]) {
			end++
		}
		slices.Reverse(r[i:end])
		i = max(i, end-1)
	}
	return string(r)
}

// cells returns the parts of a row that wide gaps separate.
func (r row) cells() []word {
	var out []word
	from := 0 // the first word of the last cell
	for i, w := range r.words {
		if n := len(out); n > 0 && w.left-out[n-1].right < 1.2*r.size {
			out[n-1].right = w.right
		} else {
			out, from = append(out, w), i
		}
		out[len(out)-1].text = lineText(r.words[from : i+1])
	}
	return out
}

// maxCell is the maximum number of characters of a cell of what is taken for a table.
const maxCell = 120

// tableRows returns how many rows from the first one on are a table: at least three
// successive rows with the same number of cells, whose edges or centers are aligned.
func tableRows(rows []row) int {
	first := rows[0].cells()
	if len(first) < 2 || startsItem(rows[0]) {
		return 0
	}
	n := 1
	for n < len(rows) {
		cells := rows[n].cells()
		if len(cells) != len(first) || !aligned(first, cells, rows[n].size) || rows[n-1].y-rows[n].y > 4*rows[n].size {
			break
		}
		n++
	}
	if n < 3 {
		return 0
	}
	return n
}

// aligned reports whether each cell is below one of another row.
func aligned(above, cells []word, size float64) bool {
	for i := range cells {
		a, c := above[i], cells[i]
		if utf8.RuneCountInString(c.text) > maxCell {
			return false
		}
		overlap := min(a.right, c.right) - max(a.left, c.left)
		if math.Abs(a.left-c.left) > size && math.Abs(a.right-c.right) > size && overlap < 0 {
			return false
		}
	}
	return true
}

// tableOf makes a table of rows.
func tableOf(rows []row) Block {
	b := Block{Size: rows[0].size}
	for _, r := range rows {
		var texts []string
		for _, c := range r.cells() {
			texts = append(texts, c.text)
		}
		b.Rows = append(b.Rows, texts)
	}
	return b
}
