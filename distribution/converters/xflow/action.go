package xflow

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// operation writes the actions of a state, one after the other.
func (w *workflow) operation(s *state, f *document.Flow) {
	w.CheckKeys(s.n, "state "+s.name, common("actions", "actionMode")...)
	if w.Text(s.n, "actionMode") == "parallel" {
		w.Ignored(s.n.KeySpan("actionMode"), "state %s: its actions run one after the other", s.name)
	}
	w.actions(s, s.n, f)
}

// callback writes a state that calls a function and waits for an event: the caller's answer.
func (w *workflow) callback(s *state, f *document.Flow) {
	w.CheckKeys(s.n, "state "+s.name, common("action", "eventRef", "eventDataFilter")...)
	if action := w.Map(s.n, "action"); action != nil {
		w.action(s, action, f)
	}
	event := w.Text(s.n, "eventRef")
	if event == "" {
		w.Malformed(s.n, `state %s has no "eventRef"`, s.name)
		return
	}
	fn := w.function("event:"+event, event, "Waits for the event "+event+".")
	w.push(f, w.invokeTool(fn, s.name+"_wait", new(document.Block), nil, w.result(s, fn, s.n.Get("eventRef"), w.Map(s.n, "eventDataFilter"), "data")))
}

// parallel writes a state whose branches run at the same time.
func (w *workflow) parallel(s *state, f *document.Flow) {
	w.CheckKeys(s.n, "state "+s.name, common("branches", "completionType", "numCompleted")...)
	if kind := w.Text(s.n, "completionType"); kind != "" && kind != "allOf" {
		w.Unsupported(s.n.Get("completionType"), "state %s waits for all branches: %s %s has no counterpart", s.name, kind, s.n.Get("numCompleted").Scalar())
	}
	step := &document.Step{Block: w.newBlock("Parallel", s.name+"_branches"), All: true}
	var names document.NameList
	for i, n := range w.List(s.n, "branches") {
		m := w.AsMap(n, fmt.Sprintf("branch %d of state %s", i+1, s.name))
		if m == nil {
			continue
		}
		w.CheckKeys(m, "a branch", "name", "actions", "timeouts")
		branch := w.newFlow(cmp.Or(w.Text(m, "name"), fmt.Sprintf("%s_%d", s.name, i+1)))
		w.actions(s, m, branch)
		w.ensureStep(branch)
		step.Calls = append(step.Calls, branch)
		names = append(names, branch.ID)
	}
	if len(names) == 0 {
		w.Malformed(s.n, `state %s has no "branches"`, s.name)
		return
	}
	if id := shared(step.Calls, w.sharedBy); id != "" {
		w.Assumed(s.n, "state %s: several branches write %s, so they run one after the other", s.name, id)
		for _, branch := range step.Calls {
			b := w.newBlock("InvokeFlow", branch.ID+"_run").Set("flow", branch.ID)
			w.push(f, &document.Step{Block: b, Calls: []*document.Flow{branch}, Bind: true})
		}
		return
	}
	step.Set("flows", names)
	w.push(f, step)
}

// shared returns a variable that several flows write, empty if there is none.
func shared(flows []*document.Flow, isShared func(string) bool) string {
	seen := document.Set{}
	for _, f := range flows {
		own := document.Set{}
		for _, called := range f.CallOrder() {
			for _, step := range called.Steps {
				own.Add(step.Writes...)
			}
		}
		for _, id := range own.Sorted() {
			if seen[id] && isShared(id) {
				return id
			}
		}
		seen.Add(own.Sorted()...)
	}
	return ""
}

// actions writes a list of actions, and returns the variable with the result of the last one.
func (w *workflow) actions(s *state, owner *input.Node, f *document.Flow) (result string) {
	for i, n := range w.List(owner, "actions") {
		if m := w.AsMap(n, fmt.Sprintf("action %d of state %s", i+1, s.name)); m != nil {
			result = w.action(s, m, f)
		}
	}
	return result
}

// action writes a call of a function, and returns the variable with its result, empty without one, and
// if the call has a condition.
func (w *workflow) action(s *state, n *input.Node, f *document.Flow) string {
	w.CheckKeys(n, "an action", "name", "id", "functionRef", "actionDataFilter", "condition", "retryRef", "eventRef", "subFlowRef", "sleep", "nonRetryableErrors", "retryableErrors")
	for _, key := range []string{"eventRef", "subFlowRef", "retryRef", "nonRetryableErrors", "retryableErrors"} {
		if v := n.Get(key); v != nil {
			w.Unsupported(v, "state %s: %s of an action has no counterpart", s.name, key)
		}
	}
	if n.Get("sleep") != nil {
		w.Ignored(n.KeySpan("sleep"), "state %s: sleep of an action ignored", s.name)
	}
	ref := n.Get("functionRef")
	if ref == nil {
		if n.Get("eventRef") == nil && n.Get("subFlowRef") == nil {
			w.Malformed(n, `an action of state %s has no "functionRef"`, s.name)
		}
		return ""
	}
	if when := n.Get("condition"); when != nil {
		text, failed := w.condition(s, outcome{n: n, when: when})
		reads := w.reads
		inner := w.newFlow(cmp.Or(w.Text(n, "name"), s.name) + "_if")
		c := w.newCase(text, inner)
		if failed {
			c.Inline, c.Entries[0].Note = false, "TODO: not translated: "+document.OneLine(when.Text)
		}
		w.call(s, n, ref, inner)
		w.ensureStep(inner)
		w.push(f, &document.Step{Block: w.newBlock("Switch", inner.ID+"_when").Set("cases", []*document.Block{c}), Reads: reads, FirstReads: reads,
			Calls: []*document.Flow{inner}, Branch: true})
		return ""
	}
	return w.call(s, n, ref, f)
}

// call writes the call of a function by its reference: a name, or a mapping with arguments.
func (w *workflow) call(s *state, n, ref *input.Node, f *document.Flow) string {
	name, arguments := ref.Text, (*input.Node)(nil)
	if ref.Kind == input.Map {
		w.CheckKeys(ref, "functionRef", "refName", "arguments", "selectionSet", "invoke")
		for _, key := range []string{"selectionSet", "invoke"} {
			if v := ref.Get(key); v != nil && v.Text != "sync" {
				w.Unsupported(v, "state %s: %s of a function has no counterpart", s.name, key)
			}
		}
		name, arguments = w.RequiredText(ref, "refName", "functionRef"), w.Map(ref, "arguments")
	}
	if name == "" {
		return ""
	}
	filter := w.Map(n, "actionDataFilter")
	id := cmp.Or(w.Text(n, "name"), s.name+"_"+name)
	if w.defined[name] != "" {
		return w.expressionAction(s, name, ref, filter, id, f)
	}
	fn := w.function(name, name, w.aboutFunction(name))
	bindings, reads := w.arguments(s, fn, arguments, id, f)
	to := w.result(s, fn, ref, filter, "results")
	w.push(f, w.invokeTool(fn, id, bindings, reads, to))
	return to
}

// arguments returns the bindings of the arguments of a call, which may be nil, and the variables that
// they read.
func (w *workflow) arguments(s *state, fn *function, arguments *input.Node, id string, f *document.Flow) (bindings *document.Block, reads []string) {
	bindings = &document.Block{Inline: true}
	fn.calls++
	if arguments == nil {
		return bindings, nil
	}
	for _, pair := range arguments.Entries() {
		if !document.IsIdentifier(pair.Key) {
			w.Unsupported(pair.Value, "state %s: the argument %q is left out, as its name is not an id", s.name, pair.Key)
			continue
		}
		if v := w.value(s, pair.Value, pair.Key, id+"_"+pair.Key, f); v != nil {
			fn.accept(pair.Key, v.of)
			bindings.Set(pair.Key, v.id)
			reads = append(reads, v.id)
		}
	}
	return bindings, reads
}

// expressionAction writes the value of a function that is an expression.
func (w *workflow) expressionAction(s *state, name string, ref, filter *input.Node, id string, f *document.Flow) string {
	t := w.jq()
	c, err := t.Translate("fn:" + name)
	if err != nil {
		w.untranslated(ref, "the action is left out", err)
		return ""
	}
	reads := w.reads
	if filter == nil || filter.Get("toStateData") == nil {
		w.Unsupported(ref, "state %s: the value of %s is merged into the data, whose names are not in the file; set toStateData", s.name, name)
		return ""
	}
	w.filterKeys(s, filter, "results")
	to := w.dataTarget(s, filter.Get("toStateData"), c.Type)
	if to != "" {
		w.reads = reads
		w.assign(f, id, to, c.Text())
	}
	return to
}

// argument is a variable with the value of an expression.
type argument struct {
	id string
	of *document.Type
}

// value returns a variable with a value of the file: the one that an expression names, or a new one.
func (w *workflow) value(s *state, n *input.Node, what, name string, f *document.Flow) *argument {
	c := w.constant(n, fmt.Sprintf("state %s: %s", s.name, what))
	if c == nil {
		return nil
	}
	if len(w.reads) == 1 && c.Source == w.reads[0] {
		return &argument{c.Source, w.typeOf(c.Source)}
	}
	of := c.Type.Clone()
	id := w.local(name, of)
	w.assign(f, name+"_value", id, c.Text())
	return &argument{id, of}
}

// statePath is an expression that names one value of the data.
var statePath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.([A-Za-z_][A-Za-z0-9_]*)$`) })

// pathOf returns the name in an expression such as ${ .name }, and whether it is one.
func pathOf(n *input.Node) (string, bool) {
	text := strings.TrimSpace(n.Text)
	if tpl := jq.ParseTemplate(text); len(tpl.Parts) == 1 {
		text = strings.TrimSpace(tpl.Parts[0].Text)
	}
	if m := statePath().FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return "", text == "."
}

// dataTarget returns the variable of the data that an expression names, empty if it names none.
func (w *workflow) dataTarget(s *state, n *input.Node, of *document.Type) string {
	name, ok := pathOf(n)
	if !ok || name == "" {
		w.Unsupported(n, "state %s: only a name of the data, such as ${ .name }, has a counterpart here", s.name)
		return ""
	}
	if of.Kind == document.Unknown {
		return w.datum(name).id // its type follows from its use
	}
	id, fits := w.write(name, of, n)
	if !fits {
		return ""
	}
	return id
}

// filterKeys checks the keys of a data filter; results is its key for a part of the result.
func (w *workflow) filterKeys(s *state, filter *input.Node, results string) {
	w.CheckKeys(filter, "a data filter", "fromStateData", useKey(results), results, "toStateData")
	if v := filter.Get("fromStateData"); v != nil {
		if name, ok := pathOf(v); !ok || name != "" {
			w.Unsupported(v, "state %s: fromStateData has no counterpart; the arguments read the whole data", s.name)
		}
	}
}

// result returns the variable that the result of a function is written to.
func (w *workflow) result(s *state, fn *function, at, filter *input.Node, results string) string {
	part, to := "result", ""
	if filter == nil {
		w.Unsupported(at, "state %s: the result of %s is merged into the data, whose names are not in the file; set toStateData in a data filter", s.name, fn.name)
	} else {
		part, to = w.filtered(s, fn, filter, results)
	}
	if to == "" {
		to = w.local(s.name+"_"+part, &document.Type{Kind: document.Any, Declared: true})
	}
	fn.returns(part, to)
	w.parts.part[to] = part
	return to
}

// filtered returns the part of a result that a data filter selects, and the data that it is written to,
// empty if there is none.
func (w *workflow) filtered(s *state, fn *function, filter *input.Node, results string) (part, to string) {
	w.filterKeys(s, filter, results)
	part = "result"
	if v := filter.Get(results); v != nil {
		name, ok := pathOf(v)
		if !ok {
			w.Unsupported(v, "state %s: only a field of the result, such as ${ .name }, has a counterpart here", s.name)
		}
		part = cmp.Or(name, part)
	}
	use := useKey(results)
	switch v := filter.Get("toStateData"); {
	case filter.Get(use) != nil && !w.Bool(filter, use):
	case v == nil:
		w.Unsupported(filter, "state %s: the result of %s is merged into the data, whose names are not in the file; set toStateData", s.name, fn.name)
	default:
		if to = w.dataTarget(s, v, &document.Type{}); to != "" {
			w.markResult(to)
		}
	}
	return part, to
}

// useKey returns the key of a data filter that decides whether the result is used: useResults for results.
func useKey(results string) string { return "use" + strings.ToUpper(results[:1]) + results[1:] }

// markResult records that data is the result of a function, which may be any value.
func (w *workflow) markResult(id string) {
	for _, d := range w.data {
		if d.id == id {
			d.result = true
		}
	}
}
