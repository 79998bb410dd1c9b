package diagram

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
