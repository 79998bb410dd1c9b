package diagram

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// style is the picture's style sheet. Colours are only a help: everything is
// told by a text or a shape too.
const style = `
:root { color-scheme: light dark; }
.sheet { --paper: #ffffff; --ink: #1f2933; --soft: #5b6773; --frame: #b8c4d0; --panel: #f5f7fa; --card: #ffffff;
  --asks: #6741d9; --runs: #0b7285; --reaches: #b35c00; --shapes: #5b6773; --data: #2f6fb3; --given: #e3f0fc;
  --model: #6741d9; --memory: #2b8a3e; --tool: #b35c00; --index: #a61e4d; --flow: #0b7285; --other: #5b6773;
  font-family: Inter, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) {
  .sheet { --paper: #14181d; --ink: #e6ebf0; --soft: #a3afbb; --frame: #46525f; --panel: #1b2128; --card: #242c35;
    --asks: #b197fc; --runs: #3bc9db; --reaches: #ffa94d; --shapes: #a3afbb; --data: #74b3f0; --given: #1d3750;
    --model: #b197fc; --memory: #69db7c; --tool: #ffa94d; --index: #faa2c1; --flow: #3bc9db; --other: #a3afbb; }
}
.paper { fill: var(--paper); }
text { fill: var(--ink); }
.note, .caption, .verb, .badge { fill: var(--soft); }
.badge { fill: var(--flow); }
rect { stroke: var(--frame); stroke-width: 1; fill: var(--card); }
.flow rect { fill: var(--panel); }
.step rect { stroke-width: 1.5; }
.asks rect { stroke: var(--asks); } .runs rect { stroke: var(--runs); } .reaches rect { stroke: var(--reaches); } .shapes rect { stroke: var(--shapes); }
.pill rect { stroke: var(--data); } .given rect { fill: var(--given); }
.result rect { stroke: var(--data); fill: var(--given); }
.resource rect { stroke: var(--other); stroke-width: 1.5; }
.model rect { stroke: var(--model); } .memory rect { stroke: var(--memory); } .tool rect { stroke: var(--tool); } .index rect { stroke: var(--index); }
.line { fill: none; stroke-width: 1.5; stroke: var(--other); }
.head { fill: var(--other); }
.data .line { stroke: var(--data); } .data .head { fill: var(--data); }
.order .line { stroke: var(--soft); }
.link .line { stroke-width: 1.25; }
.link.flow .line { stroke-dasharray: 5 3; }
.model .line { stroke: var(--model); } .model .head { fill: var(--model); }
.memory .line { stroke: var(--memory); } .memory .head { fill: var(--memory); }
.tool .line { stroke: var(--tool); } .tool .head { fill: var(--tool); }
.index .line { stroke: var(--index); } .index .head { fill: var(--index); }
.link.flow .line { stroke: var(--flow); } .link.flow .head { fill: var(--flow); }
`

// svg draws the graph as one picture that needs nothing beside it.
func svg(g *graph) string {
	p := layout(g)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" class="sheet">`+"\n",
		num(p.w), num(p.h), num(p.w), num(p.h))
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(p.title), style)
	fmt.Fprintf(&b, `<rect class="paper" width="%s" height="%s" stroke="none" style="stroke:none;fill:var(--paper)"/>`+"\n", num(p.w), num(p.h))
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
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><rect x="%s" y="%s" width="%s" height="%s" rx="%s"/>`,
		x.class, escape(x.tip), num(x.x), num(x.y), num(x.w), num(x.h), num(x.round))
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
	fmt.Fprintf(b, `<text class="%s" x="%s" y="%s" font-size="%s"%s>%s</text>`, t.class, num(t.x), num(t.y), num(t.size), weight, escape(t.value))
}

// draw draws the line with rounded corners and an arrow head at its end.
func (l line) draw(b *strings.Builder) {
	points := straight(l.points)
	last := points[len(points)-1]
	fmt.Fprintf(b, `<g class="%s"><title>%s</title><path class="line" d="M%s %s`, l.class, escape(l.tip), num(points[0].x), num(points[0].y))
	for i := 1; i < len(points)-1; i++ {
		in, out := toward(points[i], points[i-1]), toward(points[i], points[i+1])
		fmt.Fprintf(b, "L%s %sQ%s %s %s %s", num(in.x), num(in.y), num(points[i].x), num(points[i].y), num(out.x), num(out.y))
	}
	fmt.Fprintf(b, `L%s %s"/>`, num(last.x), num(last.y))
	if !l.plain {
		before := points[len(points)-2]
		dx, dy := sign1(last.x-before.x), sign1(last.y-before.y)
		fmt.Fprintf(b, `<path class="head" d="M%s %sL%s %sL%s %sZ"/>`, num(last.x), num(last.y),
			num(last.x-7*dx-3.5*dy), num(last.y-7*dy-3.5*dx), num(last.x-7*dx+3.5*dy), num(last.y-7*dy+3.5*dx))
	}
	b.WriteString("</g>\n")
}

// straight drops points at which a line does not turn.
func straight(points []point) []point {
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

// toward is the point at which the curve of a corner begins: at most 6 pixels
// away, and never beyond the middle of the next stretch.
func toward(corner, other point) point {
	d := min(6, math.Hypot(other.x-corner.x, other.y-corner.y)/2)
	return point{corner.x + d*sign1(other.x-corner.x), corner.y + d*sign1(other.y-corner.y)}
}

func sign1(f float64) float64 {
	switch {
	case f > 0:
		return 1
	case f < 0:
		return -1
	}
	return 0
}

// num is a length with at most one digit after the point.
func num(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }

// escape makes a text fit for XML and HTML.
func escape(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, printable(line))
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(strings.Join(lines, "\n"))
}
