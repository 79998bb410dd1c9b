package xflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// parts are the entities of the document other than flows, by their origin in the
// file.
type parts struct {
	end      *document.Flow
	types    []*document.Type
	models   map[string]string
	memories map[string]*memoryUse
	tools    map[string]*toolUse
	answers  map[*state]*jq.Expr // results of agents

	functions map[string]*function // that actions call
	part      map[string]string    // output of a tool that a variable gets
	done      map[*state]string    // variables that are true if a state with onErrors has not failed
}

// common returns the keys that every state may have, and more.
func common(more ...string) []string {
	return append(more, "name", "type", "transition", "end", "metadata", "onErrors", "timeouts", "compensatedBy", "usedForCompensation", "stateDataFilter", "id", "description")
}

// state writes a state and returns the next one, unless the state branches.
func (w *workflow) state(s *state, f *document.Flow) *state {
	if s.catches {
		return w.caught(s, f)
	}
	return w.steps(s, f)
}

// steps writes the steps of a state.
func (w *workflow) steps(s *state, f *document.Flow) *state {
	before := len(f.Steps)
	defer func() {
		if len(f.Steps) > before {
			w.describe(s, f.Steps[before])
		}
	}()
	switch s.kind {
	case "aiagent":
		w.agent(s, f)
	case "inject":
		w.convertInject(s, f)
	case "switch":
		w.CheckKeys(s.n, "state "+s.name, common("dataConditions", "eventConditions", "defaultCondition")...)
	case "operation":
		w.operation(s, f)
	case "callback":
		w.callback(s, f)
	case "parallel":
		w.parallel(s, f)
	case "foreach":
		w.foreach(s, f)
	case "sleep":
		w.CheckKeys(s.n, "state "+s.name, common("duration")...)
		w.Ignored(s.n.KeySpan("type"), "state %s sleeps %s, which a flow cannot; it is skipped", s.name, s.n.Get("duration").Scalar())
	default:
		w.unsupportedState(s)
	}
	w.reportRest(s)
	return s.next.to
}

// describe adds the description of a state as a comment to its first step.
func (w *workflow) describe(s *state, first *document.Step) {
	if about := w.Text(s.n, "description"); about != "" {
		first.Entries[0].Note = about
	}
}

func kinds() []string {
	return []string{"aiagent", "callback", "foreach", "inject", "operation", "parallel", "sleep", "switch"}
}

// unsupportedState reports a state that cannot be converted. The flow continues
// with the next one.
func (w *workflow) unsupportedState(s *state) {
	n := s.n.Get("type")
	if n == nil {
		return // reported before
	}
	known := map[string]string{
		"event":    "it waits for events, which a flow cannot",
		"usertask": "it requests input from a person; use a ClientTool",

		"aiagentproxy":    "it calls a remote agent; use an APITool or a CommandTool",
		"userproxyagent":  "it requests input from a person for an agent; use a ClientTool",
		"aioutboundagent": "it makes phone calls, which a flow cannot",
		"subflow":         "it runs a workflow of another file; use InvokeFlow for a flow of the same document",
		"delay":           "it waits, which a flow cannot",
	}
	if why := known[s.kind]; why != "" {
		w.Unsupported(n, "state %s (%s) is skipped: %s", s.name, n.Text, why)
		return
	}
	w.Add(input.Unsupported.At(n.Span, "state %s is skipped: unknown type %s", s.name, n.Text).WithNearest(s.kind, kinds()))
}

// reportRest reports the parts of a state that are independent of its type.
func (w *workflow) reportRest(s *state) {
	for _, key := range []string{"metadata", "timeouts", "id"} {
		if s.n.Get(key) != nil {
			w.Ignored(s.n.KeySpan(key), "state %s: %s ignored", s.name, key)
		}
	}
	if v := s.n.Get("compensatedBy"); v != nil && len(v.Items)+len(v.Text) > 0 {
		w.Unsupported(v, "state %s: compensatedBy has no counterpart", s.name)
	}
	if s.n.Get("usedForCompensation") != nil && w.Bool(s.n, "usedForCompensation") {
		w.Unsupported(s.n.Get("usedForCompensation"), "state %s compensates for another one, which has no counterpart", s.name)
	}
	filter := s.n.Get("stateDataFilter")
	if filter == nil || w.AsMap(filter, "stateDataFilter") == nil {
		return
	}
	w.CheckKeys(filter, "stateDataFilter", "input", "output")
	for _, p := range filter.Entries() {
		if text := strings.Join(strings.Fields(p.Value.Text), ""); text != "${.}" && text != "." {
			w.Unsupported(p.Value, "state %s: the filter of its %s has no counterpart", s.name, p.Key)
		}
	}
}

// convertInject writes the constants of an inject state.
func (w *workflow) convertInject(s *state, f *document.Flow) {
	w.CheckKeys(s.n, "state "+s.name, common("data")...)
	data := w.Map(s.n, "data")
	if data == nil {
		if s.n.Get("data") == nil {
			w.Malformed(s.n, `state %s has no "data"`, s.name)
		}
		return
	}
	st := &document.Step{Block: w.newBlock("Transform", s.name+"_data")}
	sets := new(document.Block)
	for _, p := range data.Entries() {
		c := w.constant(p.Value, p.Key)
		if c == nil {
			continue
		}
		id, fits := w.write(p.Key, c.Type, p.Value)
		if !fits {
			continue
		}
		sets.Set(id, document.Expression(c.Text()))
		st.Reads = append(st.Reads, w.reads...)
		st.Writes = append(st.Writes, id)
	}
	if len(sets.Entries) == 0 {
		return
	}
	st.Set("set", sets)
	w.push(f, st)
}

// constant converts a value of the file, whose strings may contain expressions, to
// an expression. It returns nil if it cannot, which it reports.
func (w *workflow) constant(n *input.Node, what string) *jq.Expr {
	w.reads = nil
	switch n.Kind {
	case input.Bool, input.Int, input.Float:
		c, err := scalarExpr(n)
		if err != nil {
			w.Unsupported(n, "%s: %s", what, err)
		}
		return c
	case input.Text:
		return w.constantText(n, what)
	case input.List:
		return w.constantList(n, what)
	case input.Map:
		return w.constantRecord(n, what)
	}
	return &jq.Expr{Source: "nil", Prec: jq.PrecAtom, Type: &document.Type{Optional: true}, Nullable: true}
}

// scalarExpr converts a scalar to an expression.
func scalarExpr(n *input.Node) (*jq.Expr, error) {
	switch n.Kind {
	case input.Bool:
		return jq.Constant(fmt.Sprint(slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(n.Text))), document.Bool), nil
	case input.Text:
		return jq.QuoteExpr(n.Text), nil
	case input.Int, input.Float:
		digits, negative := strings.CutPrefix(strings.TrimPrefix(strings.ReplaceAll(n.Text, "_", ""), "+"), "-")
		if i, err := strconv.ParseInt(digits, 0, 64); err == nil && len(digits) > 1 && digits[0] == '0' {
			digits = strconv.FormatInt(i, 10) // hexadecimal or octal
		}
		c, err := (&jq.Translator{}).Number(digits)
		if err == nil && negative {
			c.Source, c.Prec = "-"+c.Source, jq.PrecUnary
		}
		return c, err
	}
	return &jq.Expr{Source: "nil", Prec: jq.PrecAtom, Type: &document.Type{Optional: true}, Nullable: true}, nil
}

// constantText converts a string, or the single expression that it consists of.
func (w *workflow) constantText(n *input.Node, what string) *jq.Expr {
	tpl := jq.ParseTemplate(n.Text)
	t := w.jq()
	var c *jq.Expr
	var err error
	switch {
	case !tpl.HasExpressions() && len(n.Text) > maxConcat:
		w.Unsupported(n, "%s: a constant string has at most %d bytes in an expression", what, maxConcat)
		return nil
	case !tpl.HasExpressions():
		return jq.QuoteExpr(n.Text)
	case len(tpl.Parts) == 1:
		c, err = t.Translate(tpl.Parts[0].Text)
	default:
		c, err = t.Template(tpl)
	}
	if err != nil {
		w.untranslated(n, what+" becomes null", err)
		w.reads = nil
		return &jq.Expr{Source: "nil", Prec: jq.PrecAtom, Type: &document.Type{Optional: true}, Nullable: true}
	}
	if c.Nullable && !c.Type.Optional {
		of := *c.Type
		of.Optional = true
		c.Type = &of
	}
	return c
}

func (w *workflow) constantList(n *input.Node, what string) *jq.Expr {
	elem := &document.Type{}
	var items, reads []string
	for _, item := range n.Elements() {
		c := w.constant(item, what)
		if c == nil {
			return nil
		}
		reads = append(reads, w.reads...)
		joined, ok := document.Join(elem, c.Type)
		if !ok || c.IsNil() {
			w.Unsupported(n, "%s: elements of a list have one type and are not null, unlike %s", what, item.Describe())
			return nil
		}
		elem = joined
		items = append(items, c.Argument())
	}
	w.reads = reads
	return &jq.Expr{Source: "[" + strings.Join(items, ", ") + "]", Prec: jq.PrecAtom, Type: &document.Type{Kind: document.List, Declared: true, Elem: elem}}
}

func (w *workflow) constantRecord(n *input.Node, what string) *jq.Expr {
	of := &document.Type{Kind: document.Record, Declared: true}
	var items, reads []string
	for _, p := range n.Entries() {
		c := w.constant(p.Value, what+"."+p.Key)
		if c == nil {
			return nil
		}
		reads = append(reads, w.reads...)
		of.Fields = append(of.Fields, &document.Field{Name: p.Key, Type: c.Type})
		items = append(items, fmt.Sprintf("%s: %s", jq.Quote(p.Key), c.Wrap(jq.PrecOr)))
	}
	w.reads = reads
	return &jq.Expr{Source: "{" + strings.Join(items, ", ") + "}", Prec: jq.PrecAtom, Type: of}
}
