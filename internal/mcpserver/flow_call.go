package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

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
