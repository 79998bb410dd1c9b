package diagram

import (
	"strings"
	"unicode"
)

// widths are the widths of ASCII characters in thousandths of the font size,
// from the space on: those of DejaVu Sans, the widest of the fonts that the
// picture names, so that a text fits in all of them.
var widths = [...]int{
	318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, // space to /
	636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, // 0 to ?
	1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787, // @ to O
	603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, // P to _
	500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, // ` to o
	635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838, // p to ~
}

// boldFactor is how much wider bold text is, in thousandths.
const boldFactor = 1130

// width is how wide a text is at most, in pixels.
func width(text string, size float64, bold bool) float64 {
	sum := 0
	for _, r := range text {
		sum += widthOf(r)
	}
	w := float64(sum) * size / 1000
	if bold {
		w = w * boldFactor / 1000
	}
	return w
}

func widthOf(r rune) int {
	switch {
	case r >= ' ' && int(r-' ') < len(widths):
		return widths[r-' ']
	case unicode.IsMark(r):
		return 0
	case r >= 0x1100: // Asian scripts, pictures
		return 1250
	}
	return 850
}

// fit cuts a text to a width, with an ellipsis where something is missing.
func fit(text string, size, most float64, bold bool) string {
	text = printable(text)
	if width(text, size, bold) <= most {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && width(string(runes)+"…", size, bold) > most {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + "…"
}

// wrap breaks a text into at most so many lines of a width.
func wrap(text string, size, most float64, lines int) []string {
	var done []string
	line := ""
	words := strings.Fields(printable(text))
	for i, word := range words {
		longer := strings.TrimSpace(line + " " + word)
		if width(longer, size, false) <= most {
			line = longer
			continue
		}
		if len(done) == lines-1 {
			return append(done, fit(line+" "+strings.Join(words[i:], " "), size, most, false))
		}
		if line != "" {
			done = append(done, line)
		}
		line = fit(word, size, most, false)
	}
	if line != "" {
		done = append(done, line)
	}
	return done
}

// printable is a text on one line without anything that XML forbids or that
// changes the direction of what follows.
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
