package clienttool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// maxTries is how often the user is prompted for an answer of the right type.
const maxTries = 3

// User is the user at the terminal.
type User struct {
	Streams  *terminal.Streams
	Lines    *terminal.Lines // what the user types; nil if the user cannot be prompted
	Approved []string        // ids of tools that need no further approval
	Deny     bool            // reject all others without a question
}

// Handle prompts the user for the result of a client tool.
func (u *User) Handle(ctx context.Context, call tool.Request) (any, error) {
	release, err := u.Lines.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	u.printRequest(call)
	for try := 1; ; try++ {
		fmt.Fprint(u.Streams.Err, resultPrompt(call.Outputs))
		line, err := u.readLine(ctx)
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the input ended before the answer")
		} else if err != nil {
			return nil, err
		}
		result, err := factory.CoerceResult(call.Outputs, value.FromGo(parseResult(call.Outputs, line)))
		if err == nil || try == maxTries {
			return result, err
		}
		fmt.Fprintf(u.Streams.Err, "  %s\n", terminal.Clean(err.Error()))
	}
}

// readLine reads a line. Without a terminal, which echoes line ends, it ends the
// line of the prompt itself.
func (u *User) readLine(ctx context.Context) (string, error) {
	line, err := u.Lines.Next(ctx)
	if !u.Streams.InTerminal || err != nil {
		fmt.Fprintln(u.Streams.Err)
	}
	return line, err
}

// printRequest shows the call.
func (u *User) printRequest(call tool.Request) {
	caller := "session " + call.Caller.Session
	if call.Caller.Row > 0 {
		caller += fmt.Sprintf(", row %d", call.Caller.Row)
	}
	fmt.Fprintf(u.Streams.Err, "\n%s (%s): %s\n  %s\n", terminal.Clean(call.Tool.Name), terminal.Clean(caller),
		terminal.Clean(call.Tool.Description), terminal.Clean(string(call.Args)))
}

// resultPrompt returns the prompt for a tool's outputs.
func resultPrompt(outputs []*spec.Variable) string {
	switch len(outputs) {
	case 0:
		return "answer> "
	case 1:
		return fmt.Sprintf("%s (%s)> ", outputs[0].ID, outputs[0].Type)
	}
	var names []string
	for _, v := range outputs {
		names = append(names, fmt.Sprintf("%s (%s)", v.ID, v.Type))
	}
	return "a JSON object with " + textfmt.List(names) + "> "
}

// parseResult parses a line as JSON if it is JSON, else as text. For an output of
// type text, a line that looks like a number stays text.
func parseResult(outputs []*spec.Variable, line string) any {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	v, err := value.Parse(line)
	if err != nil {
		return line
	}
	if len(outputs) == 1 && outputs[0].Type.Is("text") {
		switch v.(type) {
		case string, *value.Record:
		default:
			return line
		}
	}
	return v
}

// Approve reports whether an agent may call a tool; if not, the user may have given
// a reason.
func (u *User) Approve(ctx context.Context, call tool.Request) (approved bool, reason string, err error) {
	if call.Tool.IsAmong(u.Approved) {
		return true, "", nil
	}
	switch {
	case u.Deny:
		return false, "no one is there to approve it (--deny)", nil
	case u.Lines == nil:
		return false, "no terminal is attached", nil
	}
	release, err := u.Lines.Acquire(ctx)
	if err != nil {
		return false, "", err
	}
	defer release()
	u.printRequest(call)
	fmt.Fprintf(u.Streams.Err, "may step %s call it? [y/N, or a reason]> ", terminal.Clean(call.Caller.Step))
	line, err := u.readLine(ctx)
	if errors.Is(err, io.EOF) {
		return false, "", nil
	}
	switch word := strings.ToLower(strings.TrimSpace(line)); word {
	case "y", "yes":
		return true, "", err
	case "", "n", "no":
		return false, "", err
	}
	return false, strings.TrimSpace(line), err
}
