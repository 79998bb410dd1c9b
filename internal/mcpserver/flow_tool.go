package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
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

// call runs a flow for a call of its tool.
func (a *application) call(ctx context.Context, req *sdk.CallToolRequest, t *flowTool) (*sdk.CallToolResult, error) {
	if !a.opts.Allowed(ctx, t.flow) {
		return nil, invalid("unknown tool %q", req.Params.Name) // as for one that does not exist
	}
	if req.ProtocolVersion() >= stateless {
		return a.callInRounds(ctx, req, t)
	}
	return a.run(ctx, req, t, &sessionAsker{req.Session}, newProgress(ctx, req)), nil
}

// run runs a flow and returns the result of its tool.
func (a *application) run(ctx context.Context, req *sdk.CallToolRequest, t *flowTool, ask asker, p *progress) *sdk.CallToolResult {
	defer p.close()
	args, err := parseArguments(req.Params.Arguments)
	if err != nil {
		return failed(err.Error())
	}
	values, session, err := t.row(args)
	if err != nil {
		return failed(err.Error())
	}
	in := runtime.Input{Values: values, Session: access.PrincipalOf(ctx).StoredSession(session)}
	r := &flowResult{tool: t, session: session}
	ctx = withAsker(ctx, ask)
	if !a.opts.AppHandlers {
		ctx = tool.WithHandlers(ctx, tool.Handlers{Approve: Approve, Client: clientTools})
	}
	rows := a.opts.Run(p.listen(ctx), t.flow.ID, slices.Values([]runtime.Input{in}))
	for row, err := range rows {
		if err != nil {
			return failed(a.opts.ErrorText(ctx, err))
		}
		if row.Err != nil {
			r.errors = append(r.errors, rowError{row.Number, row.Err.Step, a.opts.ErrorText(ctx, row.Err), runtime.ErrorCode(row.Err)})
			continue
		}
		r.add(row)
		p.row(len(r.rows))
	}
	if err := ctx.Err(); err != nil {
		return failed("the call was canceled")
	}
	return r.result()
}

// flowResult collects the rows of a run.
type flowResult struct {
	tool    *flowTool
	session string
	rows    []*value.Record // those that did not fail
	media   []sdk.Content
	errors  []rowError
}

// rowError is a failed row as structured data, as in the REST interface.
type rowError struct {
	Row     int64  `json:"row"`
	Step    string `json:"step_id"`
	Message string `json:"error_message"`
	Type    string `json:"exception_type"`
}

func (r *flowResult) add(row *runtime.Result) {
	fields, media, err := r.tool.outputs(row)
	if err != nil {
		r.errors = append(r.errors, rowError{Row: row.Number, Message: err.Error(), Type: runtime.CodeFailed})
		return
	}
	r.rows, r.media = append(r.rows, value.NewRecord("", fields...)), append(r.media, media...)
}

// result returns the result of the tool: texts for people and models, and structured
// content in the tool's schema. With a failed row it is an error, with the other rows
// as text.
func (r *flowResult) result() *sdk.CallToolResult {
	if len(r.errors) == 0 && !r.tool.many && len(r.rows) != 1 {
		r.errors = append(r.errors, rowError{Message: fmt.Sprintf("flow %s returned %d rows", r.tool.flow.ID, len(r.rows)), Type: runtime.CodeFailed})
	}
	if len(r.errors) > 0 {
		return r.failure()
	}
	structured := value.NewRecord("", r.fields()...)
	result := &sdk.CallToolResult{StructuredContent: json.RawMessage(value.JSON(structured))}
	result.Content = append(result.Content, &sdk.TextContent{Text: r.text(structured)})
	result.Content = append(result.Content, r.media...)
	return result
}

// fields returns the fields of the structured result.
func (r *flowResult) fields() []value.Field {
	var fields []value.Field
	if r.tool.many {
		rows := make([]any, len(r.rows))
		for i, row := range r.rows {
			rows[i] = row
		}
		fields = append(fields, value.Field{Name: "rows", Value: rows})
	} else {
		for name, x := range r.rows[0].All() {
			fields = append(fields, value.Field{Name: name, Value: x})
		}
	}
	if r.tool.session != "" {
		fields = append(fields, value.Field{Name: r.tool.session, Value: r.session})
	}
	return fields
}

// text returns the result for people and models: the text of the only output, otherwise
// the structured result as JSON.
func (r *flowResult) text(structured *value.Record) string {
	if !r.tool.many && len(r.tool.flow.Outputs) == 1 && r.rows[0].Len() == 1 {
		for _, x := range r.rows[0].All() {
			if s, ok := x.(string); ok && !r.tool.flow.Outputs[0].To.Type.IsMedia() {
				return s
			}
		}
	}
	return string(value.JSON(structured))
}

// failure returns an error result. Structured content must fit the schema of the
// outputs, so the errors are metadata.
func (r *flowResult) failure() *sdk.CallToolResult {
	var messages []string
	for _, e := range r.errors {
		messages = append(messages, e.Message)
	}
	result := failed(strings.Join(messages, "\n"))
	if r.tool.many && len(r.rows) > 0 {
		result.Content = append(result.Content, &sdk.TextContent{Text: string(value.JSON(value.NewRecord("", r.fields()...)))})
	}
	result.Meta = sdk.Meta{"qtype/errors": r.errors}
	if r.tool.session != "" {
		result.Meta["qtype/session"] = r.session
	}
	return result
}

// listen returns a context in which the steps of a run report to p, which may be nil.
func (p *progress) listen(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return steps.WithEvents(ctx, p.event, steps.EventText, steps.EventReasoning, steps.EventCommentary, steps.EventToolCall)
}
