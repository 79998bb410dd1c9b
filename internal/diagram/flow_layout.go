package diagram

import (
	"slices"
	"strings"
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
