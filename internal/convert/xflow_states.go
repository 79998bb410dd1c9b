package convert

import (
	"fmt"
	"strconv"
	"strings"
)

// parts are what a document has besides flows, by what they were in the file.
type parts struct {
	end      *flow
	types    []*inferredType
	models   map[string]string
	memories map[string]*memoryUse
	tools    map[string]*toolUse
	answers  map[*state]*translatedExpr // what agents returned
}

// common are the keys that every state may have.
func common(more ...string) []string {
	return append(more, "name", "type", "transition", "end", "metadata", "onErrors", "timeouts", "compensatedBy", "usedForCompensation", "stateDataFilter", "id", "description")
}

// state writes what a state does and answers the next one, where it does not choose.
func (w *workflow) state(s *state, f *flow) *state {
	before := len(f.steps)
	defer func() {
		if len(f.steps) > before {
			w.describe(s, f.steps[before])
		}
	}()
	switch s.kind {
	case "aiagent":
		w.agent(s, f)
	case "inject":
		w.convertInject(s, f)
	case "switch":
		w.known(s.n, "state "+s.name, common("dataConditions", "eventConditions", "defaultCondition")...)
	case "sleep":
		w.known(s.n, "state "+s.name, common("duration")...)
		w.ignored(s.n.keyAt("type"), "state %s waits; it is passed without waiting", s.name)
	default:
		w.unable(s)
	}
	w.aside(s)
	return s.next.to
}

// describe puts what the file says of a state above its first step.
func (w *workflow) describe(s *state, first *step) {
	if about := w.textOf(s.n, "description"); about != "" {
		first.entries[0].note = about
	}
}

// kinds are the types of states that can be converted.
func kinds() []string { return []string{"aiagent", "inject", "switch", "sleep"} }

// unable tells of a state that cannot be converted; the flow goes on behind it.
func (w *workflow) unable(s *state) {
	n := s.n.get("type")
	if n == nil {
		return // told already
	}
	known := map[string]string{
		"operation": "it calls functions of the engine; a tool and an InvokeTool step do that here",
		"event":     "it waits for events, which a flow cannot",
		"callback":  "it waits for an event, which a flow cannot; a ClientTool can ask the caller",
		"parallel":  "its branches call functions of the engine; a Parallel step runs flows side by side here",
		"foreach":   "it calls functions of the engine; Explode, InvokeFlow and Collect do that here",
		"usertask":  "it asks a person; a ClientTool does that here",

		"aiagentproxy":    "it asks an agent that runs elsewhere; an APITool or a CommandTool can call that here",
		"userproxyagent":  "it asks a person in the name of an agent; a ClientTool does that here",
		"aioutboundagent": "it calls people up, which a flow cannot",
		"subflow":         "it runs another workflow, which is in another file; InvokeFlow runs a flow of the same document",
		"delay":           "it waits, which a flow does not",
	}
	if why := known[s.kind]; why != "" {
		w.unsupported(n, "state %s (%s) is left out: %s", s.name, n.text, why)
		return
	}
	w.add(ruleUnsupported.At(n.span, "state %s: states of type %s cannot be converted; it is left out", s.name, n.text).WithNearest(s.kind, kinds()))
}

// aside tells of what a state has besides its work.
func (w *workflow) aside(s *state) {
	for _, key := range []string{"metadata", "timeouts", "id"} {
		if s.n.get(key) != nil {
			w.ignored(s.n.keyAt(key), "state %s: %s is left out", s.name, key)
		}
	}
	for _, key := range []string{"onErrors", "compensatedBy"} {
		if v := s.n.get(key); v != nil && len(v.items)+len(v.text) > 0 {
			w.unsupported(v, "state %s: %s has no counterpart; a step has on_error and retry", s.name, key)
		}
	}
	if s.n.get("usedForCompensation") != nil && w.truth(s.n, "usedForCompensation") {
		w.unsupported(s.n.get("usedForCompensation"), "state %s undoes what another one did, which has no counterpart", s.name)
	}
	filter := s.n.get("stateDataFilter")
	if filter == nil || w.isMap(filter, "stateDataFilter") == nil {
		return
	}
	w.known(filter, "stateDataFilter", "input", "output")
	for _, p := range filter.pairs {
		if text := strings.Join(strings.Fields(p.value.text), ""); text != "${.}" && text != "." {
			w.unsupported(p.value, "state %s: the filter of its %s has no counterpart", s.name, p.key)
		}
	}
}

// convertInject writes the constants of an inject state.
func (w *workflow) convertInject(s *state, f *flow) {
	w.known(s.n, "state "+s.name, common("data")...)
	data := w.mapOf(s.n, "data")
	if data == nil {
		if s.n.get("data") == nil {
			w.malformed(s.n, `state %s has no "data"`, s.name)
		}
		return
	}
	st := &step{block: w.head("Transform", s.name+"_data")}
	sets := new(block)
	for _, p := range data.pairs {
		c := w.constant(p.value, p.key)
		if c == nil {
			continue
		}
		id, fits := w.write(p.key, c.of, p.value)
		if !fits {
			continue
		}
		sets.set(id, formula(c.whole()))
		st.reads = append(st.reads, w.reads...)
		st.writes = append(st.writes, id)
	}
	if len(sets.entries) == 0 {
		return
	}
	st.set("set", sets)
	w.push(f, st)
}

// constant is a value of the file as an expression; nil where it cannot be said,
// which is told. A text may hold expressions.
func (w *workflow) constant(n *node, what string) *translatedExpr {
	w.reads = nil
	switch n.form {
	case boolean, integer, number:
		c, err := scalarCode(n)
		if err != nil {
			w.unsupported(n, "%s: %s", what, err)
		}
		return c
	case textual:
		return w.constantText(n, what)
	case list:
		return w.constantList(n, what)
	case mapping:
		return w.constantRecord(n, what)
	}
	return &translatedExpr{text: "nil", prec: precAtom, of: &inferredType{optional: true}, null: true}
}

// scalarCode is a truth value, a number or a text as an expression.
func scalarCode(n *node) (*translatedExpr, error) {
	switch n.form {
	case boolean:
		return constant(fmt.Sprint(contains([]string{"true", "yes", "on"}, strings.ToLower(n.text))), isBool), nil
	case textual:
		return quotedCode(n.text), nil
	case integer, number:
		digits, negative := strings.CutPrefix(strings.TrimPrefix(strings.ReplaceAll(n.text, "_", ""), "+"), "-")
		if i, err := strconv.ParseInt(digits, 0, 64); err == nil && len(digits) > 1 && digits[0] == '0' {
			digits = strconv.FormatInt(i, 10) // hexadecimal and its like
		}
		c, err := (&jq{}).literal(digits)
		if err == nil && negative {
			c.text, c.prec = "-"+c.text, precUnary
		}
		return c, err
	}
	return &translatedExpr{text: "nil", prec: precAtom, of: &inferredType{optional: true}, null: true}, nil
}

// constantText is a text, or the value of the one expression that it is.
func (w *workflow) constantText(n *node, what string) *translatedExpr {
	tpl := readTemplate(n.text)
	t := w.jq()
	var c *translatedExpr
	var err error
	switch {
	case !tpl.dynamic() && len(n.text) > maxConcat:
		w.unsupported(n, "%s: a constant text of an expression has at most %d bytes", what, maxConcat)
		return nil
	case !tpl.dynamic():
		return quotedCode(n.text)
	case len(tpl.parts) == 1:
		c, err = t.translate(tpl.parts[0].text)
	default:
		c, err = t.text(tpl)
	}
	if err != nil {
		w.untranslated(n, what+" is null instead", err)
		w.reads = nil
		return &translatedExpr{text: "nil", prec: precAtom, of: &inferredType{optional: true}, null: true}
	}
	if c.null && !c.of.optional {
		of := *c.of
		of.optional = true
		c.of = &of
	}
	return c
}

func (w *workflow) constantList(n *node, what string) *translatedExpr {
	elem := &inferredType{}
	var items, reads []string
	for _, item := range n.items {
		c := w.constant(item, what)
		if c == nil {
			return nil
		}
		reads = append(reads, w.reads...)
		joined, ok := join(elem, c.of)
		if !ok || c.isNil() {
			w.unsupported(item, "%s: a list holds values of one type, and none that are null", what)
			return nil
		}
		elem = joined
		items = append(items, c.inCall())
	}
	w.reads = reads
	return &translatedExpr{text: "[" + strings.Join(items, ", ") + "]", prec: precAtom, of: &inferredType{sort: isList, declared: true, elem: elem}}
}

func (w *workflow) constantRecord(n *node, what string) *translatedExpr {
	of := &inferredType{sort: isRecord, declared: true}
	var items, reads []string
	for _, p := range n.pairs {
		c := w.constant(p.value, what+"."+p.key)
		if c == nil {
			return nil
		}
		reads = append(reads, w.reads...)
		of.fields = append(of.fields, &field{p.key, c.of})
		items = append(items, fmt.Sprintf("%s: %s", quoted(p.key), c.wrap(precOr)))
	}
	w.reads = reads
	return &translatedExpr{text: "{" + strings.Join(items, ", ") + "}", prec: precAtom, of: of}
}
