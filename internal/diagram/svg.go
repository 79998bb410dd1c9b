package diagram

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// rules are the style sheet, in which --NAME is a colour of the palette. Colours only support the texts and
// shapes: nothing is shown by colour alone.
const rules = `
text { fill: --ink; }
.note, .caption, .verb, .badge { fill: --soft; }
.badge { fill: --flow; }
rect { stroke: --frame; stroke-width: 1; fill: --card; }
.paper { stroke: none; fill: --paper; }
.flow rect { fill: --panel; }
.step rect { stroke-width: 1.5; }
.model-call rect { stroke: --model-call; } .flow-call rect { stroke: --flow-call; } .external rect { stroke: --external; } .local rect { stroke: --local; }
.pill rect { stroke: --data; } .input rect { fill: --input; }
.result rect { stroke: --data; fill: --input; }
.resource rect { stroke: --other; stroke-width: 1.5; }
.model rect { stroke: --model; } .memory rect { stroke: --memory; } .tool rect { stroke: --tool; } .index rect { stroke: --index; }
.line { fill: none; stroke-width: 1.5; stroke: --other; }
.head { fill: --other; }
.data .line { stroke: --data; } .data .head { fill: --data; }
.order .line { stroke: --soft; }
.link .line { stroke-width: 1.25; }
.link.flow .line { stroke-dasharray: 5 3; }
.model .line { stroke: --model; } .model .head { fill: --model; }
.memory .line { stroke: --memory; } .memory .head { fill: --memory; }
.tool .line { stroke: --tool; } .tool .head { fill: --tool; }
.index .line { stroke: --index; } .index .head { fill: --index; }
.link.flow .line { stroke: --flow; } .link.flow .head { fill: --flow; }
`

// palette has the colours by their names in rules.
type palette map[string]string

func lightPalette() palette {
	return palette{
		"paper": "#ffffff", "ink": "#1f2933", "soft": "#5b6773", "frame": "#b8c4d0", "panel": "#f5f7fa", "card": "#ffffff",
		"model-call": "#6741d9", "flow-call": "#0b7285", "external": "#b35c00", "local": "#5b6773", "data": "#2f6fb3", "input": "#e3f0fc",
		"model": "#6741d9", "memory": "#2b8a3e", "tool": "#b35c00", "index": "#a61e4d", "flow": "#0b7285", "other": "#5b6773",
	}
}

func darkPalette() palette {
	return palette{
		"paper": "#14181d", "ink": "#e6ebf0", "soft": "#a3afbb", "frame": "#46525f", "panel": "#1b2128", "card": "#242c35",
		"model-call": "#b197fc", "flow-call": "#3bc9db", "external": "#ffa94d", "local": "#a3afbb", "data": "#74b3f0", "input": "#1d3750",
		"model": "#b197fc", "memory": "#69db7c", "tool": "#ffa94d", "index": "#faa2c1", "flow": "#3bc9db", "other": "#a3afbb",
	}
}

// style returns the style sheet. Viewers outside browsers know no variables of CSS, so each palette has its own rules.
func style() string {
	return "\n:root { color-scheme: light dark; }\n.sheet { font-family: Inter, system-ui, -apple-system, \"Segoe UI\", Roboto, \"DejaVu Sans\", Helvetica, Arial, sans-serif; }" +
		lightPalette().coloured() + "@media (prefers-color-scheme: dark) {" + darkPalette().coloured() + "}\n"
}

// colourName matches a colour in rules.
var colourName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--([a-z-]+)`) })

// coloured returns the rules with the colours of the palette.
func (p palette) coloured() string {
	return colourName().ReplaceAllStringFunc(rules, func(name string) string { return p[name[len("--"):]] })
}

// svg returns the graph as a picture without external resources. The attributes are the colours of viewers
// without style sheets, whose default is black.
func svg(g *graph) string {
	p := layout(g)
	plain := lightPalette()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" class="sheet" fill="%s" font-family="Helvetica, Arial, sans-serif">`+"\n",
		formatLength(p.w), formatLength(p.h), formatLength(p.w), formatLength(p.h), plain["ink"])
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escapeXML(p.title), style())
	fmt.Fprintf(&b, `<rect class="paper" width="%s" height="%s" fill="%s"/>`+"\n", formatLength(p.w), formatLength(p.h), plain["paper"])
	var steps []box
	for _, x := range p.boxes {
		if x.class != "flow" {
			steps = append(steps, x)
			continue
		}
		x.draw(&b)
	}
	for _, l := range p.lines {
		l.draw(&b)
	}
	for _, x := range steps {
		x.draw(&b)
	}
	for _, t := range p.texts {
		t.draw(&b)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (x box) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><rect x="%s" y="%s" width="%s" height="%s" rx="%s" fill="%s" stroke="%s"/>`,
		x.class, escapeXML(x.tip), formatLength(x.x), formatLength(x.y), formatLength(x.w), formatLength(x.h), formatLength(x.round), lightPalette()["card"], lightPalette()["frame"])
	for _, t := range x.texts {
		t.draw(b)
	}
	b.WriteString("</g>\n")
}

func (t text) draw(b *strings.Builder) {
	weight := ""
	if t.bold {
		weight = ` font-weight="600"`
	}
	fmt.Fprintf(b, `<text class="%s" x="%s" y="%s" font-size="%s"%s>%s</text>`, t.class, formatLength(t.x), formatLength(t.y), formatLength(t.size), weight, escapeXML(t.value))
}

// draw writes the line with rounded corners.
func (l line) draw(b *strings.Builder) {
	points := withoutCollinear(l.points)
	last := points[len(points)-1]
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><path class="line" fill="none" stroke="%s" d="M%s %s`, l.class, escapeXML(l.tip), lightPalette()["other"], formatLength(points[0].x), formatLength(points[0].y))
	for i := 1; i < len(points)-1; i++ {
		in, out := curvePoint(points[i], points[i-1]), curvePoint(points[i], points[i+1])
		fmt.Fprintf(b, "L%s %sQ%s %s %s %s", formatLength(in.x), formatLength(in.y), formatLength(points[i].x), formatLength(points[i].y), formatLength(out.x), formatLength(out.y))
	}
	fmt.Fprintf(b, `L%s %s"/>`, formatLength(last.x), formatLength(last.y))
	if !l.plain {
		before := points[len(points)-2]
		dx, dy := signOf(last.x-before.x), signOf(last.y-before.y)
		fmt.Fprintf(b, `<path class="head" d="M%s %sL%s %sL%s %sZ"/>`, formatLength(last.x), formatLength(last.y),
			formatLength(last.x-7*dx-3.5*dy), formatLength(last.y-7*dy-3.5*dx), formatLength(last.x-7*dx+3.5*dy), formatLength(last.y-7*dy+3.5*dx))
	}
	b.WriteString("</g>\n")
}

// withoutCollinear removes the points at which a line does not turn.
func withoutCollinear(points []point) []point {
	var kept []point
	for _, p := range points {
		if n := len(kept); n > 0 && kept[n-1] == p {
			continue
		} else if n > 1 && (kept[n-2].x == kept[n-1].x && p.x == kept[n-1].x || kept[n-2].y == kept[n-1].y && p.y == kept[n-1].y) {
			kept = kept[:n-1]
		}
		kept = append(kept, p)
	}
	if len(kept) == 1 {
		kept = append(kept, kept[0])
	}
	return kept
}

// curvePoint returns the start of the curve at a corner: up to 6 pixels away, but
// not beyond the middle of the segment.
func curvePoint(corner, other point) point {
	d := min(6, math.Hypot(other.x-corner.x, other.y-corner.y)/2)
	return point{corner.x + d*signOf(other.x-corner.x), corner.y + d*signOf(other.y-corner.y)}
}

func signOf(f float64) float64 {
	switch {
	case f > 0:
		return 1
	case f < 0:
		return -1
	}
	return 0
}

// formatLength formats a length with at most one decimal.
func formatLength(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }

// escapeXML escapes a text for XML and HTML.
func escapeXML(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, printable(line))
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(strings.Join(lines, "\n"))
}

// Sizes in pixels.
const (
	margin        = 32.0  // around the picture
	stepWidth     = 300.0 // of a step, and of the column of a flow
	resourceWidth = 260.0 // of a model, memory or tool
	pad           = 20.0  // within the box of a flow
	header        = 46.0  // height of a flow's name
	labelHeight   = 24.0  // of a variable
	channelGap    = 14.0  // between vertical lines
	trackGap      = 9.0   // between horizontal lines
	verbWidth     = 96.0  // space for the label of a link
	titleSize     = 22.0  // font size of the application's id
	nameSize      = 14.0  // font size of other ids
	noteSize      = 12.0  // font size of types and variables
	smallSize     = 11.0  // font size of headings and link labels
)

// box is a rectangle with texts.
type box struct {
	class      string // for the style sheet
	x, y, w, h float64
	round      float64
	texts      []text
	tip        string // the tooltip: the texts without truncation
}

// text is one line of text; x and y are the start of its base line.
type text struct {
	class string
	x, y  float64
	size  float64
	bold  bool
	value string
}

// point is a corner of a line.
type point struct{ x, y float64 }

// line is a line with right angles and an arrow head at its end.
type line struct {
	class  string
	points []point
	tip    string
	plain  bool // without an arrow head
}

// canvas is the content of the picture.
type canvas struct {
	w, h  float64
	title string
	boxes []box
	texts []text // outside of boxes
	lines []line
}

func (p *canvas) add(b box) { p.boxes = append(p.boxes, b) }

// grow enlarges the picture to contain a point.
func (p *canvas) grow(x, y float64) { p.w, p.h = max(p.w, x+margin), max(p.h, y+margin) }

// labeledBox adds the id and notes of a node to a box.
func labeledBox(n *node, b box) box {
	b.round, b.tip = 8, n.title
	x, y, available := b.x+14, b.y+23, b.w-28
	b.texts = append(b.texts, text{class: "name", x: x, y: y, size: nameSize, bold: true, value: truncate(n.title, nameSize, available, true)})
	for i, note := range n.notes {
		b.tip += "\n" + note
		b.texts = append(b.texts, text{class: "note", x: x, y: y + 18 + 16*float64(i), size: noteSize, value: truncate(note, noteSize, available, false)})
	}
	return b
}

// boxHeight returns the height of a box with the given number of notes.
func boxHeight(notes int) float64 { return 36 + 16*float64(notes) }

// layout places everything: flows below each other on the left, resources on the
// right, links in between.
func layout(g *graph) *canvas {
	p := &canvas{title: g.title}
	y := margin + titleSize
	p.texts = append(p.texts, text{class: "title", x: margin, y: y, size: titleSize, bold: true, value: truncate(g.title, titleSize, 700, true)})
	for _, line := range wrapText(g.note, noteSize, 700, 3) {
		y += 18
		p.texts = append(p.texts, text{class: "note", x: margin, y: y, size: noteSize, value: line})
	}
	p.grow(margin+700, y)
	y += 24
	l := &linker{canvas: p, boxes: map[*node]box{}}
	var columns []*flowLayout
	right := 0.0
	for _, f := range g.flows {
		c := layoutFlow(f)
		columns = append(columns, c)
		right = max(right, margin+c.width())
	}
	bottom := y
	for _, c := range columns {
		bottom = c.place(p, l, bottom, right-margin) + 28
	}
	l.flowsRight = max(right, margin)
	l.placeResources(g, y)
	l.drawLinks(g)
	return p
}

// htmlPage returns a page with the picture and the Mermaid text. It loads nothing.
func htmlPage(g *graph) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	b.WriteString("<title>" + escapeXML(g.title) + "</title>\n<style>\n" +
		":root { color-scheme: light dark; }\n" +
		"body { margin: 0; font-family: system-ui, sans-serif; background: #fff; color: #1f2933; }\n" +
		"@media (prefers-color-scheme: dark) { body { background: #14181d; color: #e6ebf0; } }\n" +
		".picture { overflow-x: auto; }\n.picture svg { display: block; margin: 0 auto; }\n" +
		"details { margin: 1rem 2rem; }\npre { overflow-x: auto; }\n" +
		"</style>\n</head>\n<body>\n<div class=\"picture\">\n")
	b.WriteString(svg(g))
	b.WriteString("</div>\n<details>\n<summary>Mermaid</summary>\n<pre>")
	b.WriteString(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(mermaid(g)))
	b.WriteString("</pre>\n</details>\n</body>\n</html>\n")
	return b.String()
}

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
