package diagram

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// flowLayout arranges a flow: its steps in a column, the variables that each step
// writes below it, and on the left channels of the variables that later steps read.
type flowLayout struct {
	flow         *flow
	rows         map[int][][]*variableLabel // by writer: start or the index of a step
	labels       []*variableLabel
	channelCount int
}

// variableLabel is a variable written by a step or given by the caller.
type variableLabel struct {
	id       string
	writer   int
	readers  []int
	row      int
	w        float64
	box      box
	isDirect bool // its only reader is directly below
	track    int  // the horizontal line below its row that leads to the channel
	channel  int
}

// maxRowWidth leaves space on the right for the line between steps without common
// variables.
const maxRowWidth = stepWidth - 36

// layoutFlow arranges a flow without placing it.
func layoutFlow(f *flow) *flowLayout {
	c := &flowLayout{flow: f, rows: map[int][][]*variableLabel{}}
	c.addVariables(start, f.inputs)
	for i, s := range f.steps {
		c.addVariables(i, idsOf(s.plan.Writes))
	}
	for _, p := range c.labels {
		for _, e := range f.edges {
			if e.from == p.writer && e.label == p.id {
				p.readers = append(p.readers, e.to)
			}
		}
	}
	c.route()
	return c
}

// addVariables puts the variables of a writer in rows.
func (c *flowLayout) addVariables(writer int, ids []string) {
	x := 0.0
	for _, id := range ids {
		p := &variableLabel{id: id, writer: writer, channel: -1}
		p.w = min(textWidth(id, noteSize, false)+24, maxRowWidth)
		rows := c.rows[writer]
		if len(rows) == 0 || x+p.w > maxRowWidth {
			rows, x = append(rows, nil), 0
		}
		p.row = len(rows) - 1
		rows[p.row] = append(rows[p.row], p)
		c.rows[writer] = rows
		x += p.w + 10
		c.labels = append(c.labels, p)
	}
}

// route decides which variables lead straight down, and assigns the others the
// first channel that is free from the writer to the last reader.
func (c *flowLayout) route() {
	var ends []int // by channel, the rank of the last reader
	for _, p := range c.labels {
		if len(p.readers) == 0 {
			continue
		}
		next := c.next(p.writer)
		p.isDirect = len(p.readers) == 1 && p.readers[0] == next && p.row == len(c.rows[p.writer])-1
		if p.isDirect {
			continue
		}
		row := c.rows[p.writer][p.row]
		for _, other := range row[:slices.Index(row, p)] {
			if other.channel >= 0 {
				p.track++
			}
		}
		last := 0
		for _, r := range p.readers {
			last = max(last, c.rank(r))
		}
		p.channel = slices.IndexFunc(ends, func(end int) bool { return end < c.rank(p.writer) })
		if p.channel < 0 {
			p.channel = len(ends)
			ends = append(ends, 0)
		}
		ends[p.channel] = last
	}
	c.channelCount = len(ends)
}

// rank returns the vertical order of a writer or reader.
func (c *flowLayout) rank(at int) int {
	if at == end {
		return len(c.flow.steps)
	}
	return at
}

// next returns the reader below a writer.
func (c *flowLayout) next(writer int) int {
	if writer+1 < len(c.flow.steps) {
		return writer + 1
	}
	return end
}

func (c *flowLayout) width() float64 {
	return max(2*pad+float64(c.channelCount)*channelGap+stepWidth, 2*pad+stepWidth)
}

// place draws the flow at a height and width and returns the height of its end.
func (c *flowLayout) place(p *canvas, l *linker, top, w float64) float64 {
	frame := len(p.boxes)
	p.add(box{})
	x := margin + w - pad - stepWidth
	y := top + header
	c.drawCaption(p, x, y, "inputs")
	if len(c.flow.inputs) > 0 {
		y += 16
	}
	y = c.placeVariables(p, start, x, y)
	steps := make([]box, len(c.flow.steps))
	links := l.countLinks(c.flow.steps)
	for i, s := range c.flow.steps {
		h := max(boxHeight(len(s.notes)), 16+trackGap*float64(max(links[i], c.channelsTo(i))))
		steps[i] = labeledBox(s, box{class: "step " + stepStyleOf(s.plan).class, x: x, y: y, w: stepWidth, h: h})
		p.add(steps[i])
		l.boxes[s] = steps[i]
		y = c.placeVariables(p, i, x, y+h)
	}
	result := box{class: "result", x: x, y: y, w: stepWidth, h: 30, round: 15, tip: "outputs of the flow"}
	if len(c.flow.outputs) > 0 {
		result.h = max(30, 16+trackGap*float64(c.channelsTo(end)))
		result.texts = []text{{class: "note", x: x + 16, y: y + result.h/2 + 4, size: noteSize, value: truncate("result: "+strings.Join(c.flow.outputs, ", "), noteSize, stepWidth-32, false)}}
		p.add(result)
		y += result.h
	}
	if len(c.flow.steps) == 0 {
		p.texts = append(p.texts, text{class: "note", x: x, y: y + 14, size: noteSize, value: "no steps"})
		y += 20
	}
	c.drawEdges(p, steps, result)
	p.boxes[frame] = c.frame(top, w, y+pad)
	l.boxes[&c.flow.node] = p.boxes[frame]
	p.grow(margin+w, y+pad)
	return y + pad
}

func (c *flowLayout) drawCaption(p *canvas, x, y float64, value string) {
	if len(c.flow.inputs) > 0 {
		p.texts = append(p.texts, text{class: "caption", x: x, y: y + 9, size: smallSize, value: value})
	}
}

// frame returns the box around the flow, with its id and interface.
func (c *flowLayout) frame(top, w, bottom float64) box {
	f := c.flow
	b := box{class: "flow", x: margin, y: top, w: w, h: bottom - top, round: 12, tip: "flow " + f.title}
	available := w - 2*pad
	if len(f.notes) > 0 {
		badge := textWidth(f.notes[0], noteSize, false)
		b.texts = append(b.texts, text{class: "badge", x: margin + w - pad - badge, y: top + 28, size: noteSize, value: f.notes[0]})
		available -= badge + 12
	}
	b.texts = append(b.texts, text{class: "name", x: margin + pad, y: top + 28, size: 15, bold: true, value: truncate(f.title, 15, available, true)})
	return b
}

// placeVariables draws the variables of a writer below it and returns the height
// for the next step.
func (c *flowLayout) placeVariables(p *canvas, writer int, x, y float64) float64 {
	for i, row := range c.rows[writer] {
		if y += 10; writer == start && i == 0 {
			y -= 10
		}
		at, tracks := x, 0
		for _, v := range row {
			class := "pill"
			if writer == start {
				class = "pill input"
			}
			v.box = box{class: class, x: at, y: y, w: v.w, h: labelHeight, round: labelHeight / 2, tip: v.id,
				texts: []text{{class: "variable", x: at + 12, y: y + 16, size: noteSize, value: truncate(v.id, noteSize, v.w-20, false)}}}
			p.add(v.box)
			at += v.w + 10
			if v.channel >= 0 {
				tracks++
			}
		}
		y += labelHeight + trackGap*float64(tracks)
	}
	return y + 22
}

// channelsTo returns the number of channels that lead to a reader.
func (c *flowLayout) channelsTo(reader int) int {
	n := 0
	for _, p := range c.labels {
		if p.channel >= 0 && slices.Contains(p.readers, reader) {
			n++
		}
	}
	return n
}

// drawEdges draws the lines from writers to readers.
func (c *flowLayout) drawEdges(p *canvas, steps []box, result box) {
	to := func(at int) box {
		if at == end {
			return result
		}
		return steps[at]
	}
	entered := map[int]int{}
	for _, v := range c.labels {
		middle := v.box.x + v.box.w/2
		if v.writer != start && v.row == 0 {
			p.lines = append(p.lines, line{class: "data", points: []point{{middle, to(v.writer).y + to(v.writer).h}, {middle, v.box.y}}, plain: true, tip: v.id})
		}
		if v.isDirect {
			p.lines = append(p.lines, line{class: "data", points: []point{{middle, v.box.y + v.box.h}, {middle, to(v.readers[0]).y}}, tip: v.id})
		}
		if v.channel < 0 {
			continue
		}
		track := v.box.y + v.box.h + trackGap*float64(v.track+1)
		channelX := result.x - channelGap*float64(v.channel+1)
		for _, r := range v.readers {
			target := to(r)
			entered[r]++
			y := target.y + target.h*float64(entered[r])/float64(c.channelsTo(r)+1)
			p.lines = append(p.lines, line{class: "data", tip: v.id,
				points: []point{{middle, v.box.y + v.box.h}, {middle, track}, {channelX, track}, {channelX, y}, {target.x, y}}})
		}
	}
	for _, e := range c.flow.edges {
		if e.label == "" {
			x := result.x + stepWidth - 14
			p.lines = append(p.lines, line{class: "order", points: []point{{x, steps[e.from].y + steps[e.from].h}, {x, steps[e.to].y}}, tip: "then"})
		}
	}
}

// linker places resources and draws the links to them. All links to one target
// share a trunk, a vertical line.
type linker struct {
	canvas       *canvas
	boxes        map[*node]box
	flowsRight   float64
	resourceLeft float64
	leftTrunks   []trunk // between flows and resources
	rightTrunks  []trunk // to the right of the resources
	linkHeights  []float64
	outgoing     map[*node]int
}

// trunk is the vertical line that all links to a target share.
type trunk struct {
	to    *node
	from  []*node
	verbs []string
	index int // counted from the flows, or from the resources
}

// countLinks returns the number of links of each step.
func (l *linker) countLinks(steps []*node) []int {
	counts := make([]int, len(steps))
	for i, s := range steps {
		seen := map[spec.Entity]bool{}
		for _, u := range spec.UsesOf(s.entity) {
			if to := u.Ref.Entity(); to != nil && to.Kind() != spec.KindVariable {
				seen[to] = true
			}
		}
		counts[i] = len(seen)
	}
	return counts
}

// placeResources draws the resources, with a heading for each kind.
func (l *linker) placeResources(g *graph, top float64) {
	l.addTrunks(g)
	l.resourceLeft = l.flowsRight + 18 + channelGap*float64(len(l.leftTrunks)) + verbWidth
	y := top
	var kind spec.Kind
	for _, n := range g.resources {
		if n.kind != kind {
			if kind != "" {
				y += 12
			}
			kind = n.kind
			l.canvas.texts = append(l.canvas.texts, text{class: "caption", x: l.resourceLeft, y: y + 10, size: smallSize, value: styleOf(kind).plural})
			y += 18
		}
		notes := *n
		if n.kind == spec.KindTelemetry {
			notes.notes = append(slices.Clone(n.notes), "traces steps that call a chat model")
		}
		b := labeledBox(&notes, box{class: "resource " + kindClass(n.kind), x: l.resourceLeft, y: y, w: resourceWidth, h: boxHeight(max(len(notes.notes), 1))})
		l.canvas.add(b)
		l.boxes[n] = b
		l.canvas.grow(l.resourceLeft+resourceWidth, y+b.h)
		y += b.h + 14
	}
}

// kindClass returns the class of a kind in the style sheet.
func kindClass(k spec.Kind) string { return strings.ReplaceAll(string(k), " ", "-") }

// addTrunks groups the links by target.
func (l *linker) addTrunks(g *graph) {
	for _, k := range g.links {
		isResource := k.from.kind != spec.KindStep && k.to.kind != spec.KindFlow
		side := &l.leftTrunks
		if isResource {
			side = &l.rightTrunks
		}
		i := slices.IndexFunc(*side, func(a trunk) bool { return a.to == k.to })
		if i < 0 {
			i = len(*side)
			*side = append(*side, trunk{to: k.to})
		}
		a := &(*side)[i]
		a.from = append(a.from, k.from)
		if !slices.Contains(a.verbs, k.label) {
			a.verbs = append(a.verbs, k.label)
		}
	}
	// Trunks to flows are next to the flows, those to upper resources next to the
	// resources: this avoids crossings.
	slices.SortStableFunc(l.leftTrunks, func(a, b trunk) int { return cmp.Compare(l.order(g, b.to), l.order(g, a.to)) })
	for i := range l.leftTrunks {
		l.leftTrunks[i].index = i
	}
	for i := range l.rightTrunks {
		l.rightTrunks[i].index = i
	}
}

func (l *linker) order(g *graph, n *node) int {
	if i := slices.Index(g.resources, n); i >= 0 {
		return i
	}
	return math.MaxInt
}

// drawLinks draws all trunks.
func (l *linker) drawLinks(g *graph) {
	l.outgoing = map[*node]int{}
	leaves := map[*node]int{} // how many links of a step have a height
	ys := map[[2]*node]float64{}
	for _, k := range g.links {
		if k.from.kind == spec.KindStep {
			b := l.boxes[k.from]
			leaves[k.from]++
			y := b.y + 8 + trackGap*float64(leaves[k.from]-1)
			ys[[2]*node{k.from, k.to}] = y
			l.linkHeights = append(l.linkHeights, y)
		}
	}
	for _, a := range l.leftTrunks {
		l.drawLeftTrunk(a, ys)
	}
	for _, a := range l.rightTrunks {
		l.drawRightTrunk(a)
	}
}

// drawLeftTrunk draws the links from steps to a resource or flow, and those from
// tools to flows.
func (l *linker) drawLeftTrunk(a trunk, ys map[[2]*node]float64) {
	target := l.boxes[a.to]
	x := l.flowsRight + 18 + channelGap*float64(a.index)
	last := point{target.x, l.freeHeight(target.y+target.h/2, target)}
	if a.to.kind == spec.KindFlow {
		last = point{target.x + target.w, target.y + header/2 - 12}
	} else {
		verb := strings.Join(a.verbs, ", ")
		l.canvas.texts = append(l.canvas.texts, text{class: "verb", x: l.resourceLeft - verbWidth + 8, y: last.y - 4, size: smallSize,
			value: truncate(verb, smallSize, verbWidth-24, false)})
	}
	l.linkHeights = append(l.linkHeights, last.y)
	for _, from := range a.from {
		b := l.boxes[from]
		begin := point{b.x + b.w, ys[[2]*node{from, a.to}]}
		if from.kind != spec.KindStep { // a tool that runs a flow
			begin = point{b.x, l.freeHeight(b.y+b.h-6, b)}
			l.linkHeights = append(l.linkHeights, begin.y)
		}
		l.canvas.lines = append(l.canvas.lines, line{class: "link " + kindClass(a.to.kind), tip: from.title + " " + strings.Join(a.verbs, ", ") + " " + a.to.title,
			points: []point{begin, {x, begin.y}, {x, last.y}, last}})
	}
}

// freeHeight returns the height within a box nearest to want at which no other link
// runs.
func (l *linker) freeHeight(want float64, b box) float64 {
	for d := 0.0; d < b.h/2; d++ {
		for _, y := range []float64{want + d, want - d} {
			clear := !slices.ContainsFunc(l.linkHeights, func(other float64) bool { return math.Abs(other-y) < 4 })
			if clear && y > b.y+4 && y < b.y+b.h-4 {
				return y
			}
		}
	}
	return want
}

// drawRightTrunk draws the links from resources to a resource.
func (l *linker) drawRightTrunk(a trunk) {
	target := l.boxes[a.to]
	edge := l.resourceLeft + resourceWidth
	x := edge + verbWidth + channelGap*float64(a.index)
	last := point{edge, target.y + target.h - 9}
	l.canvas.texts = append(l.canvas.texts, text{class: "verb", x: edge + 12, y: last.y - 4, size: smallSize,
		value: truncate(strings.Join(a.verbs, ", "), smallSize, verbWidth-20, false)})
	for _, from := range a.from {
		b := l.boxes[from]
		y := b.y + 8 + 6*float64(l.outgoing[from]%3)
		l.outgoing[from]++
		l.canvas.lines = append(l.canvas.lines, line{class: "link " + kindClass(a.to.kind), tip: from.title + " " + strings.Join(a.verbs, ", ") + " " + a.to.title,
			points: []point{{edge, y}, {x, y}, {x, last.y}, last}})
	}
	l.canvas.grow(x, last.y)
}
