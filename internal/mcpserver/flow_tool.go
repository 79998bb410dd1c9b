package mcpserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// flowTool is a flow as a tool.
type flowTool struct {
	flow     *spec.Flow
	declared *sdk.Tool
	inputs   []flowInput
	session  string // the argument and the result with the session; empty for a flow without memory
	many     bool   // the result is a list of rows
}

// flowInput is an input of the flow as an argument of the tool.
type flowInput struct {
	name     string // of the argument
	variable *spec.Variable
}

// textType is the type of arguments and results that are a message in the document.
var textType = spec.Type{Name: "text"}

// newFlowTool declares the tool of a flow.
func newFlowTool(app *spec.Application, f *spec.Flow, name string) *flowTool {
	t := &flowTool{flow: f, many: makesRows(f, map[*spec.Flow]bool{})}
	if len(runtime.MemoryIDs(f)) > 0 || isConversational(f) {
		t.session = t.unusedVariable("session", "session_id", "qtype_session")
	}
	var arguments []*spec.Variable
	for _, ref := range f.Inputs {
		in := flowInput{ref.ID, ref.To}
		if isConversational(f) && ref.To.Type.Is("ChatMessage") && len(arguments) == 0 {
			in.name = t.unusedVariable("message", ref.ID)
		}
		t.inputs = append(t.inputs, in)
		arguments = append(arguments, argument(in))
	}
	if t.session != "" {
		arguments = append(arguments, &spec.Variable{ID: t.session, Type: textType, Optional: true})
	}
	t.declared = &sdk.Tool{Name: name, Description: t.description(app), InputSchema: tool.Schema(arguments), OutputSchema: t.outputSchema()}
	return t
}

func isConversational(f *spec.Flow) bool {
	return f.Interface != nil && f.Interface.Type == "Conversational"
}

// makesRows reports whether a row of the flow may become any number of rows.
func makesRows(f *spec.Flow, seen map[*spec.Flow]bool) bool {
	seen[f] = true
	return slices.ContainsFunc(f.Plan().Steps, func(s *spec.StepPlan) bool {
		return s.Rows != spec.RowsOne || slices.ContainsFunc(s.Calls(), func(c spec.FlowCall) bool {
			return c.Flow.To != nil && !seen[c.Flow.To] && makesRows(c.Flow.To, seen)
		})
	})
}

// unusedVariable returns the first name that is not an input or output of the flow. The
// last name is used in any case.
func (t *flowTool) unusedVariable(names ...string) string {
	for _, name := range names[:len(names)-1] {
		same := func(ref spec.Ref[*spec.Variable]) bool { return ref.ID == name }
		messageItself := func(ref spec.Ref[*spec.Variable]) bool { return same(ref) && ref.To.Type.Is("ChatMessage") }
		if slices.ContainsFunc(t.flow.Inputs, messageItself) || !slices.ContainsFunc(t.flow.Inputs, same) && !slices.ContainsFunc(t.flow.Outputs, same) {
			return name
		}
	}
	return names[len(names)-1]
}

// argument returns the variable of an argument. A message is a text.
func argument(in flowInput) *spec.Variable {
	v := &spec.Variable{ID: in.name, Type: in.variable.Type, Optional: in.variable.IsOptional()}
	if v.Type.Is("ChatMessage") {
		v.Type = textType
	}
	return v
}

// description returns what a model reads about the tool.
func (t *flowTool) description(app *spec.Application) string {
	text := t.flow.Description
	if text == "" {
		text = fmt.Sprintf("Runs the flow %s of %s.", t.flow.ID, app.ID)
	}
	if t.session != "" {
		text += fmt.Sprintf(" To continue a conversation, pass the %s of an earlier result; without it a new one begins.", t.session)
	}
	return text
}

// outputSchema returns the JSON schema of the structured result.
func (t *flowTool) outputSchema() any {
	var outputs []*spec.Variable
	for _, ref := range t.flow.Outputs {
		outputs = append(outputs, argument(flowInput{ref.ID, ref.To}))
	}
	session := &spec.Variable{ID: t.session, Type: textType}
	if !t.many {
		if t.session != "" {
			outputs = append(outputs, session)
		}
		return tool.Schema(outputs)
	}
	row := &spec.CustomType{ID: "_row"}
	for _, v := range outputs {
		row.Properties = append(row.Properties, spec.Property{Name: v.ID, Type: optional(v)})
	}
	rows := spec.Type{Elem: &spec.Type{Name: row.ID, Custom: row}}
	all := []*spec.Variable{{ID: "rows", Type: rows}}
	if t.session != "" {
		all = append(all, session)
	}
	return tool.Schema(all)
}

// optional returns the type of a variable, optional if the variable is.
func optional(v *spec.Variable) spec.Type {
	typ := v.Type
	typ.Optional = v.IsOptional()
	return typ
}

// row returns the row and the session of a call.
func (t *flowTool) row(args arguments) (values map[string]any, session string, err error) {
	var names []string
	values = map[string]any{}
	for _, in := range t.inputs {
		names = append(names, in.name)
		given, ok := args[in.name]
		switch {
		case !ok && in.variable.IsOptional():
			given = nil // models leave out what they do not know; a template inserts nothing
		case !ok:
			continue // the run reports it
		}
		if values[in.variable.ID], err = decodeMedia(in.variable.Type, given); err != nil {
			return nil, "", fmt.Errorf("the argument %s: %w", in.name, err)
		}
	}
	if t.session != "" {
		names = append(names, t.session)
	}
	if err := args.only(names...); err != nil {
		return nil, "", err
	}
	given, ok := args[t.session]
	if t.session == "" || !ok || given == nil || given == "" {
		return values, chat.NewID(), nil // calls without a session share nothing
	}
	session, err = args.text(t.session)
	switch {
	case len(session) > maxSessionID:
		err = fmt.Errorf("the argument %s is longer than %d bytes", t.session, maxSessionID)
	case !utf8.ValidString(session) || strings.ContainsFunc(session, unicode.IsControl):
		err = fmt.Errorf("the argument %s has control characters", t.session)
	}
	return values, session, err
}

// maxSessionID is the maximum length of the id of a session in bytes.
const maxSessionID = 512

// errUnset reports a row without a value for an output that is not optional.
var errUnset = errors.New("the flow has not set it")

// outputs returns the outputs of a row as an object, and its media as content.
func (t *flowTool) outputs(row *runtime.Result) (fields []value.Field, media []sdk.Content, err error) {
	for v, x := range row.Outputs() {
		if x == nil {
			if !v.IsOptional() {
				return nil, nil, fmt.Errorf("output %s: %w", v.ID, errUnset)
			}
			continue
		}
		media = append(media, mediaOf(v.Type, x)...)
		fields = append(fields, value.Field{Name: v.ID, Value: encodeMedia(v.Type, x)})
	}
	return fields, media, nil
}
