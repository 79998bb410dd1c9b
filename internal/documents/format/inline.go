package format

import (
	"strings"
	"unicode/utf8"
)

// style is the emphasis of a run.
type style uint8

const (
	bold style = 1 << iota
	italic
	struck
	code
)

// run is a part of a paragraph with one style.
type run struct {
	text  string
	style style
	link  string // the target; empty if the run is not part of a link
}

// inline is the text of a paragraph, a heading or a table cell. White space is
// collapsed when it is written; a line feed in a run with style lineBreak is kept.
type inline struct {
	runs []run
}

// lineBreak is a run of its text that breaks the line.
const lineBreak = "\v"

func (in *inline) add(text string, s style, link string) {
	if text == "" {
		return
	}
	if n := len(in.runs); n > 0 && in.runs[n-1].style == s && in.runs[n-1].link == link {
		in.runs[n-1].text += text
		return
	}
	in.runs = append(in.runs, run{text, s, link})
}

// empty reports whether there is no text but white space.
func (in *inline) empty() bool {
	for _, r := range in.runs {
		if strings.TrimSpace(r.text) != "" {
			return false
		}
	}
	return true
}

// markdown returns the text with its emphasis and links.
func (in *inline) markdown() string {
	runs := normalize(in.runs)
	var b strings.Builder
	for i := 0; i < len(runs); {
		end := i + 1
		for end < len(runs) && runs[end].link == runs[i].link && runs[i].link != "" {
			end++
		}
		if runs[i].link == "" {
			writeRun(&b, runs[i])
		} else {
			writeLink(&b, runs[i:end])
		}
		i = end
	}
	return strings.TrimSpace(b.String())
}

// plain returns the text without emphasis and links.
func (in *inline) plain() string {
	var b strings.Builder
	for _, r := range in.runs {
		b.WriteString(r.text)
	}
	return collapseSpace(b.String())
}

// normalize collapses white space across the runs, drops it next to line breaks, moves
// it out of emphasis, and merges runs of the same style.
func normalize(runs []run) []run {
	var out inline
	space := true // white space at the beginning is dropped
	for _, r := range runs {
		var b strings.Builder
		for _, c := range r.text {
			switch {
			case c == '\v':
				b.WriteRune(c)
				space = true
			case isSpace(c):
				if !space {
					b.WriteByte(' ')
				}
				space = true
			default:
				b.WriteRune(c)
				space = false
			}
		}
		out.addTrimmed(b.String(), r)
	}
	return out.runs
}

// addTrimmed adds the text of a run, with the white space at its ends as runs without
// emphasis.
func (in *inline) addTrimmed(text string, r run) {
	core := strings.Trim(text, " \v")
	if core == "" {
		in.add(text, 0, r.link)
		return
	}
	start := strings.Index(text, core)
	in.add(text[:start], 0, r.link)
	in.add(core, r.style, r.link)
	in.add(text[start+len(core):], 0, r.link)
}

func isSpace(c rune) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\u00a0' || c == '\u2028' || c == '\u2029'
}

// writeRun writes the text of a run in its emphasis.
func writeRun(b *strings.Builder, r run) {
	text := strings.ReplaceAll(r.text, lineBreak, "\n")
	if r.style&code != 0 {
		fence := strings.Repeat("`", longestRun(text, '`')+1)
		if len(fence) > 1 {
			text = " " + text + " "
		}
		text = fence + text + fence
	}
	marks := ""
	if strings.TrimSpace(text) != "" {
		for _, m := range []struct {
			style style
			mark  string
		}{{bold, "**"}, {italic, "*"}, {struck, "~~"}} {
			if r.style&m.style != 0 {
				marks += m.mark
			}
		}
	}
	b.WriteString(marks)
	b.WriteString(text)
	for len(marks) > 0 {
		size := 1
		if strings.HasSuffix(marks, "**") || strings.HasSuffix(marks, "~~") {
			size = 2
		}
		if strings.HasSuffix(marks, "***") { // bold, then italic
			size = 1
		}
		b.WriteString(marks[len(marks)-size:])
		marks = marks[:len(marks)-size]
	}
}

// writeLink writes runs with a common target.
func writeLink(b *strings.Builder, runs []run) {
	var text strings.Builder
	for _, r := range runs {
		writeRun(&text, r)
	}
	whole := strings.ReplaceAll(text.String(), "\n", " ")
	label := strings.TrimSpace(whole)
	if label == "" {
		b.WriteString(whole)
		return
	}
	if whole[0] == ' ' {
		b.WriteByte(' ')
	}
	if whole[len(whole)-1] == ' ' {
		defer b.WriteByte(' ')
	}
	target := strings.TrimSpace(runs[0].link)
	if label == target {
		b.WriteString(target)
		return
	}
	if strings.ContainsAny(target, " ()<>\n\t") {
		target = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\n", "", "\t", "").Replace(target)
	}
	b.WriteString("[" + label + "](" + target + ")")
}

// longestRun returns the length of the longest sequence of c in s.
func longestRun(s string, c byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if n++; s[i] != c {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

// escapeStart escapes the character at the beginning of a line that would make it a
// heading, a list item, a quotation, a rule or a fence.
func escapeStart(line string) string {
	first, size := utf8.DecodeRuneInString(line)
	switch first {
	case '#':
		if rest := strings.TrimLeft(line, "#"); rest == "" || rest[0] == ' ' {
			return `\` + line
		}
	case '>':
		return `\` + line
	case '-', '+', '*', '=', '_':
		if rest := line[size:]; rest == "" || rest[0] == ' ' || strings.Trim(line, string(first)+" ") == "" {
			return `\` + line
		}
	case '`', '~':
		if strings.HasPrefix(line, strings.Repeat(string(first), 3)) {
			return `\` + line
		}
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && digits < 10 && len(line) > digits+1 && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' ' {
		return line[:digits] + `\` + line[digits:]
	}
	return line
}
