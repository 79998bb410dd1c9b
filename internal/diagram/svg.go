package diagram

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
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
