// Package clienttool answers for the caller of a flow: it handles calls of client
// tools and approves calls of tools. Programs do so if they are configured, else the
// user at the terminal.
package clienttool

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tool/command"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// defaultTimeout is how long a program may take if its tool declares no timeout.
const defaultTimeout = time.Minute

// Program returns the handler of a client tool that runs a command line, and the id
// of the tool. name is the tool's id, or its name if no tool has such an id. by starts the program;
// it may be nil.
func Program(app *spec.Application, name, line string, by *subprocess.Supervisor) (id string, handler tool.ClientHandler, err error) {
	t, err := find(app.AllTools(), name)
	if err != nil {
		return "", nil, err
	}
	limit := defaultTimeout
	if c, ok := t.(*spec.ClientTool); ok && c.Timeout > 0 { // the call of an MCPTool has its own limit
		limit = time.Duration(c.Timeout)
	}
	handler, err = command.Line(line, limit, command.Env{Getenv: os.Getenv, Folder: ".", Supervisor: by})
	return t.EntityID(), handler, err
}

// find returns the tool of an id that the caller may have to answer for, or of a name if no id matches.
func find(declared []spec.Tool, name string) (spec.Tool, error) {
	var ids []string
	var named spec.Tool
	for _, t := range declared {
		id, answered := t.EntityID(), spec.NeedsCaller(t)
		switch {
		case id == name && !answered:
			return nil, fmt.Errorf("tool of type %s is not a ClientTool, and no MCPTool with elicitation", spec.TypeName(t))
		case !answered:
			continue
		case id == name:
			return t, nil
		case t.Common().Name == name && named == nil:
			named = t
		}
		ids = append(ids, id)
	}
	if named != nil {
		return named, nil
	}
	return nil, fmt.Errorf("no such ClientTool; the document has %s%s", textfmt.List(ids), diag.DidYouMean(name, ids))
}

// CheckTool returns an error if the application has no tool of that id.
func CheckTool(app *spec.Application, id string) error {
	var ids []string
	for _, t := range app.AllTools() {
		ids = append(ids, t.EntityID())
	}
	if slices.Contains(ids, id) {
		return nil
	}
	return fmt.Errorf("no such tool%s", diag.DidYouMean(id, ids))
}

// Mock returns the mock of the tool of that id whose result is a text: JSON, or a value of an output of type text.
func Mock(app *spec.Application, id, text string) (*spec.ToolMock, error) {
	if err := CheckTool(app, id); err != nil {
		return nil, err
	}
	tools := app.AllTools()
	outputs, _ := tools[slices.IndexFunc(tools, func(t spec.Tool) bool { return t.EntityID() == id })].Results()
	return &spec.ToolMock{ID: id, Result: parseResult(outputs, text)}, nil
}

// Prompts reports whether a run may have to prompt the user: no other part of the
// program should draw on the terminal meanwhile.
func Prompts(app *spec.Application) bool {
	for _, f := range app.Flows {
		for _, s := range f.Plan().Steps {
			if s.NeedsApproval() {
				return true
			}
		}
	}
	return slices.ContainsFunc(app.AllTools(), spec.NeedsCaller)
}

// Advice returns the flag that avoids an error, to be appended to it; empty if there
// is none.
func Advice(err error) string {
	return advice(err, "run in a terminal or pass", ", or let qtype run --suspend FILE wait for a decision")
}

// AdviceWithoutPrompts is Advice for commands that never prompt the user.
func AdviceWithoutPrompts(err error) string { return advice(err, "pass", "") }

// advice begins with how flags are given; wait is what else answers an approval.
func advice(err error, how, wait string) string {
	var client *factory.NoClientHandlerError
	var approval *steps.NoApproverError
	switch {
	case errors.As(err, &client):
		return fmt.Sprintf("; %s --client-tool %s=COMMAND or --mock-tool %[2]s=RESULT", how, client.Tool)
	case errors.As(err, &approval):
		return fmt.Sprintf("; %s --approve %s, --deny or --mock-tool %[2]s=RESULT%s", how, approval.Tool, wait)
	}
	return ""
}
