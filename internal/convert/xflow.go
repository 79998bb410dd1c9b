package convert

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/spec/diag"
)

// workflow is a workflow of xFlow: states that hand the data on from one to the
// next. It becomes one flow; a state that several others lead to, or that is
// chosen by a condition, becomes a flow of its own.
type workflow struct {
	*report
	app    *application
	ids    *names
	root   *node // the workflow; the list of states where that is all there is
	states []*state
	start  *state
	data   []*dataVar // in the order in which they were met
	guess  bool       // a first look, to find out what is what
	strict bool       // nothing is taken for what it is only mostly

	defined map[string]string // functions that are expressions, by their names
	flows   map[*state]*flow
	handed  set                      // those of the translation's own variables that flows hand each other
	locals  map[string]*inferredType // variables of the translation's own
	schemas map[*state]*inferredType // what agents return, by their output schemas
	loops   map[*state]int           // which circle a state belongs to; 0 for none
	parts   parts
	reads   []string // what the expression at hand has read so far
}

// dataVar is a value of the workflow's data, by its name at the top.
type dataVar struct {
	name  string
	id    string // of the variable
	of    *inferredType
	input bool // the caller gives it
	asked bool // an agent returns it, whatever its schema says of null
	nulls bool // an expression compares it with null
}

// state is one state.
type state struct {
	name  string
	kind  string
	n     *node
	cases []outcome
	next  target // where it goes where no case holds
}

// outcome is a condition and where it leads.
type outcome struct {
	n    *node
	when *node // the condition; nil where it is missing
	to   target
}

// target is where a transition leads: to a state, or to the end.
type target struct {
	to  *state
	end bool
}

// xflow converts a workflow, a list of states, one state or a bare memory block.
func xflow(r *report, root *node) *application {
	w := &workflow{report: r, root: root}
	if inner := root.get("workflow"); len(root.pairs) == 1 && inner != nil && inner.form == mapping {
		root = inner
	}
	spell(root, "memoryId", "memory", "states", "type")
	switch {
	case root.form == list && memoriesAlone(root):
		return w.bareMemory(root.items...)
	case root.form == mapping && root.get("states") == nil && root.get("memory") != nil && root.get("type") == nil:
		return w.bareMemory(root)
	case root.form == mapping && root.get("states") == nil && root.get("memoryId") != nil:
		return w.bareMemory(&node{form: mapping, span: root.span, pairs: []pair{{key: "memory", at: root.mark(), value: root}}})
	case root.form == mapping && root.get("states") == nil && root.get("type") != nil:
		root = &node{form: list, span: root.span, items: []*node{root}}
	case root.form == mapping && root.get("states") == nil:
		r.malformed(root, `this is no xFlow file: there is no "states" and no "memory"`)
		return nil
	}
	w.root = root
	if !w.read() {
		return nil
	}
	// What expressions read says what data there is, and that says how expressions
	// are translated: they are looked at until nothing new is learned.
	before := r.mute
	w.schemas = map[*state]*inferredType{}
	for look := range looks {
		r.mute, w.guess, w.strict = true, true, look < looks-2
		w.build()
	}
	r.mute, w.guess, w.strict = before, false, false
	w.settle()
	w.build()
	attachMock(w.app, w.ids)
	return w.app
}

// memoriesAlone tells whether a list holds memory blocks and no states.
func memoriesAlone(n *node) bool {
	for _, item := range n.items {
		spell(item, "memoryId", "memory", "type", "name")
		if item.get("memory") == nil || item.has("type") || item.has("name") {
			return false
		}
	}
	return len(n.items) > 0
}

// looks is how often a workflow is looked at before it is written: what is found
// out in one look about one expression is used for the others in the next.
const looks = 6

// read reads the states and how they lead to each other. It tells whether there is
// one to begin with.
func (w *workflow) read() bool {
	items := w.root.items
	if w.root.form == mapping {
		w.known(w.root, "the workflow", "id", "key", "name", "version", "specVersion", "description", "annotations", "metadata", "start", "states",
			"dataInputSchema", "dataOutputSchema", "expressionLang", "functions", "events", "errors", "retries", "timeouts", "constants", "secrets", "auth", "autoRetries", "keepActive")
		items = w.listOf(w.root, "states")
		w.readHead()
	}
	for i, n := range items {
		if m := w.isMap(n, fmt.Sprintf("state %d", i+1)); m != nil {
			w.addState(m)
		}
	}
	if len(w.states) == 0 {
		w.malformed(w.root, "there is no state")
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
	if lang := w.textOf(w.root, "expressionLang"); lang != "" && lang != "jq" {
		w.unsupported(w.root.get("expressionLang"), "expressions are in %s; only jq is translated", lang)
	}
	engine := []string{"functions", "events", "errors", "retries", "secrets", "auth"}
	if w.readFunctions() {
		engine = engine[1:]
	}
	if c := w.root.get("constants"); c != nil && c.form != mapping {
		engine = append(engine, "constants")
	}
	for _, key := range engine {
		if v := w.root.get(key); v != nil && len(v.items)+len(v.pairs)+len(v.text) > 0 {
			w.add(ruleUnsupported.At(w.root.keyAt(key), "%q of a workflow is not converted; what needs it is told where it stands", key).WithSeverity(diag.Warning))
		}
	}
	for _, key := range []string{"timeouts", "autoRetries", "keepActive", "dataOutputSchema", "annotations", "metadata"} {
		if w.root.get(key) != nil {
			w.ignored(w.root.keyAt(key), "%s is for the engine and is left out", key)
		}
	}
}

func (w *workflow) addState(n *node) {
	spell(n, "name", "type", "transition", "end", "agentOutcomes", "dataConditions", "eventConditions", "defaultCondition")
	name := w.needText(n, "name", "a state")
	if name == "" {
		name = fmt.Sprintf("state_%d", len(w.states)+1)
	}
	if other := w.named(name); other != nil {
		w.add(ruleForm.At(n.get("name").span, "two states have the name %s; this one cannot be reached", name).WithRelated(other.n.get("name").span, "the first one"))
		return
	}
	w.states = append(w.states, &state{name: name, kind: foldCase(w.needText(n, "type", "state "+name)), n: n})
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
		if d := w.mapOf(s.n, "defaultCondition"); d != nil {
			w.known(d, "defaultCondition", "name", "transition", "end", "metadata")
			s.next = w.target(d, "defaultCondition")
		}
		if s.n.get("eventConditions") != nil {
			w.unsupported(s.n.get("eventConditions"), "state %s waits for events, which a flow cannot", s.name)
		}
	}
	if s.next == (target{}) {
		s.next.end = true
		branches := len(s.cases) > 0
		if !branches && s.n.get("transition") == nil && s.n.get("end") == nil {
			w.assumed(s.n, "state %s has neither a transition nor an end; the flow ends there", s.name)
		}
	}
}

// target reads a transition or an end; the zero target where there is neither.
func (w *workflow) target(n *node, owner string) target {
	to := n.get("transition")
	end := n.get("end")
	if end != nil && end.form == mapping {
		w.known(end, "end", "terminate", "produceEvents", "compensate", "continueAs")
		for _, key := range []string{"produceEvents", "compensate", "continueAs"} {
			if v := end.get(key); v != nil && !(v.form == boolean && v.text == "false") {
				w.unsupported(v, "%s at the end of %s has no counterpart", key, owner)
			}
		}
	}
	ends := end != nil && (end.form == mapping || w.truth(n, "end"))
	if to == nil {
		return target{end: ends}
	}
	if ends {
		w.malformed(end, "%s has a transition and an end; the transition counts", owner)
	}
	name := to
	if to.form == mapping {
		w.known(to, "transition", "nextState", "produceEvents", "compensate")
		for _, key := range []string{"produceEvents", "compensate"} {
			if v := to.get(key); v != nil && !(v.form == boolean && v.text == "false") {
				w.unsupported(v, "%s of a transition has no counterpart", key)
			}
		}
		if name = to.get("nextState"); name == nil {
			w.malformed(to, `transition has no "nextState"`)
			return target{end: true}
		}
	}
	return w.resolve(name)
}

// resolve finds the state that a scalar names.
func (w *workflow) resolve(name *node) target {
	if name.form >= list {
		w.malformed(name, "the name of a state is a text, not %s", name.described())
		return target{end: true}
	}
	if s := w.named(name.text); s != nil {
		return target{to: s}
	}
	var names []string
	for _, s := range w.states {
		names = append(names, s.name)
	}
	w.add(ruleForm.At(name.span, "there is no state %q; the flow ends here", name.text).WithNearest(name.text, names))
	return target{end: true}
}

// outcomes reads conditions and where they lead.
func (w *workflow) outcomes(s *state, key string) []outcome {
	var all []outcome
	for i, n := range w.listOf(s.n, key) {
		m := w.isMap(n, fmt.Sprintf("%s %d", key, i+1))
		if m == nil {
			continue
		}
		w.known(m, key, "name", "condition", "transition", "end", "finish", "dataFilter", "metadata")
		o := outcome{n: m, when: m.get("condition"), to: w.target(m, key)}
		if o.when == nil {
			w.malformed(m, "an entry of %s has no \"condition\"", key)
			continue
		}
		if o.to == (target{}) {
			o.to = s.next // the state's own transition is the default
		}
		if o.to == (target{}) {
			o.to.end = true
		}
		if m.get("metadata") != nil {
			w.ignored(m.keyAt("metadata"), "%s: metadata is left out", key)
		}
		if f := m.get("dataFilter"); f != nil {
			w.unsupported(f, "a data filter has no counterpart")
		}
		if f := m.get("finish"); f != nil && !w.truth(m, "finish") {
			w.ignored(m.keyAt("finish"), "finish: false is left out: the first outcome that holds decides")
		}
		all = append(all, o)
	}
	return all
}

// findStart finds the state that the workflow begins with.
func (w *workflow) findStart() {
	w.start = w.states[0]
	if w.root.form != mapping {
		return
	}
	start := w.root.get("start")
	if start != nil && start.form == mapping {
		w.known(start, "start", "stateName", "schedule")
		if start.get("schedule") != nil {
			w.unsupported(start.get("schedule"), "a schedule has no counterpart: qtype run is called by something else")
		}
		if start = start.get("stateName"); start == nil {
			w.malformed(w.root.get("start"), `start has no "stateName"; the first state is taken`)
			return
		}
	}
	switch {
	case start == nil && len(w.states) > 1:
		w.add(ruleForm.At(w.root.mark(), "the workflow has no \"start\"; it begins with its first state, %s", w.start.name).WithSeverity(diag.Warning))
	case start == nil:
	case w.named(start.text) != nil:
		w.start = w.named(start.text)
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
			at := s.n.mark()
			if n := s.n.get("name"); n != nil {
				at = n.span
			}
			w.ignored(at, "no transition leads to state %s; it is left out", s.name)
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
