package diagram

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

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
