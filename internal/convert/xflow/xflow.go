package xflow

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/diag"
)

// workflow is a workflow of xFlow: states that hand the data on from one to the
// next. It becomes one flow; a state that several others lead to, or that is
// chosen by a condition, becomes a flow of its own.
type workflow struct {
	*input.Report
	app    *document.App
	ids    *document.IDs
	root   *input.Node // the workflow; the list of states where that is all there is
	states []*state
	start  *state
	data   []*dataVar // in the order in which they were met
	guess  bool       // a first look, to find out what is what
	strict bool       // nothing is taken for what it is only mostly

	defined map[string]string // functions that are expressions, by their names
	flows   map[*state]*document.Flow
	handed  document.Set              // those of the translation's own variables that flows hand each other
	locals  map[string]*document.Type // variables of the translation's own
	schemas map[*state]*document.Type // what agents return, by their output schemas
	loops   map[*state]int            // which circle a state belongs to; 0 for none
	parts   parts
	reads   []string // what the expression at hand has read so far
}

// dataVar is a value of the workflow's data, by its name at the top.
type dataVar struct {
	name  string
	id    string // of the variable
	of    *document.Type
	input bool // the caller gives it
	asked bool // an agent returns it, whatever its schema says of null
	nulls bool // an expression compares it with null
}

// state is one state.
type state struct {
	name  string
	kind  string
	n     *input.Node
	cases []outcome
	next  target // where it goes where no case holds
}

// outcome is a condition and where it leads.
type outcome struct {
	n    *input.Node
	when *input.Node // the condition; nil where it is missing
	to   target
}

// target is where a transition leads: to a state, or to the end.
type target struct {
	to  *state
	end bool
}

// Convert converts a workflow, a list of states, one state or a bare memory block.
func Convert(r *input.Report, root *input.Node) *document.App {
	w := &workflow{Report: r, root: root}
	if inner := root.Get("workflow"); len(root.Pairs) == 1 && inner != nil && inner.Kind == input.Map {
		root = inner
	}
	input.NormalizeKeys(root, "memoryId", "memory", "states", "type")
	switch {
	case root.Kind == input.List && memoriesAlone(root):
		return w.bareMemory(root.Items...)
	case root.Kind == input.Map && root.Get("states") == nil && root.Get("memory") != nil && root.Get("type") == nil:
		return w.bareMemory(root)
	case root.Kind == input.Map && root.Get("states") == nil && root.Get("memoryId") != nil:
		return w.bareMemory(&input.Node{Kind: input.Map, Span: root.Span, Pairs: []input.Pair{{Key: "memory", KeySpan: root.Mark(), Value: root}}})
	case root.Kind == input.Map && root.Get("states") == nil && root.Get("type") != nil:
		root = &input.Node{Kind: input.List, Span: root.Span, Items: []*input.Node{root}}
	case root.Kind == input.Map && root.Get("states") == nil:
		r.Malformed(root, `this is no xFlow file: there is no "states" and no "memory"`)
		return nil
	}
	w.root = root
	if !w.read() {
		return nil
	}
	// What expressions read says what data there is, and that says how expressions
	// are translated: they are looked at until nothing new is learned.
	before := r.Muted
	w.schemas = map[*state]*document.Type{}
	for look := range looks {
		r.Muted, w.guess, w.strict = true, true, look < looks-2
		w.build()
	}
	r.Muted, w.guess, w.strict = before, false, false
	w.settle()
	w.build()
	document.AttachMock(w.app, w.ids)
	return w.app
}

// memoriesAlone tells whether a list holds memory blocks and no states.
func memoriesAlone(n *input.Node) bool {
	for _, item := range n.Items {
		input.NormalizeKeys(item, "memoryId", "memory", "type", "name")
		if item.Get("memory") == nil || item.Has("type") || item.Has("name") {
			return false
		}
	}
	return len(n.Items) > 0
}

// looks is how often a workflow is looked at before it is written: what is found
// out in one look about one expression is used for the others in the next.
const looks = 6

// read reads the states and how they lead to each other. It tells whether there is
// one to begin with.
func (w *workflow) read() bool {
	items := w.root.Items
	if w.root.Kind == input.Map {
		w.CheckKeys(w.root, "the workflow", "id", "key", "name", "version", "specVersion", "description", "annotations", "metadata", "start", "states",
			"dataInputSchema", "dataOutputSchema", "expressionLang", "functions", "events", "errors", "retries", "timeouts", "constants", "secrets", "auth", "autoRetries", "keepActive")
		items = w.List(w.root, "states")
		w.readHead()
	}
	for i, n := range items {
		if m := w.AsMap(n, fmt.Sprintf("state %d", i+1)); m != nil {
			w.addState(m)
		}
	}
	if len(w.states) == 0 {
		w.Malformed(w.root, "there is no state")
		return false
	}
	for _, s := range w.states {
		w.readState(s)
	}
	w.findStart()
	w.tellUnreached()
	return true
}

// readHead tells of what stands around the states.
func (w *workflow) readHead() {
	if lang := w.Text(w.root, "expressionLang"); lang != "" && lang != "jq" {
		w.Unsupported(w.root.Get("expressionLang"), "expressions are in %s; only jq is translated", lang)
	}
	engine := []string{"functions", "events", "errors", "retries", "secrets", "auth"}
	if w.readFunctions() {
		engine = engine[1:]
	}
	if c := w.root.Get("constants"); c != nil && c.Kind != input.Map {
		engine = append(engine, "constants")
	}
	for _, key := range engine {
		if v := w.root.Get(key); v != nil && len(v.Items)+len(v.Pairs)+len(v.Text) > 0 {
			w.Add(input.UnsupportedAt(w.root.KeySpan(key), "%q of a workflow is not converted; what needs it is told where it stands", key).WithSeverity(diag.Warning))
		}
	}
	for _, key := range []string{"timeouts", "autoRetries", "keepActive", "dataOutputSchema", "annotations", "metadata"} {
		if w.root.Get(key) != nil {
			w.Ignored(w.root.KeySpan(key), "%s is for the engine and is left out", key)
		}
	}
}

func (w *workflow) addState(n *input.Node) {
	input.NormalizeKeys(n, "name", "type", "transition", "end", "agentOutcomes", "dataConditions", "eventConditions", "defaultCondition")
	name := w.RequiredText(n, "name", "a state")
	if name == "" {
		name = fmt.Sprintf("state_%d", len(w.states)+1)
	}
	if other := w.named(name); other != nil {
		w.Add(input.MalformedAt(n.Get("name").Span, "two states have the name %s; this one cannot be reached", name).WithRelated(other.n.Get("name").Span, "the first one"))
		return
	}
	w.states = append(w.states, &state{name: name, kind: input.FoldName(w.RequiredText(n, "type", "state "+name)), n: n})
}

// named finds a state.
func (w *workflow) named(name string) *state {
	for _, s := range w.states {
		if s.name == name {
			return s
		}
	}
	return nil
}

// readState reads where a state leads.
func (w *workflow) readState(s *state) {
	s.next = w.target(s.n, "state "+s.name)
	switch s.kind {
	case "aiagent":
		s.cases = w.outcomes(s, "agentOutcomes")
	case "switch":
		s.cases = w.outcomes(s, "dataConditions")
		if d := w.Map(s.n, "defaultCondition"); d != nil {
			w.CheckKeys(d, "defaultCondition", "name", "transition", "end", "metadata")
			s.next = w.target(d, "defaultCondition")
		}
		if s.n.Get("eventConditions") != nil {
			w.Unsupported(s.n.Get("eventConditions"), "state %s waits for events, which a flow cannot", s.name)
		}
	}
	if s.next == (target{}) {
		s.next.end = true
		branches := len(s.cases) > 0
		if !branches && s.n.Get("transition") == nil && s.n.Get("end") == nil {
			w.Assumed(s.n, "state %s has neither a transition nor an end; the flow ends there", s.name)
		}
	}
}

// target reads a transition or an end; the zero target where there is neither.
func (w *workflow) target(n *input.Node, owner string) target {
	to := n.Get("transition")
	end := n.Get("end")
	if end != nil && end.Kind == input.Map {
		w.CheckKeys(end, "end", "terminate", "produceEvents", "compensate", "continueAs")
		for _, key := range []string{"produceEvents", "compensate", "continueAs"} {
			if v := end.Get(key); v != nil && !(v.Kind == input.Bool && v.Text == "false") {
				w.Unsupported(v, "%s at the end of %s has no counterpart", key, owner)
			}
		}
	}
	ends := end != nil && (end.Kind == input.Map || w.Bool(n, "end"))
	if to == nil {
		return target{end: ends}
	}
	if ends {
		w.Malformed(end, "%s has a transition and an end; the transition counts", owner)
	}
	name := to
	if to.Kind == input.Map {
		w.CheckKeys(to, "transition", "nextState", "produceEvents", "compensate")
		for _, key := range []string{"produceEvents", "compensate"} {
			if v := to.Get(key); v != nil && !(v.Kind == input.Bool && v.Text == "false") {
				w.Unsupported(v, "%s of a transition has no counterpart", key)
			}
		}
		if name = to.Get("nextState"); name == nil {
			w.Malformed(to, `transition has no "nextState"`)
			return target{end: true}
		}
	}
	return w.resolve(name)
}

// resolve finds the state that a scalar names.
func (w *workflow) resolve(name *input.Node) target {
	if name.Kind >= input.List {
		w.Malformed(name, "the name of a state is a text, not %s", name.Describe())
		return target{end: true}
	}
	if s := w.named(name.Text); s != nil {
		return target{to: s}
	}
	var names []string
	for _, s := range w.states {
		names = append(names, s.name)
	}
	w.Add(input.MalformedAt(name.Span, "there is no state %q; the flow ends here", name.Text).WithNearest(name.Text, names))
	return target{end: true}
}

// outcomes reads conditions and where they lead.
func (w *workflow) outcomes(s *state, key string) []outcome {
	var all []outcome
	for i, n := range w.List(s.n, key) {
		m := w.AsMap(n, fmt.Sprintf("%s %d", key, i+1))
		if m == nil {
			continue
		}
		w.CheckKeys(m, key, "name", "condition", "transition", "end", "finish", "dataFilter", "metadata")
		o := outcome{n: m, when: m.Get("condition"), to: w.target(m, key)}
		if o.when == nil {
			w.Malformed(m, "an entry of %s has no \"condition\"", key)
			continue
		}
		if o.to == (target{}) {
			o.to = s.next // the state's own transition is the default
		}
		if o.to == (target{}) {
			o.to.end = true
		}
		if m.Get("metadata") != nil {
			w.Ignored(m.KeySpan("metadata"), "%s: metadata is left out", key)
		}
		if f := m.Get("dataFilter"); f != nil {
			w.Unsupported(f, "a data filter has no counterpart")
		}
		if f := m.Get("finish"); f != nil && !w.Bool(m, "finish") {
			w.Ignored(m.KeySpan("finish"), "finish: false is left out: the first outcome that holds decides")
		}
		all = append(all, o)
	}
	return all
}

// findStart finds the state that the workflow begins with.
func (w *workflow) findStart() {
	w.start = w.states[0]
	if w.root.Kind != input.Map {
		return
	}
	start := w.root.Get("start")
	if start != nil && start.Kind == input.Map {
		w.CheckKeys(start, "start", "stateName", "schedule")
		if start.Get("schedule") != nil {
			w.Unsupported(start.Get("schedule"), "a schedule has no counterpart: qtype run is called by something else")
		}
		if start = start.Get("stateName"); start == nil {
			w.Malformed(w.root.Get("start"), `start has no "stateName"; the first state is taken`)
			return
		}
	}
	switch {
	case start == nil && len(w.states) > 1:
		w.Add(input.MalformedAt(w.root.Mark(), "the workflow has no \"start\"; it begins with its first state, %s", w.start.name).WithSeverity(diag.Warning))
	case start == nil:
	case w.named(start.Text) != nil:
		w.start = w.named(start.Text)
	default:
		w.resolve(start)
	}
}

// successors are the states that a state can lead to.
func (s *state) successors() []*state {
	var all []*state
	for _, o := range s.cases {
		all = append(all, o.to.to)
	}
	all = append(all, s.next.to)
	return slices.DeleteFunc(all, func(s *state) bool { return s == nil })
}

// reached are the states that can be reached from one, itself among them only
// where a circle leads back.
func (s *state) reached() map[*state]bool {
	found := map[*state]bool{}
	for todo := s.successors(); len(todo) > 0; todo = todo[1:] {
		if !found[todo[0]] {
			found[todo[0]] = true
			todo = append(todo, todo[0].successors()...)
		}
	}
	return found
}

func (w *workflow) tellUnreached() {
	reached := w.start.reached()
	for _, s := range w.states {
		if s != w.start && !reached[s] {
			at := s.n.Mark()
			if n := s.n.Get("name"); n != nil {
				at = n.Span
			}
			w.Ignored(at, "no transition leads to state %s; it is left out", s.name)
		}
	}
	// Two states are in one circle where each leads to the other.
	w.loops = map[*state]int{}
	for i, s := range w.states {
		from := s.reached()
		if !from[s] || w.loops[s] > 0 {
			continue
		}
		for _, other := range w.states {
			if from[other] && other.reached()[s] {
				w.loops[other] = i + 1
			}
		}
	}
}
