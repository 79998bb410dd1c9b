package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// asker puts a question to the user of a client.
type asker interface {
	ask(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error)
}

type askerKey struct{}

func withAsker(ctx context.Context, a asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// HasClient reports whether the run of a context was started by an MCP client, which
// Approve and HandleClientTool would request an answer from.
func HasClient(ctx context.Context) bool { return ctx.Value(askerKey{}) != nil }

// errNoElicitation is the error of a question to a client that cannot put it to its user.
var errNoElicitation = &redact.PublicError{Err: errors.New("the MCP client does not support elicitation, which is needed to answer for its user")}

// askClient puts a question to the client that has started the run.
func askClient(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	a, ok := ctx.Value(askerKey{}).(asker)
	if !ok {
		return nil, &redact.PublicError{Err: errors.New("the run was not started by an MCP client")}
	}
	return a.ask(ctx, question)
}

// supportsForms reports whether a client can put a form to its user.
func supportsForms(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// sessionAsker puts questions over a session.
type sessionAsker struct{ session *sdk.ServerSession }

func (a *sessionAsker) ask(ctx context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	if init := a.session.InitializeParams(); init == nil || !supportsForms(init.Capabilities) {
		return nil, errNoElicitation
	}
	return a.session.Elicit(ctx, question)
}

// Approve is a tool.Approver: it requests approval from the user of the MCP client that
// has started the run.
func Approve(ctx context.Context, call tool.Request) (yes bool, reason string, err error) {
	p := access.PrincipalOf(ctx)
	if !spec.MayDecide(call.By, p.Roles, true) {
		return false, "", &redact.PublicError{Err: fmt.Errorf("a call of %s is decided by %s, and MCP clients cannot wait for others", call.Tool.Name, strings.Join(call.By, " or "))}
	}
	if call.Decided != nil {
		call.Decided(p.Name)
	}
	schema := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"approve": map[string]any{"type": "boolean", "title": "Approve", "description": "Whether the tool may be called"},
			"reason":  map[string]any{"type": "string", "title": "Reason", "description": "For the model, if the call is rejected"},
		},
		"required": []string{"approve"},
	}
	message := fmt.Sprintf("May the tool %s be called? %s\nArguments: %s", call.Tool.Name, call.Tool.Description, call.Args)
	answer, err := askClient(ctx, &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema})
	if err != nil {
		return false, "", err
	}
	switch answer.Action {
	case "accept":
		yes, _ = answer.Content["approve"].(bool)
		reason, _ = answer.Content["reason"].(string)
		return yes, reason, nil
	case "decline":
		return false, "", nil
	}
	return false, "the request was dismissed without an answer", nil
}

// HandleClientTool is a tool.ClientHandler: it requests the outputs of the tool from the
// user of the MCP client that has started the run. Lists and records are requested as
// JSON texts, as forms have simple fields only.
func HandleClientTool(ctx context.Context, call tool.Request) (any, error) {
	message := fmt.Sprintf("%s\nArguments: %s", call.Tool.Description, call.Args)
	answer, err := askClient(ctx, &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: formSchema(call.Outputs)})
	switch {
	case err != nil:
		return nil, err
	case answer.Action == "decline":
		return nil, &redact.PublicError{Err: errors.New("the user declined to answer")}
	case answer.Action != "accept":
		return nil, &redact.PublicError{Err: errors.New("the user dismissed the request")}
	}
	return formResult(call.Outputs, answer.Content)
}

// clientTools returns the handler of every client tool.
func clientTools(string) tool.ClientHandler { return HandleClientTool }

// formSchema returns the schema of a form for variables.
func formSchema(vars []*spec.Variable) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, v := range vars {
		properties[v.ID] = formField(v.Type)
		if !v.IsOptional() {
			required = append(required, v.ID)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// formField returns the schema of a field, which may only be simple.
func formField(t spec.Type) map[string]any {
	switch {
	case isJSON(t):
		return map[string]any{"type": "string", "description": fmt.Sprintf("%s, as JSON", t)}
	case t.Name == "int":
		return map[string]any{"type": "integer"}
	case t.Name == "float":
		return map[string]any{"type": "number"}
	case t.Name == "boolean":
		return map[string]any{"type": "boolean"}
	case t.Name == "date":
		return map[string]any{"type": "string", "format": "date"}
	case t.Name == "datetime":
		return map[string]any{"type": "string", "format": "date-time"}
	case t.IsMedia():
		return map[string]any{"type": "string", "description": "a file, as base64"}
	}
	return map[string]any{"type": "string"}
}

// isJSON reports whether a form has a value of a type as JSON text.
func isJSON(t spec.Type) bool { return t.Elem != nil || t.IsRecord() && !t.Is("ChatMessage") }

// formResult returns the outputs of a tool from the fields of a form.
func formResult(vars []*spec.Variable, fields map[string]any) (any, error) {
	result := map[string]any{}
	for _, v := range vars {
		given, ok := fields[v.ID]
		if !ok {
			continue
		}
		if s, isText := given.(string); isText {
			parsed, err := formValue(v.Type, s)
			if err != nil {
				return nil, &redact.PublicError{Err: fmt.Errorf("the answer %s: %w", v.ID, err)}
			}
			given = parsed
		}
		result[v.ID] = given
	}
	return result, nil
}

// formValue returns the value of a text field. An empty optional field has none.
func formValue(t spec.Type, text string) (any, error) {
	switch {
	case isJSON(t):
		v, err := value.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		return decodeMedia(t, v)
	case t.IsMedia():
		return decodeBase64(text)
	}
	return text, nil
}
