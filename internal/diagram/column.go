package diagram

import (
	"slices"
	"strings"
)

// flowLayout is a flow: its steps one below the other, below each step the variables
// that it writes, and on the left the lanes of variables that are read further down.
type flowLayout struct {
	flow  *flow
	rows  map[int][][]*variableLabel // by writer: start or a step
	pills []*variableLabel
	lanes int
}

// variableLabel is a variable that something wrote.
type variableLabel struct {
	id      string
	writer  int
	readers []int
	row     int
	w       float64
	box     box
	down    bool // its only reader is right below
	track   int  // the line below its row that leads to the lane
	lane    int
}

// rowRoom leaves a strip on the right for the line that says that one step
// comes after another.
const rowRoom = stepWidth - 36

// columnOf arranges a flow; nothing has a place yet.
func columnOf(f *flow) *flowLayout {
	c := &flowLayout{flow: f, rows: map[int][][]*variableLabel{}}
	c.write(start, f.inputs)
	for i, s := range f.steps {
		c.write(i, idsOf(s.plan.Writes))
	}
	for _, p := range c.pills {
		for _, e := range f.edges {
			if e.from == p.writer && e.label == p.id {
				p.readers = append(p.readers, e.to)
			}
		}
	}
	c.routes()
	return c
}

// write puts the variables of one writer in rows.
func (c *flowLayout) write(writer int, ids []string) {
	x := 0.0
	for _, id := range ids {
		p := &variableLabel{id: id, writer: writer, lane: -1}
		p.w = min(width(id, noteSize, false)+24, rowRoom)
		rows := c.rows[writer]
		if len(rows) == 0 || x+p.w > rowRoom {
			rows, x = append(rows, nil), 0
		}
		p.row = len(rows) - 1
		rows[p.row] = append(rows[p.row], p)
		c.rows[writer] = rows
		x += p.w + 10
		c.pills = append(c.pills, p)
	}
}

// routes decides which variables go straight down, and gives the others a lane:
// the first that is free from the writer to the last reader.
func (c *flowLayout) routes() {
	var ends []int // by lane, the place of the last reader so far
	for _, p := range c.pills {
		if len(p.readers) == 0 {
			continue
		}
		next := c.after(p.writer)
		p.down = len(p.readers) == 1 && p.readers[0] == next && p.row == len(c.rows[p.writer])-1
		if p.down {
			continue
		}
		row := c.rows[p.writer][p.row]
		for _, other := range row[:slices.Index(row, p)] {
			if other.lane >= 0 {
				p.track++
			}
		}
		last := 0
		for _, r := range p.readers {
			last = max(last, c.rank(r))
		}
		p.lane = slices.IndexFunc(ends, func(end int) bool { return end < c.rank(p.writer) })
		if p.lane < 0 {
			p.lane = len(ends)
			ends = append(ends, 0)
		}
		ends[p.lane] = last
	}
	c.lanes = len(ends)
}

// rank is the place of a writer or reader from top to bottom.
func (c *flowLayout) rank(at int) int {
	if at == end {
		return len(c.flow.steps)
	}
	return at
}

// after is what comes below a writer.
func (c *flowLayout) after(writer int) int {
	if writer+1 < len(c.flow.steps) {
		return writer + 1
	}
	return end
}

func (c *flowLayout) width() float64 {
	return max(2*pad+float64(c.lanes)*laneGap+stepWidth, 2*pad+stepWidth)
}

// place puts the flow at a height, as wide as all flows are, and tells where it ends.
func (c *flowLayout) place(p *canvas, l *linker, top, w float64) float64 {
	frame := len(p.boxes)
	p.add(box{})
	x := margin + w - pad - stepWidth
	y := top + header
	c.caption(p, x, y, "inputs")
	if len(c.flow.inputs) > 0 {
		y += 16
	}
	y = c.placeRows(p, start, x, y)
	steps := make([]box, len(c.flow.steps))
	links := l.counts(c.flow.steps)
	for i, s := range c.flow.steps {
		h := max(heightOf(len(s.notes)), 16+trackGap*float64(max(links[i], c.entries(i))))
		steps[i] = named(s, box{class: "step " + stepStyleOf(s.plan).class, x: x, y: y, w: stepWidth, h: h})
		p.add(steps[i])
		l.at[s] = steps[i]
		y = c.placeRows(p, i, x, y+h)
	}
	result := box{class: "result", x: x, y: y, w: stepWidth, h: 30, round: 15, tip: "what the flow gives back"}
	if len(c.flow.outputs) > 0 {
		result.h = max(30, 16+trackGap*float64(c.entries(end)))
		result.texts = []text{{class: "note", x: x + 16, y: y + result.h/2 + 4, size: noteSize, value: fit("result: "+strings.Join(c.flow.outputs, ", "), noteSize, stepWidth-32, false)}}
		p.add(result)
		y += result.h
	}
	if len(c.flow.steps) == 0 {
		p.texts = append(p.texts, text{class: "note", x: x, y: y + 14, size: noteSize, value: "no steps"})
		y += 20
	}
	c.lines(p, steps, result)
	p.boxes[frame] = c.frame(top, w, y+pad)
	l.at[&c.flow.node] = p.boxes[frame]
	p.grow(margin+w, y+pad)
	return y + pad
}

// caption is a small heading.
func (c *flowLayout) caption(p *canvas, x, y float64, value string) {
	if len(c.flow.inputs) > 0 {
		p.texts = append(p.texts, text{class: "caption", x: x, y: y + 9, size: smallSize, value: value})
	}
}

// frame is the flow's own box with its name and how it is talked to.
func (c *flowLayout) frame(top, w, bottom float64) box {
	f := c.flow
	b := box{class: "flow", x: margin, y: top, w: w, h: bottom - top, round: 12, tip: "flow " + f.title}
	room := w - 2*pad
	if len(f.notes) > 0 {
		badge := width(f.notes[0], noteSize, false)
		b.texts = append(b.texts, text{class: "badge", x: margin + w - pad - badge, y: top + 28, size: noteSize, value: f.notes[0]})
		room -= badge + 12
	}
	b.texts = append(b.texts, text{class: "name", x: margin + pad, y: top + 28, size: 15, bold: true, value: fit(f.title, 15, room, true)})
	return b
}

// placeRows places the variables of a writer below it, and tells where the next step begins.
func (c *flowLayout) placeRows(p *canvas, writer int, x, y float64) float64 {
	for i, row := range c.rows[writer] {
		if y += 10; writer == start && i == 0 {
			y -= 10
		}
		at, tracks := x, 0
		for _, v := range row {
			class := "pill"
			if writer == start {
				class = "pill given"
			}
			v.box = box{class: class, x: at, y: y, w: v.w, h: pillHeight, round: pillHeight / 2, tip: v.id,
				texts: []text{{class: "variable", x: at + 12, y: y + 16, size: noteSize, value: fit(v.id, noteSize, v.w-20, false)}}}
			p.add(v.box)
			at += v.w + 10
			if v.lane >= 0 {
				tracks++
			}
		}
		y += pillHeight + trackGap*float64(tracks)
	}
	return y + 22
}

// entries is how many lanes lead to a reader.
func (c *flowLayout) entries(reader int) int {
	n := 0
	for _, p := range c.pills {
		if p.lane >= 0 && slices.Contains(p.readers, reader) {
			n++
		}
	}
	return n
}

// lines draws the data's ways.
func (c *flowLayout) lines(p *canvas, steps []box, result box) {
	to := func(at int) box {
		if at == end {
			return result
		}
		return steps[at]
	}
	entered := map[int]int{}
	for _, v := range c.pills {
		middle := v.box.x + v.box.w/2
		if v.writer != start && v.row == 0 {
			p.lines = append(p.lines, line{class: "data", points: []point{{middle, to(v.writer).y + to(v.writer).h}, {middle, v.box.y}}, plain: true, tip: v.id})
		}
		if v.down {
			p.lines = append(p.lines, line{class: "data", points: []point{{middle, v.box.y + v.box.h}, {middle, to(v.readers[0]).y}}, tip: v.id})
		}
		if v.lane < 0 {
			continue
		}
		track := v.box.y + v.box.h + trackGap*float64(v.track+1)
		lane := result.x - laneGap*float64(v.lane+1)
		for _, r := range v.readers {
			target := to(r)
			entered[r]++
			y := target.y + target.h*float64(entered[r])/float64(c.entries(r)+1)
			p.lines = append(p.lines, line{class: "data", tip: v.id,
				points: []point{{middle, v.box.y + v.box.h}, {middle, track}, {lane, track}, {lane, y}, {target.x, y}}})
		}
	}
	for _, e := range c.flow.edges {
		if e.label == "" {
			x := result.x + stepWidth - 14
			p.lines = append(p.lines, line{class: "order", points: []point{{x, steps[e.from].y + steps[e.from].h}, {x, steps[e.to].y}}, tip: "then"})
		}
	}
}
