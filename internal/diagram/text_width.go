package diagram

import (
	"strings"
	"unicode"
)

// asciiWidths are the widths of ASCII characters, from the space on, in thousandths
// of the font size. They are those of DejaVu Sans, the widest font of the style
// sheet, so that a text fits in all of them.
var asciiWidths = [...]int{
	318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, // space to /
	636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, // 0 to ?
	1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787, // @ to O
	603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, // P to _
	500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, // ` to o
	635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838, // p to ~
}

// boldPermille is the relative width of bold text, in thousandths.
const boldPermille = 1130

// textWidth returns an upper bound of the width of a text, in pixels.
func textWidth(text string, size float64, bold bool) float64 {
	sum := 0
	for _, r := range text {
		sum += runeWidth(r)
	}
	w := float64(sum) * size / 1000
	if bold {
		w = w * boldPermille / 1000
	}
	return w
}

func runeWidth(r rune) int {
	switch {
	case r >= ' ' && int(r-' ') < len(asciiWidths):
		return asciiWidths[r-' ']
	case unicode.IsMark(r):
		return 0
	case r >= 0x1100: // Asian scripts, emoji
		return 1250
	}
	return 850
}

// truncate shortens a text to a width, with an ellipsis.
func truncate(text string, size, limit float64, bold bool) string {
	text = printable(text)
	if textWidth(text, size, bold) <= limit {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && textWidth(string(runes)+"…", size, bold) > limit {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + "…"
}

// wrapText breaks a text into lines of a width. The last line is truncated.
func wrapText(text string, size, limit float64, lines int) []string {
	var done []string
	line := ""
	words := strings.Fields(printable(text))
	for i, word := range words {
		longer := strings.TrimSpace(line + " " + word)
		if textWidth(longer, size, false) <= limit {
			line = longer
			continue
		}
		if len(done) == lines-1 {
			return append(done, truncate(line+" "+strings.Join(words[i:], " "), size, limit, false))
		}
		if line != "" {
			done = append(done, line)
		}
		line = truncate(word, size, limit, false)
	}
	if line != "" {
		done = append(done, line)
	}
	return done
}

// printable replaces control characters and characters that XML forbids or that change
// the text direction.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return '\uFFFD'
		}
		return r
	}, text)
}
