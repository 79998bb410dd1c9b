package airefinery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// graph is the workflow of a FlowSuperAgent.
type graph struct {
	owner *agent
	goal  string
	nodes []*node // in the order of the file
	loops []*loop
}

// node is an agent of a workflow.
type node struct {
	*member
	result     string  // variable with its result, null if it did not run
	triage     string  // variable with the conditions that hold; empty without conditions
	conditions []*rule // of the edges and loops that begin at the node
	in         []*edge // edges that lead to the node
	out        []*edge // edges that begin at the node
	first      bool    // only the first condition that holds counts
	sure       *bool   // the result of always; nil before its first call
}

// rule is a condition, which the model decides.
type rule struct {
	text  string
	field string // of the record of the node
	loop  bool   // the condition of a loop
}

// edge leads from a node to one that runs after it.
type edge struct {
	from, to  *node
	rule      *rule // nil: always, or the default
	isDefault bool  // if no condition of the node holds
}

// loop is an edge that leads back.
type loop struct {
	head, tail *node
	rule       *rule
	rounds     int // the maximum number of repetitions
	members    []*node
}

// next is an entry of next_step before its kind is known.
type next struct {
	n        *input.Node // the entry
	target   *input.Node // the name of the agent
	text     string      // the condition; may be empty
	fallback bool        // default: true
	loop     bool        // an entry of the key loop
	rounds   int         // 0: not given
}

// readGraph reads the workflow of a FlowSuperAgent.
func (p *project) readGraph(a *agent) *graph {
	g := &graph{owner: a, goal: strings.TrimSpace(p.Text(a.config, "goal"))}
	for _, m := range a.list {
		g.nodes = append(g.nodes, &node{member: m})
	}
	lists := map[*node][]next{}
	for _, n := range g.nodes {
		n.result = p.ids.New(n.flow.ID+"_result", "result")
		lists[n] = p.nexts(n)
	}
	back := map[*node][]next{}
	for _, n := range g.nodes {
		for _, x := range lists[n] {
			to := p.target(g, x)
			switch {
			case to == nil:
			case x.loop || g.reaches(to, n):
				back[n] = append(back[n], x)
			default:
				g.connect(n, to, x)
			}
		}
	}
	for _, n := range g.nodes {
		for _, x := range back[n] {
			p.addLoop(g, n, x)
		}
		if len(n.conditions) > 0 {
			n.triage = p.ids.New(n.flow.ID+"_triage", "triage")
		}
	}
	return g
}

// nexts reads next_step and loop of a node.
func (p *project) nexts(n *node) []next {
	if n.entry.Kind != input.Map {
		return nil
	}
	p.CheckKeys(n.entry, "an entry of agent_list", "agent_name", "next_step", "mode", "loop")
	switch mode := p.Text(n.entry, "mode"); mode {
	case "first-match":
		n.first = true
	case "", "all-match":
	default:
		p.Malformed(n.entry.Get("mode"), "mode must be all-match or first-match, not %q", mode)
	}
	var all []next
	for _, item := range p.List(n.entry, "next_step") {
		if item.Kind != input.Map {
			all = append(all, next{n: item, target: item})
			continue
		}
		p.CheckKeys(item, "an entry of next_step", "condition", "default", "to", "step_name", "agent_name", "max_iterations")
		all = append(all, p.targets(item, false)...)
	}
	loops := n.entry.Get("loop")
	switch {
	case loops == nil:
	case loops.Kind == input.List:
		for _, item := range p.List(n.entry, "loop") {
			all = append(all, p.loopEntry(item)...)
		}
	default:
		all = append(all, p.loopEntry(loops)...)
	}
	return all
}

// loopEntry reads an entry of the key loop.
func (p *project) loopEntry(item *input.Node) []next {
	if p.AsMap(item, "loop") == nil {
		return nil
	}
	p.CheckKeys(item, "a loop", "condition", "to", "max_iterations")
	return p.targets(item, true)
}

// targets returns the transitions of a mapping, one for each name in its to.
func (p *project) targets(item *input.Node, isLoop bool) []next {
	x := next{n: item, text: strings.TrimSpace(p.Text(item, "condition")), fallback: p.Bool(item, "default"), loop: isLoop, rounds: p.PositiveInt(item, "max_iterations")}
	if x.text == "" && !x.fallback {
		p.Malformed(item, `an entry with "to" needs a condition or default: true`)
		return nil
	}
	to := item.Get("to")
	for _, name := range []string{"step_name", "agent_name"} { // projects write these, too
		if to == nil {
			to = item.Get(name)
		}
	}
	if to == nil {
		p.Malformed(item, `the entry has no "to"`)
		return nil
	}
	names := []*input.Node{to}
	if to.Kind == input.List {
		names = to.Elements()
	}
	var all []next
	for _, name := range names {
		x.target = name
		all = append(all, x)
	}
	return all
}

// target returns the node that a transition leads to, nil if there is none.
func (p *project) target(g *graph, x next) *node {
	if x.target.Kind >= input.List {
		p.Malformed(x.target, "the name of an agent must be a string, not %s", x.target.Describe())
		return nil
	}
	var names []string
	for _, n := range g.nodes {
		if n.name == x.target.Text {
			return n
		}
		names = append(names, n.name)
	}
	p.Add(input.Malformed.At(x.target.Mark(), "%s is not in the agent_list of %s", x.target.Describe(), g.owner.name).WithNearest(x.target.Text, names))
	return nil
}

// rule returns the condition of a node with a text.
func (n *node) rule(text string, isLoop bool) *rule {
	for _, r := range n.conditions {
		if r.text == text && r.loop == isLoop {
			return r
		}
	}
	r := &rule{text: text, field: "condition_" + letters(len(n.conditions)), loop: isLoop}
	n.conditions = append(n.conditions, r)
	return r
}

// letters returns the name of the ith condition: a, b, … z, ba.
func letters(i int) string {
	const base = 26
	if i < base {
		return string(rune('a' + i))
	}
	return letters(i/base) + letters(i%base)
}

// connect adds an edge.
func (g *graph) connect(from, to *node, x next) {
	e := &edge{from: from, to: to, isDefault: x.fallback}
	if x.text != "" {
		e.rule, e.isDefault = from.rule(x.text, false), false
	}
	from.out, to.in = append(from.out, e), append(to.in, e)
}

// reaches reports whether edges lead from a node to another one, or they are the same.
func (g *graph) reaches(from, to *node) bool {
	seen := map[*node]bool{}
	var visit func(n *node) bool
	visit = func(n *node) bool {
		if n == to || seen[n] {
			return n == to
		}
		seen[n] = true
		return slices.ContainsFunc(n.out, func(e *edge) bool { return visit(e.to) })
	}
	return visit(from)
}

// defaultRepeats is the limit of loops, if the file gives no limit.
const defaultRepeats = 3

// addLoop adds a transition that leads back.
func (p *project) addLoop(g *graph, tail *node, x next) {
	head := p.target(g, x)
	l := &loop{head: head, tail: tail, rounds: x.rounds}
	for _, n := range g.nodes {
		if g.reaches(head, n) && g.reaches(n, tail) {
			l.members = append(l.members, n)
		}
	}
	overlaps := slices.ContainsFunc(g.loops, func(other *loop) bool {
		return slices.ContainsFunc(l.members, func(n *node) bool { return slices.Contains(other.members, n) })
	})
	switch {
	case len(l.members) == 0:
		p.Malformed(x.target, "a loop leads back: %s does not run before %s", head.name, tail.name)
		return
	case x.text == "":
		p.Malformed(x.target, "the edge from %s to %s makes a cycle without a condition; ignored", tail.name, head.name)
		return
	case overlaps:
		p.Unsupported(x.target, "the loop from %s to %s shares agents with another loop, which has no counterpart; it is left out", tail.name, head.name)
		return
	}
	if l.rounds == 0 {
		l.rounds = defaultRepeats
		p.Assumed(x.n, "the loop from %s to %s has no max_iterations; using %d", tail.name, head.name, l.rounds)
	}
	l.rule = tail.rule(x.text, true)
	g.loops = append(g.loops, l)
}

// loopOf returns the loop that a node is in, nil if it is in none.
func (g *graph) loopOf(n *node) *loop {
	for _, l := range g.loops {
		if slices.Contains(l.members, n) {
			return l
		}
	}
	return nil
}

// levels returns groups of nodes in the order in which they run; those of a group do not
// depend on each other. Each element is the nodes of a loop, or one node.
func (g *graph) levels(nodes []*node, unit func(*node) []*node) [][][]*node {
	depth := map[*node]int{}
	deepest := 0
	for range nodes { // as often as the longest path at most
		for _, n := range nodes {
			d := 0
			for _, m := range unit(n) {
				for _, e := range m.in {
					if slices.Contains(nodes, e.from) && !slices.Contains(unit(n), e.from) {
						d = max(d, depth[e.from]+1)
					}
				}
			}
			depth[n] = d
			deepest = max(deepest, d)
		}
	}
	all := make([][][]*node, deepest+1)
	done := map[*node]bool{}
	for _, n := range nodes {
		if !done[n] {
			for _, m := range unit(n) {
				done[m] = true
			}
			all[depth[n]] = append(all[depth[n]], unit(n))
		}
	}
	return all
}

// always reports whether a node runs in every run of the workflow.
func (n *node) always() bool {
	if n.sure == nil {
		sure := len(n.in) == 0 || slices.ContainsFunc(n.in, func(e *edge) bool { return e.rule == nil && !e.isDefault && e.from.always() })
		n.sure = &sure
	}
	return *n.sure
}

// condition returns the expression that holds if a node runs, and the variables that it reads.
func (n *node) condition() (text string, reads []string) {
	var parts []string
	set := document.Set{}
	for _, e := range n.in {
		set.Add(e.from.result)
		part := e.from.result + " != nil"
		if when := e.when(); when != "" {
			set.Add(e.from.triage)
			part += " and " + when
		}
		if part = "(" + part + ")"; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " or "), set.Sorted()
}

// when returns the expression that holds if the condition of an edge does, "" without one.
func (e *edge) when() string {
	var not []string
	for _, r := range e.from.conditions {
		if r == e.rule {
			if !e.from.first {
				not = nil
			}
			return strings.Join(append(not, e.from.holds(r)), " and ")
		}
		if !r.loop {
			not = append(not, "not ("+e.from.holds(r)+")")
		}
	}
	if e.isDefault {
		return strings.Join(not, " and ")
	}
	return ""
}

// holds returns the expression of a condition of the node.
func (n *node) holds(r *rule) string { return n.triage + "?." + r.field + " == true" }

// id returns the id of a node in the workflow.
func (g *graph) id(n *node) string {
	return cmp.Or(g.owner.flow.ID, "workflow") + "_" + n.flow.ID
}
