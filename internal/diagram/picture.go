package diagram

// Sizes of the picture, in pixels.
const (
	margin     = 32.0  // around everything
	stepWidth  = 300.0 // a step, and the column of a flow
	resWidth   = 260.0 // a model, a memory, a tool
	pad        = 20.0  // within a flow's box
	header     = 46.0  // the flow's name
	pillHeight = 24.0  // a variable
	laneGap    = 14.0  // between two lines side by side
	trackGap   = 9.0   // between two lines one above the other
	strip      = 96.0  // room for what a line to a resource says
	titleSize  = 22.0  // the application's id
	nameSize   = 14.0  // a step's or resource's id
	noteSize   = 12.0  // its type, a variable
	smallSize  = 11.0  // headings, what a line says
)

// box is a rectangle with its texts.
type box struct {
	class      string // what it is, for the style sheet
	x, y, w, h float64
	round      float64
	texts      []text
	tip        string // shown when pointed at: everything that was cut
}

// text is one line of text; x and y are its anchor on the base line.
type text struct {
	class string
	x, y  float64
	size  float64
	bold  bool
	value string
}

// point is a corner of a line.
type point struct{ x, y float64 }

// line is a line with right angles; its last point has an arrow head.
type line struct {
	class  string
	points []point
	tip    string
	plain  bool // no arrow head
}

// canvas is everything that is drawn, with its place.
type canvas struct {
	w, h  float64
	title string
	boxes []box
	texts []text // those in no box
	lines []line
}

func (p *canvas) add(b box) { p.boxes = append(p.boxes, b) }

// grow makes the picture large enough for a point.
func (p *canvas) grow(x, y float64) { p.w, p.h = max(p.w, x+margin), max(p.h, y+margin) }

// named fills a box with a node's id and the notes below it, from the left edge.
func named(n *node, b box) box {
	b.round, b.tip = 8, n.title
	x, y, room := b.x+14, b.y+23, b.w-28
	b.texts = append(b.texts, text{class: "name", x: x, y: y, size: nameSize, bold: true, value: fit(n.title, nameSize, room, true)})
	for i, note := range n.notes {
		b.tip += "\n" + note
		b.texts = append(b.texts, text{class: "note", x: x, y: y + 18 + 16*float64(i), size: noteSize, value: fit(note, noteSize, room, false)})
	}
	return b
}

// heightOf is how high a box with so many notes is.
func heightOf(notes int) float64 { return 36 + 16*float64(notes) }

// layout places everything: flows one below the other on the left, resources on
// the right, links in between.
func layout(g *graph) *canvas {
	p := &canvas{title: g.title}
	y := margin + titleSize
	p.texts = append(p.texts, text{class: "title", x: margin, y: y, size: titleSize, bold: true, value: fit(g.title, titleSize, 700, true)})
	for _, line := range wrap(g.note, noteSize, 700, 3) {
		y += 18
		p.texts = append(p.texts, text{class: "note", x: margin, y: y, size: noteSize, value: line})
	}
	p.grow(margin+700, y)
	y += 24
	l := &linker{picture: p, at: map[*node]box{}}
	var columns []*flowLayout
	right := 0.0
	for _, f := range g.flows {
		c := columnOf(f)
		columns = append(columns, c)
		right = max(right, margin+c.width())
	}
	bottom := y
	for _, c := range columns {
		bottom = c.place(p, l, bottom, right-margin) + 28
	}
	l.flowsRight = max(right, margin)
	l.resources(g, y)
	l.links(g)
	return p
}
