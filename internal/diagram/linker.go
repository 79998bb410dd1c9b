package diagram

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// linker places resources and draws the links to them. All links to one target
// share a lane: a line from top to bottom that they meet.
type linker struct {
	picture    *canvas
	at         map[*node]box
	flowsRight float64
	resX       float64
	left       []lane // between flows and resources
	right      []lane // beyond the resources
	heights    []float64
	outgoing   map[*node]int
}

// lane is the line that all links to one target share.
type lane struct {
	to    *node
	from  []*node
	verbs []string
	index int // counted from the flows, or from the resources
}

// counts tells how many links leave each step; before they are known the
// references of the steps are counted.
func (l *linker) counts(steps []*node) []int {
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

// resources places what the steps use, under a heading for each kind.
func (l *linker) resources(g *graph, top float64) {
	l.lanes(g)
	l.resX = l.flowsRight + 18 + laneGap*float64(len(l.left)) + strip
	y := top
	var kind spec.Kind
	for _, n := range g.resources {
		if n.kind != kind {
			if kind != "" {
				y += 12
			}
			kind = n.kind
			l.picture.texts = append(l.picture.texts, text{class: "caption", x: l.resX, y: y + 10, size: smallSize, value: styleOf(kind).plural})
			y += 18
		}
		notes := *n
		if n.kind == spec.KindTelemetry {
			notes.notes = append(slices.Clone(n.notes), "traces steps that call a chat model")
		}
		b := named(&notes, box{class: "resource " + class(n.kind), x: l.resX, y: y, w: resWidth, h: heightOf(max(len(notes.notes), 1))})
		l.picture.add(b)
		l.at[n] = b
		l.picture.grow(l.resX+resWidth, y+b.h)
		y += b.h + 14
	}
}

// class is a kind as a name in the style sheet.
func class(k spec.Kind) string { return strings.ReplaceAll(string(k), " ", "-") }

// lanes sorts the links by their targets.
func (l *linker) lanes(g *graph) {
	for _, k := range g.links {
		isResource := k.from.kind != spec.KindStep && k.to.kind != spec.KindFlow
		side := &l.left
		if isResource {
			side = &l.right
		}
		i := slices.IndexFunc(*side, func(a lane) bool { return a.to == k.to })
		if i < 0 {
			i = len(*side)
			*side = append(*side, lane{to: k.to})
		}
		a := &(*side)[i]
		a.from = append(a.from, k.from)
		if !slices.Contains(a.verbs, k.label) {
			a.verbs = append(a.verbs, k.label)
		}
	}
	// Lanes to flows run nearest to the flows; those to upper resources nearest
	// to the resources, which saves crossings.
	slices.SortStableFunc(l.left, func(a, b lane) int { return cmp.Compare(l.order(g, b.to), l.order(g, a.to)) })
	for i := range l.left {
		l.left[i].index = i
	}
	for i := range l.right {
		l.right[i].index = i
	}
}

func (l *linker) order(g *graph, n *node) int {
	if i := slices.Index(g.resources, n); i >= 0 {
		return i
	}
	return math.MaxInt
}

// links draws all lanes.
func (l *linker) links(g *graph) {
	l.outgoing = map[*node]int{}
	leaves := map[*node]int{} // the number of a step's next link
	ys := map[[2]*node]float64{}
	for _, k := range g.links {
		if k.from.kind == spec.KindStep {
			b := l.at[k.from]
			leaves[k.from]++
			y := b.y + 8 + trackGap*float64(leaves[k.from]-1)
			ys[[2]*node{k.from, k.to}] = y
			l.heights = append(l.heights, y)
		}
	}
	for _, a := range l.left {
		l.leftLane(a, ys)
	}
	for _, a := range l.right {
		l.rightLane(a)
	}
}

// leftLane draws the links from steps to a resource or a flow, and those of
// tools to flows.
func (l *linker) leftLane(a lane, ys map[[2]*node]float64) {
	target := l.at[a.to]
	x := l.flowsRight + 18 + laneGap*float64(a.index)
	last := point{target.x, l.free(target.y+target.h/2, target)}
	if a.to.kind == spec.KindFlow {
		last = point{target.x + target.w, target.y + header/2 - 12}
	} else {
		verb := strings.Join(a.verbs, ", ")
		l.picture.texts = append(l.picture.texts, text{class: "verb", x: l.resX - strip + 8, y: last.y - 4, size: smallSize,
			value: fit(verb, smallSize, strip-24, false)})
	}
	l.heights = append(l.heights, last.y)
	for _, from := range a.from {
		b := l.at[from]
		begin := point{b.x + b.w, ys[[2]*node{from, a.to}]}
		if from.kind != spec.KindStep { // a tool that runs a flow
			begin = point{b.x, l.free(b.y+b.h-6, b)}
			l.heights = append(l.heights, begin.y)
		}
		l.picture.lines = append(l.picture.lines, line{class: "link " + class(a.to.kind), tip: from.title + " " + strings.Join(a.verbs, ", ") + " " + a.to.title,
			points: []point{begin, {x, begin.y}, {x, last.y}, last}})
	}
}

// free is the height nearest to the wanted one, within a box, at which no other
// link runs.
func (l *linker) free(want float64, b box) float64 {
	for d := 0.0; d < b.h/2; d++ {
		for _, y := range []float64{want + d, want - d} {
			clear := !slices.ContainsFunc(l.heights, func(other float64) bool { return math.Abs(other-y) < 4 })
			if clear && y > b.y+4 && y < b.y+b.h-4 {
				return y
			}
		}
	}
	return want
}

// rightLane draws the links from resources to a resource.
func (l *linker) rightLane(a lane) {
	target := l.at[a.to]
	edge := l.resX + resWidth
	x := edge + strip + laneGap*float64(a.index)
	last := point{edge, target.y + target.h - 9}
	l.picture.texts = append(l.picture.texts, text{class: "verb", x: edge + 12, y: last.y - 4, size: smallSize,
		value: fit(strings.Join(a.verbs, ", "), smallSize, strip-20, false)})
	for _, from := range a.from {
		b := l.at[from]
		y := b.y + 8 + 6*float64(l.outgoing[from]%3)
		l.outgoing[from]++
		l.picture.lines = append(l.picture.lines, line{class: "link " + class(a.to.kind), tip: from.title + " " + strings.Join(a.verbs, ", ") + " " + a.to.title,
			points: []point{{edge, y}, {x, y}, {x, last.y}, last}})
	}
	l.picture.grow(x, last.y)
}
