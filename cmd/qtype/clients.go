package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/command"
	"github.com/qtype-dev/qtype/tool/factory"
)

// commandTime is how long a program of --client-tool may take where its tool
// names no timeout.
const commandTime = time.Minute

// maxTries is how often a person is asked again after an answer that does not fit.
const maxTries = 3

// clients answers for the caller: what ClientTools ask, and whether an Agent may
// call a tool. Programs answer where --client-tool names them, else the person at
// the terminal.
type clients struct {
	*streams
	commands []string    // NAME=COMMAND
	allowed  []string    // tools that may be called without a question
	lines    *lineReader // what the person types; nil where nobody can be asked
}

// interactive tells whether the flow could ask the person something, so that nothing
// else must draw on the terminal meanwhile.
func (c *clients) interactive(app *spec.Application) bool {
	if c.lines == nil {
		return false
	}
	for _, f := range app.Flows {
		for _, item := range f.Steps {
			if a, ok := item.Step.(*spec.Agent); ok && len(a.Approve) > 0 {
				return true
			}
		}
	}
	return slices.ContainsFunc(toolsOf(app), func(t spec.Tool) bool { _, ok := t.(*spec.ClientTool); return ok })
}

func (c *clients) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&c.commands, "client-tool", nil, "`NAME=COMMAND`: a program answers this ClientTool: arguments as JSON on its standard input, the answer as JSON on its standard output; may be repeated")
	f.StringArrayVar(&c.allowed, "approve", nil, "approve all calls of this `TOOL` that require approval; may be repeated")
}

// options are how an application is made that asks us.
func (c *clients) options(app *spec.Application) ([]qtype.Option, error) {
	declared := toolsOf(app)
	var opts []qtype.Option
	for _, given := range c.commands {
		name, line, ok := strings.Cut(given, "=")
		if !ok || name == "" || line == "" {
			return nil, usagef("--client-tool cannot be %q: it is NAME=COMMAND", given)
		}
		t, err := clientTool(declared, name)
		if err != nil {
			return nil, err
		}
		limit := time.Duration(t.Timeout)
		if limit <= 0 {
			limit = commandTime
		}
		answer, err := command.Line(line, limit, command.Env{Getenv: os.Getenv, Folder: "."})
		if err != nil {
			return nil, usagef("--client-tool %s: %s", name, err)
		}
		opts = append(opts, qtype.WithClientTool(t.ID, answer))
	}
	for _, name := range c.allowed {
		if !slices.ContainsFunc(declared, func(t spec.Tool) bool { return t.EntityID() == name }) {
			return nil, usagef("--approve %s: there is no such tool%s", name, didYouMean(name, toolIDs(declared)))
		}
	}
	if c.lines != nil {
		opts = append(opts, qtype.WithClientTool("", c.answer))
	}
	if c.lines != nil || len(c.allowed) > 0 {
		opts = append(opts, qtype.WithApproval(c.approve))
	}
	return opts, nil
}

// toolsOf lists the tools of an application and of what it references.
func toolsOf(app *spec.Application) []spec.Tool {
	if app == nil {
		return nil
	}
	all := slices.Clone(app.Tools)
	for _, doc := range app.References {
		if doc.Application != nil {
			all = append(all, toolsOf(doc.Application)...)
			continue
		}
		all = append(all, doc.Tools...)
	}
	return all
}

func toolIDs(tools []spec.Tool) []string {
	ids := make([]string, len(tools))
	for i, t := range tools {
		ids[i] = t.EntityID()
	}
	return ids
}

// clientTool is the ClientTool of that id, or of that name where no id fits.
func clientTool(declared []spec.Tool, name string) (*spec.ClientTool, error) {
	var ids []string
	var named *spec.ClientTool
	for _, t := range declared {
		c, ok := t.(*spec.ClientTool)
		switch {
		case t.EntityID() == name && !ok:
			return nil, usagef("--client-tool %s: that is a tool of type %s, which answers itself", name, spec.TypeName(t))
		case !ok:
			continue
		case c.ID == name:
			return c, nil
		case c.Name == name && named == nil:
			named = c
		}
		ids = append(ids, c.ID)
	}
	if named != nil {
		return named, nil
	}
	return nil, usagef("--client-tool %s: the document has no ClientTool of that id; it has %s%s", name, joinNames(ids), didYouMean(name, ids))
}

// answer asks the person at the terminal in the place of a ClientTool.
func (c *clients) answer(ctx context.Context, ask tool.Request) (any, error) {
	release, err := c.lines.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	c.printRequest(ask)
	for try := 1; ; try++ {
		fmt.Fprint(c.err, answerPrompt(ask.Outputs))
		line, err := c.reply(ctx)
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the input ended before the answer came")
		} else if err != nil {
			return nil, err
		}
		v := readAnswer(ask.Outputs, line)
		fitting, err := factory.CoerceResult(ask.Outputs, value.FromGo(v))
		if err == nil || try == maxTries {
			return fitting, err
		}
		fmt.Fprintf(c.err, "  %s\n", clean(err.Error()))
	}
}

// reply is the line that a person types, which ends the line of the question only
// on a terminal.
func (c *clients) reply(ctx context.Context) (string, error) {
	line, err := c.lines.next(ctx)
	if !c.inTerminal || err != nil {
		fmt.Fprintln(c.err)
	}
	return line, err
}

// printRequest shows what is called.
func (c *clients) printRequest(ask tool.Request) {
	who := "session " + ask.Caller.Session
	if ask.Caller.Row > 0 {
		who += fmt.Sprintf(", row %d", ask.Caller.Row)
	}
	fmt.Fprintf(c.err, "\n%s (%s): %s\n  %s\n", clean(ask.Tool.Name), clean(who), clean(ask.Tool.Description), clean(string(ask.Args)))
}

// answerPrompt says what is expected.
func answerPrompt(outputs []*spec.Variable) string {
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
	return "a JSON object with " + joinNames(names) + "> "
}

// readAnswer takes a line as JSON where it is that, else as text. For a text a
// line that only looks like a number stays what it is.
func readAnswer(outputs []*spec.Variable, line string) any {
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

// approve asks whether an Agent may call a tool.
func (c *clients) approve(ctx context.Context, ask tool.Request) (yes bool, reason string, err error) {
	if slices.Contains(c.allowed, ask.Tool.ID) || slices.Contains(c.allowed, ask.Tool.Set) {
		return true, "", nil
	}
	if c.lines == nil {
		return false, "nobody is there to ask", nil
	}
	release, err := c.lines.acquire(ctx)
	if err != nil {
		return false, "", err
	}
	defer release()
	c.printRequest(ask)
	fmt.Fprintf(c.err, "may step %s call it? [y/N, or why not]> ", clean(ask.Caller.Step))
	line, err := c.reply(ctx)
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

// advice is a hint about flags that avoid an error; mostly empty.
func advice(err error) string {
	var client *factory.NoClientHandlerError
	var approval *steps.NoApproverError
	switch {
	case errors.As(err, &client):
		return fmt.Sprintf("; run it in a terminal, or name a program that answers: --client-tool %s=COMMAND", client.Tool)
	case errors.As(err, &approval):
		return fmt.Sprintf("; run it in a terminal, or use --approve %s", approval.Tool)
	}
	return ""
}
