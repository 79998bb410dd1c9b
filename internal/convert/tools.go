package convert

import "fmt"

// toolUse is a tool and how it was declared first.
type toolUse struct {
	id     string
	n      *node
	source string
}

// toolsOf declares the tools of a state and answers their ids.
func (w *workflow) toolsOf(s *state) []string {
	var ids []string
	for i, n := range w.listOf(s.n, "tools") {
		m := w.isMap(n, fmt.Sprintf("tool %d of state %s", i+1, s.name))
		if m == nil {
			continue
		}
		if id := w.tool(m, s); id != "" && !contains(ids, id) {
			ids = append(ids, id)
		} else if id != "" {
			w.malformed(m, "state %s has the tool %s twice", s.name, id)
		}
	}
	return ids
}

// tool declares a tool, or finds the one of another state that is declared alike.
func (w *workflow) tool(n *node, s *state) string {
	w.known(n, "a tool", "name", "description", "parameters", "output", "executionMode", "metadata")
	name := w.needText(n, "name", "a tool of state "+s.name)
	if name == "" {
		return ""
	}
	if w.parts.tools == nil {
		w.parts.tools = map[string]*toolUse{}
	}
	source := n.source()
	had := w.parts.tools[name]
	if had != nil && had.source == source {
		return had.id
	}
	if had != nil {
		w.add(ruleChosen.At(n.mark(), "the tool %s is declared differently elsewhere; both are kept, under two ids", name).WithRelated(had.n.mark(), "the other one"))
	}
	use := &toolUse{id: w.ids.id(name, "tool"), n: n, source: source}
	w.parts.tools[name] = use
	for _, key := range []string{"executionMode", "metadata"} {
		if n.get(key) != nil {
			w.ignored(n.keyAt(key), "tool %s: %s is left out", name, key)
		}
	}
	w.app.tools = append(w.app.tools, w.declareTool(n, use.id, name))
	return use.id
}

// source is a value's content as one text, to compare two.
func (n *node) source() string {
	s := fmt.Sprintf("%d %q", n.form, n.text)
	for _, item := range n.items {
		s += "[" + item.source() + "]"
	}
	for _, p := range n.pairs {
		s += "{" + p.key + " " + p.value.source() + "}"
	}
	return s
}

// declareTool is a ClientTool: the file says what the tool takes and gives, and
// not what does it.
func (w *workflow) declareTool(n *node, id, name string) *block {
	description := w.textOf(n, "description")
	if description == "" {
		w.assumed(n, "tool %s has no description; models need one", name)
		description = name
	}
	inputs, about := w.variables(n, "parameters", name)
	outputs, _ := w.variables(n, "output", name)
	if about != "" {
		description += "\n" + about
	}
	b := new(block).set("type", "ClientTool").note("Answered at the terminal, or by --client-tool %s=COMMAND.", oneLine(id)).
		set("id", id).set("name", name).set("description", description)
	if len(inputs) > 0 {
		b.set("inputs", inputs)
	}
	if len(outputs) > 0 {
		b.set("outputs", outputs)
	}
	return b
}

// variables are the properties of a schema as the variables of a tool; about is
// what the schema says of them in words. An output that is no object is one
// variable, result.
func (w *workflow) variables(n *node, key, tool string) (variables []*block, about string) {
	m := w.mapOf(n, key)
	if m == nil {
		return nil, ""
	}
	if bare := unwrapped(m); key == "parameters" && bare.get("properties") == nil && bare.get("type").name() == "object" && len(bare.pairs) == 1 {
		return nil, "" // a tool that takes nothing
	}
	sc := &schema{report: w.report, what: fmt.Sprintf("%s of tool %s", key, tool), dates: true}
	of := sc.shape(unwrapped(m), "")
	if of.sort != isRecord {
		switch {
		case len(unwrapped(m).pairs) == 0:
		case key == "output" && of.declared && of.flat() && of.sort != unknown:
			of.settle(w.ids, tool+"_result", &w.parts.types)
			return []*block{variable("result", of)}, ""
		default:
			w.unsupported(m, "%s of tool %s is no object with properties", key, tool)
		}
		return nil, ""
	}
	of.name = "-" // the properties are variables, so there is no type of them all
	for _, f := range of.fields {
		if f.of.hasNullableElements() {
			w.unsupported(m, "%s of tool %s: an element of %s may be null there, and must not be here", key, tool, f.name)
		}
		if !f.of.flat() {
			w.unsupported(m, "%s of tool %s: %s is a list of lists, which no variable is; it is declared as a list of texts", key, tool, f.name)
			f.of = &inferredType{sort: isList, declared: true, optional: f.of.optional, elem: &inferredType{sort: isText, declared: true}}
		}
		f.of.settle(w.ids, tool+"_"+f.name, &w.parts.types)
		variables = append(variables, variable(f.name, f.of))
	}
	return variables, sc.about()
}

// variable declares a variable of a shape that is settled.
func variable(name string, of *inferredType) *block {
	v := new(block).set("id", name).set("type", of.variableType())
	v.inline = true
	return v
}

// readInputs declares the data that the caller gives, where the workflow says it.
func (w *workflow) readInputs() {
	if w.root.form != mapping {
		return
	}
	n := w.root.get("dataInputSchema")
	if n == nil {
		return
	}
	if n.form != mapping {
		w.unsupported(n, "dataInputSchema names a file, which is not read; what the caller gives is known from how it is used")
		return
	}
	sc := &schema{report: w.report, what: "dataInputSchema"}
	if n.get("schema") != nil && n.get("schema").form != mapping {
		w.unsupported(n.get("schema"), "dataInputSchema names a file, which is not read; what the caller gives is known from how it is used")
		return
	}
	of := sc.shape(unwrapped(n), "")
	if of.sort != isRecord {
		return
	}
	for _, f := range of.fields {
		if !f.of.flat() {
			w.unsupported(n, "dataInputSchema: %s is a list of lists, which no variable is; its type is known from how it is used", f.name)
			continue
		}
		d := w.datum(f.name)
		d.input = true
		if d.of.sort == unknown {
			made := *f.of
			d.of = &made
		}
	}
}
